// Package socket reads and writes TCP connections with less CPU than package net, for servers
// that answer within microseconds.
//
//	if c := socket.New(nc); c != nil {
//		n, err := c.Read(buf)
//		…
//		n, err = c.TryWrite(reply) // write the rest, if any, with nc.Write
//	}
//
// Go's scheduler assumes that each Read and Write of a net.Conn makes a system call that may block,
// so it wakes its monitor thread, which then polls every 20 µs. In a server that alternates between
// short work and short waits, the polling takes much of the CPU time. The sockets that Go opens
// never block, so this package makes system calls on them without telling the scheduler. A
// connection that always has data to read is an exception: the package tells the scheduler about
// its system calls, because otherwise only the monitor thread could preempt the reading goroutine
// to let other goroutines run.
package socket
