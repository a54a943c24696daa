package terminal

import "golang.org/x/sys/unix"

// pipeBuf is PIPE_BUF: a pipe takes a write of at most so many bytes whole or not at all.
const pipeBuf = 4096

// writeNow writes b if a pipe has room for all of it, for the price of a plain write. It reports whether it did, which it never
// does for long writes, terminals and files, and before Linux 6.4.
func (o *Output) writeNow(b []byte) (done bool) {
	if len(b) == 0 || len(b) > pipeBuf || o.slow.Load() {
		return false
	}
	raw, err := o.SyscallConn()
	if err != nil {
		return false
	}
	_ = raw.Control(func(fd uintptr) { // the write that follows returns an error again
		n, err := unix.Pwritev2(int(fd), [][]byte{b}, -1, unix.RWF_NOWAIT)
		if err != nil && err != unix.EAGAIN && err != unix.EINTR {
			o.slow.Store(true)
		}
		done = n == len(b)
	})
	return done
}
