// Package socket reads and writes TCP connections of servers whose answers take microseconds.
//
//	if c := socket.New(nc); c != nil {
//		n, err := c.Read(buf)
//		…
//		n, err = c.TryWrite(reply) // the rest, if any, with nc.Write
//	}
//
// With each Read and Write of a net.Conn, Go's scheduler prepares for a system call that may take
// long: it wakes a thread that looks after such calls, every 20 µs from then on. Where work and
// waiting alternate that fast, this is a good part of the server's CPU. But a socket of Go never
// blocks. So here the scheduler is not told, except when a connection always has something to
// read: that thread also sees to it that other goroutines get their turn.
package socket
