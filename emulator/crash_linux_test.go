package emulator_test

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/sscli/sscli/emulator"
	"github.com/sscli/sscli/internal/testkit/full"
)

var diskRounds = flag.Int("disk-rounds", 20, "rounds of TestDiskFails")

// TestDiskFails is TestCrash with a disk that, from some write on, is full (ENOSPC) or read-only: the test
// replaces the file descriptor of the data file while the server writes.
func TestDiskFails(t *testing.T) {
	full.Slow(t)
	t.Parallel()
	w := newWorld(t)
	name := filepath.Join(t.TempDir(), "store.db")
	full, err := os.OpenFile("/dev/full", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer full.Close()
	failures := make(map[error]int)
	round := 0
	w.rounds(*diskRounds, func() (string, func()) {
		var file *os.File
		s, err := emulator.New(emulator.Options{Data: emulator.Data{File: name}.OpenedBy(func(name string, flag int, perm os.FileMode) (*os.File, error) {
			var err error
			file, err = os.OpenFile(name, flag, perm)
			return file, err
		})})
		if err != nil {
			t.Fatal(err)
		}
		round++
		return s.Addr().String(), func() {
			broken := full
			if round%2 == 0 {
				var err error
				if broken, err = os.Open(name); err != nil { // read-only
					t.Fatal(err)
				}
				defer broken.Close()
			}
			if err := syscall.Dup3(int(broken.Fd()), int(file.Fd()), syscall.O_CLOEXEC); err != nil {
				t.Fatal(err)
			}
			<-s.Done()
			err := s.Err()
			var errno syscall.Errno
			if _, ok := errors.AsType[*emulator.DataError](err); !ok {
				t.Errorf("the server ended with %v", err)
			}
			_ = errors.As(err, &errno) // bbolt's own error for a file without a size has no errno
			failures[errno]++
			if err := s.Close(); err != nil {
				t.Logf("close: %v", err)
			}
		}
	})
	t.Logf("the failures: %v", failures)
}
