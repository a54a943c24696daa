package terminal

import (
	"context"
	"io"
	"os"
	"sync/atomic"
	"time"
)

// An Output is standard output or standard error. A reader that stops, such as a pager or a collector behind a full pipe,
// blocks writes. It does not block the end of the process: once a signal has asked sscli to end, a write
// waits for a second at most, and no later write waits.
type Output struct {
	*os.File
	Ended context.Context // ends, with the signal as its cause, when a signal asks sscli to end; nil = writes wait forever
	stuck atomic.Bool
	slow  atomic.Bool // writeNow cannot write here
}

// Write writes b. If the reader takes it neither at once nor within a second after the signal, the error is the cause
// of Ended, and b must not change any more, because the write may still happen.
func (o *Output) Write(b []byte) (n int, err error) {
	switch {
	case o.Ended == nil:
		return o.File.Write(b)
	case o.stuck.Load():
		return 0, context.Cause(o.Ended)
	case o.writeNow(b):
		return len(b), nil
	}
	written := make(chan struct{})
	var result struct {
		n   int
		err error
	}
	go func() {
		defer close(written)
		result.n, result.err = o.File.Write(b)
	}()
	select {
	case <-written:
		return result.n, result.err
	case <-o.Ended.Done():
	}
	select {
	case <-written:
		return result.n, result.err
	case <-time.After(time.Second):
		o.stuck.Store(true)
		return 0, context.Cause(o.Ended)
	}
}

// WriteString is like Write.
func (o *Output) WriteString(s string) (n int, err error) { return o.Write([]byte(s)) }

// ReadFrom hides the method of File, which does not use Write.
func (o *Output) ReadFrom(r io.Reader) (int64, error) { return io.Copy(struct{ io.Writer }{o}, r) }
