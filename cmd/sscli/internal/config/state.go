package config

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"time"
)

// StateDir returns the directory of what sscli remembers between runs, by the XDG base
// directories; empty if the environment names no home.
func StateDir(env func(string) (string, bool)) string {
	state, _ := env("XDG_STATE_HOME")
	if !filepath.IsAbs(state) {
		state = ""
		if runtime.GOOS == "windows" {
			state, _ = env("LOCALAPPDATA")
		} else if home, _ := env("HOME"); home != "" {
			state = filepath.Join(home, ".local", "state")
		}
	}
	if state == "" {
		return ""
	}
	return filepath.Join(state, "sscli")
}

// warnedFile is the name of the file of [AlreadyWarned] in [StateDir].
const warnedFile = "warned"

// warnedFor is how long a warning is not repeated.
const warnedFor = 24 * time.Hour

// AlreadyWarned reports whether sscli printed a warning within the last day. If not, it remembers
// that the warning is printed now, until [ForgetWarning]. It keeps a hash of one warning, because
// the warning may hold a secret. It returns false if the environment names no home.
func AlreadyWarned(env func(string) (string, bool), warning string, now time.Time) bool {
	dir := StateDir(env)
	if dir == "" {
		return false
	}
	file := filepath.Join(dir, warnedFile)
	hash := fmt.Sprintf("%x", sha256.Sum256([]byte(warning)))
	if info, err := os.Stat(file); err == nil && now.Sub(info.ModTime()).Abs() < warnedFor {
		if text, err := os.ReadFile(file); err == nil && string(text) == hash {
			return true
		}
	}
	if os.MkdirAll(dir, 0o700) == nil {
		_ = os.WriteFile(file, []byte(hash), 0o600) // after an error the warning is repeated
	}
	return false
}

// ForgetWarning forgets the warning that [AlreadyWarned] remembers.
func ForgetWarning(env func(string) (string, bool)) {
	if dir := StateDir(env); dir != "" {
		_ = os.Remove(filepath.Join(dir, warnedFile)) // it is usually not there
	}
}
