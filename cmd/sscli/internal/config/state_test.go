package config

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"
)

// TestTold: the same warning is shown only once a day, and a different warning is shown at once.
func TestTold(t *testing.T) {
	dir := t.TempDir()
	env := func(name string) (string, bool) { return dir, name == "XDG_STATE_HOME" }
	now := time.Now()
	for _, c := range []struct {
		warning string
		after   time.Duration
		told    bool
	}{{"a", 0, false}, {"a", time.Hour, true}, {"b", time.Hour, false}, {"b", time.Hour, true}, {"a", time.Hour, false},
		{"a", 25 * time.Hour, false}} {
		if got := AlreadyWarned(env, c.warning, now.Add(c.after)); got != c.told {
			t.Errorf("%q after %v: %t", c.warning, c.after, got)
		}
	}
	if info, err := os.Stat(filepath.Join(dir, "sscli", "warned")); err != nil || runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	nowhere := func(string) (string, bool) { return "", false }
	for range 2 {
		if AlreadyWarned(nowhere, "a", now) {
			t.Error("remembered without a place for it")
		}
	}
}
