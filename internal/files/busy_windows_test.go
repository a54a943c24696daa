package files

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/windows"
)

// TestReplaceOpenFile replaces a file that another handle closes shortly after the call of Replace.
func TestReplaceOpenFile(t *testing.T) {
	name := filepath.Join(t.TempDir(), "a")
	if err := os.WriteFile(name, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	tries := 0
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	next := name + ".next"
	if err := os.WriteFile(next, []byte("new"), 0o600); err != nil {
		t.Fatal(err)
	}
	err = RetryBusy(func() error {
		if tries++; tries == 3 {
			f.Close()
		}
		return os.Rename(next, name)
	})
	if text, readErr := os.ReadFile(name); err != nil || readErr != nil || string(text) != "new" || tries != 3 {
		t.Errorf("after %d tries: %v, %q, %v", tries, err, text, readErr)
	}
}

// TestOpenBusy opens a file that another handle shares with nobody and closes shortly after the call of Open.
func TestOpenBusy(t *testing.T) {
	name := filepath.Join(t.TempDir(), "a")
	if err := os.WriteFile(name, []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	path, err := windows.UTF16PtrFromString(name)
	if err != nil {
		t.Fatal(err)
	}
	h, err := windows.CreateFile(path, windows.GENERIC_READ, 0, nil, windows.OPEN_EXISTING, windows.FILE_ATTRIBUTE_NORMAL, 0)
	if err != nil {
		t.Fatal(err)
	}
	if f, err := os.Open(name); err == nil {
		f.Close()
		t.Fatal("the file is not busy")
	}
	closed := make(chan error)
	time.AfterFunc(10*time.Millisecond, func() { closed <- windows.CloseHandle(h) })
	text, err := ReadText(name)
	if err := errors.Join(err, <-closed); err != nil || string(text) != "text" {
		t.Errorf("%q, %v", text, err)
	}
}
