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

// ReadFile reads a file to its end. If ctx ends first, as with a FIFO that nobody writes to, the
// error is its cause.
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
			return nil, context.Cause(ctx) // nothing would end the read
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

// release ends an attempt to open a FIFO for reading, which waits for a writer, and reports whether
// it did: it opens the FIFO for writing. It tries for a while, because the reader may not have
// begun to open the FIFO yet.
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
