package terminal

import (
	"context"
	"io"
	"io/fs"
	"os"
	"sync/atomic"
	"syscall"
	"time"
)

// ReadFile reads a file to its end. If ctx ends before, as with a FIFO that nobody writes to,
// the error is the cause of that.
func ReadFile(ctx context.Context, name string) ([]byte, error) {
	var opened atomic.Pointer[os.File]
	return interruptible(ctx, func() ([]byte, error) {
		f, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		opened.Store(f)
		if ctx.Err() != nil {
			return nil, context.Cause(ctx) // and nobody ends the read
		}
		return io.ReadAll(f)
	}, func() bool {
		if opened.Load() == nil && !release(name) {
			return false
		}
		f := opened.Load()
		return f == nil || f.SetReadDeadline(time.Now()) == nil
	})
}

// release lets a FIFO be opened for reading that waits for its first writer. It reports whether
// the name is of a FIFO that is opened so: the reader may be about to.
func release(name string) bool {
	const attempts, pause = 100, time.Millisecond
	info, err := os.Stat(name)
	if err != nil || info.Mode()&fs.ModeNamedPipe == 0 {
		return false
	}
	for range attempts {
		if f, err := os.OpenFile(name, os.O_WRONLY|syscall.O_NONBLOCK, 0); err == nil {
			return f.Close() == nil
		}
		time.Sleep(pause) // ENXIO: nobody reads yet
	}
	return false
}
