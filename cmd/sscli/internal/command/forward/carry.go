package forward

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"time"

	"github.com/sscli/sscli/cmd/sscli/internal/app"
)

// A carrier carries the connections of a listener through the way into the cluster.
type carrier struct {
	a        *app.App
	dial     func(ctx context.Context, network, address string) (net.Conn, error)
	listener net.Listener
	timeout  time.Duration // to open the way for one connection

	wg     sync.WaitGroup
	mu     sync.Mutex
	outage app.Outage
	conns  map[net.Conn]bool // open; nil once the carrier is closed
}

// start accepts connections until close.
func (c *carrier) start(ctx context.Context) {
	c.conns = make(map[net.Conn]bool)
	c.wg.Go(func() {
		for {
			nc, err := c.listener.Accept()
			if errors.Is(err, net.ErrClosed) {
				return
			}
			if err != nil { // too many open files
				time.Sleep(100 * time.Millisecond)
				continue
			}
			c.wg.Go(func() { c.carry(ctx, nc) })
		}
	})
}

// carry carries one connection to its end.
func (c *carrier) carry(ctx context.Context, nc net.Conn) {
	if !c.add(nc) {
		return
	}
	defer c.remove(nc)
	limited, cancel := context.WithTimeout(ctx, c.timeout)
	broker, err := c.dial(limited, "", "")
	cancel()
	if ctx.Err() != nil {
		return
	}
	c.report(err)
	if err != nil || !c.add(broker) {
		return
	}
	defer c.remove(broker)
	// The end of one direction ends both: an MQTT connection is of no use with one.
	var both sync.WaitGroup
	for _, way := range [2][2]net.Conn{{nc, broker}, {broker, nc}} {
		both.Go(func() {
			_, _ = io.Copy(way[0], way[1]) // each end reports its loss itself
			_ = nc.Close()
			_ = broker.Close()
		})
	}
	both.Wait()
}

// report prints that the way is closed, or open again.
func (c *carrier) report(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		err = connectTimeout(c.timeout, err)
	}
	c.outage.Report(c.a, err, "the next connection tries again")
}

// add remembers an open connection. If the carrier is closed it closes the connection and returns
// false.
func (c *carrier) add(nc net.Conn) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.conns == nil {
		_ = nc.Close() // it carried nothing
		return false
	}
	c.conns[nc] = true
	return true
}

func (c *carrier) remove(nc net.Conn) {
	_ = nc.Close() // it may be closed already
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.conns, nc)
}

// close closes the listener and all connections, and waits until they have ended.
func (c *carrier) close() error {
	err := c.listener.Close()
	c.mu.Lock()
	for nc := range c.conns {
		_ = nc.Close() // its end does not matter any more
	}
	c.conns = nil
	c.mu.Unlock()
	c.wg.Wait()
	return err
}
