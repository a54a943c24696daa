package terminal

import (
	"context"
	"io"
	"io/fs"
	"math"
	"os"
	"runtime/debug"
	"slices"
	"sync/atomic"
	"syscall"
	"time"
)

// ReadFile reads a file to its end. If ctx ends first, for example while nobody writes to a FIFO, the
// error is the cause of ctx.
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
			return nil, context.Cause(ctx) // stop, below, may have run already; then nothing would end the read
		}
		return readAll(f)
	}, func() bool {
		if opened.Load() == nil && !release(name) {
			return false
		}
		f := opened.Load()
		return f == nil || f.SetReadDeadline(time.Now()) == nil
	})
}

// readAll is like io.ReadAll, but takes no memory beside the result: a large value exists a few times anyway until
// it is sent.
func readAll(r io.Reader) ([]byte, error) {
	const large = 16 << 20
	var size int64
	if f, ok := r.(*os.File); ok {
		if info, err := f.Stat(); err == nil && info.Mode().IsRegular() {
			size = min(info.Size(), math.MaxInt/2)
		}
	}
	if size < large {
		text, err := io.ReadAll(r)
		if len(text) >= large {
			debug.FreeOSMemory() // of the parts that io.ReadAll joined
		}
		return text, err
	}
	text := make([]byte, 0, size+1) // a file that has not grown ends before the last byte
	for {
		if len(text) == cap(text) {
			text = slices.Grow(text, large)
		}
		n, err := r.Read(text[len(text):cap(text)])
		text = text[:len(text)+n]
		switch {
		case err == io.EOF:
			return text, nil
		case err != nil:
			return text, err
		}
	}
}

// release unblocks a goroutine that opens a FIFO for reading and waits for a writer: it opens the
// FIFO for writing. It tries for 100 ms, because the reader may not have begun to open the FIFO
// yet, and reports whether it succeeded.
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
		time.Sleep(pause) // ENXIO: the FIFO has no reader yet
	}
	return false
}
