package terminal

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"math"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/sscli/sscli/internal/files"
)

// Open opens a file for reading. If ctx ends first, while a FIFO has no writer, the error is the cause of
// ctx.
func Open(ctx context.Context, name string) (*os.File, error) {
	return interruptible(ctx, func() (*os.File, error) {
		f, err := files.Open(name)
		if err == nil && ctx.Err() != nil {
			return nil, errors.Join(context.Cause(ctx), f.Close())
		}
		return f, err
	}, func() bool { return release(name) })
}

// ReadFile reads a file of at most [files.MaxValue] bytes to its end. If ctx ends first, for example while nobody
// writes to a FIFO, the error is the cause of ctx.
func ReadFile(ctx context.Context, name string) (string, error) {
	f, err := Open(ctx, name)
	if err != nil {
		return "", err
	}
	return interruptible(ctx, func() (string, error) {
		defer f.Close() // in this goroutine: on Windows, Close waits until a read has ended
		return readAll(f, files.MaxValue)
	}, func() bool { return f.SetReadDeadline(time.Now()) == nil })
}

// readAll reads at most limit bytes of r, to its end. A large input takes no memory beside the result if its size is
// known, and otherwise takes it twice.
func readAll(r io.Reader, limit int64) (string, error) {
	in := files.Limit(r, limit)
	if known := files.Size(r); known > 0 && known <= limit {
		var text strings.Builder
		text.Grow(int(min(known, math.MaxInt/2)))
		_, err := io.Copy(&text, in)
		return text.String(), err
	}
	const size = 1 << 20
	var parts []string
	for {
		var part strings.Builder
		part.Grow(size)
		_, err := io.CopyN(&part, in, size)
		parts = append(parts, part.String())
		switch {
		case err == io.EOF:
			return strings.Join(parts, ""), nil
		case err != nil:
			return "", err
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
