package config

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"time"
)

// StateDir returns the directory for files that sscli keeps between runs, as in the XDG Base Directory
// Specification. It returns "" if the environment names no home directory.
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

// warnedFile is the name of the file in [StateDir] that [AlreadyWarned] uses.
const warnedFile = "warned"

// warnedFor is the time after which a warning is repeated.
const warnedFor = 24 * time.Hour

// AlreadyWarned reports whether sscli printed this warning within the last day. If not, it records
// that the warning is printed now. It stores only the last warning, as a hash, because a warning may
// hold a secret. It returns false if the environment names no home directory.
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
		_ = os.WriteFile(file, []byte(hash), 0o600) // on an error the next run warns again
	}
	return false
}

// ForgetWarning removes the warning that [AlreadyWarned] recorded.
func ForgetWarning(env func(string) (string, bool)) {
	if dir := StateDir(env); dir != "" {
		_ = os.Remove(filepath.Join(dir, warnedFile)) // the file usually does not exist
	}
}
