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

// toldFile is the name of the file of [Told] in [StateDir].
const toldFile = "warned"

// toldFor is how long a warning that was given need not be given again.
const toldFor = 24 * time.Hour

// Told reports whether a warning was given within the last day, and remembers that it is given
// now if not. It remembers a hash of one warning, which may hold a secret, until [Forget]. Where
// nothing can be remembered, it was not given.
func Told(env func(string) (string, bool), warning string, now time.Time) bool {
	dir := StateDir(env)
	if dir == "" {
		return false
	}
	file := filepath.Join(dir, toldFile)
	hash := fmt.Sprintf("%x", sha256.Sum256([]byte(warning)))
	if info, err := os.Stat(file); err == nil && now.Sub(info.ModTime()).Abs() < toldFor {
		if text, err := os.ReadFile(file); err == nil && string(text) == hash {
			return true
		}
	}
	if os.MkdirAll(dir, 0o700) == nil {
		_ = os.WriteFile(file, []byte(hash), 0o600) // else it is given again
	}
	return false
}

// Forget forgets the warning that [Told] remembers.
func Forget(env func(string) (string, bool)) {
	if dir := StateDir(env); dir != "" {
		_ = os.Remove(filepath.Join(dir, toldFile)) // it is usually not there
	}
}
