package client

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/sscli/sscli/internal/files"
)

// TestReadReplacedToken reads a token file while another process replaces it.
func TestReadReplacedToken(t *testing.T) {
	name := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(name, []byte("token"), 0o600); err != nil {
		t.Fatal(err)
	}
	read, replaced := make(chan bool), make(chan error)
	go func() {
		defer close(replaced)
		for {
			select {
			case <-read:
				return
			default:
			}
			next := name + ".next"
			err := os.WriteFile(next, []byte("token"), 0o600)
			if err == nil {
				err = files.RetryBusy(func() error { return os.Rename(next, name) })
			}
			if err != nil {
				replaced <- err
				return
			}
		}
	}()
	for i := range 3000 {
		if token, err := ReadToken(name); string(token) != "token" {
			t.Errorf("read %d: %q, %v", i, token, err)
			break
		}
	}
	close(read)
	if err := <-replaced; err != nil {
		t.Error(err)
	}
}
