// Package socket reads and writes TCP connections with less CPU than package net, for servers
// that answer within microseconds.
//
//	if c := socket.New(nc); c != nil {
//		n, err := c.Read(buf)
//		…
//		n, err = c.TryWrite(reply) // the rest, if any, with nc.Write
//	}
//
// For each Read and Write of a net.Conn, Go's scheduler expects a system call that may block: it
// wakes its monitor thread, which then polls every 20 µs. In a server that alternates between
// short work and short waits, this costs a good part of the CPU. The sockets that Go opens never
// block, so this package makes their system calls without telling the scheduler. The exception is
// a connection that always has data to read: there the monitor is needed, because it also preempts
// goroutines so that others can run.
package socket
