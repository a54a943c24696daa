package forward

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"time"

	"github.com/sscli/sscli/cmd/sscli/internal/outage"
)

// A carrier accepts connections on a listener and forwards each to the broker in the cluster.
type carrier struct {
	dial     func(ctx context.Context, network, address string) (net.Conn, error)
	listener net.Listener
	timeout  time.Duration // for connecting to the broker

	cancel context.CancelFunc // cancels attempts to connect to the broker; nil before start
	wg     sync.WaitGroup
	mu     sync.Mutex
	outage outage.Reporter
	conns  map[net.Conn]bool // open connections; nil once the carrier is closed
}

// start accepts connections until close.
func (c *carrier) start(ctx context.Context) {
	c.conns = make(map[net.Conn]bool)
	ctx, c.cancel = context.WithCancel(ctx)
	c.wg.Go(func() {
		for {
			nc, err := c.listener.Accept()
			if errors.Is(err, net.ErrClosed) {
				return
			}
			if err != nil { // such as too many open files
				time.Sleep(100 * time.Millisecond)
				continue
			}
			c.wg.Go(func() { c.carry(ctx, nc) })
		}
	})
}

// carry forwards one connection until it ends.
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
	// When one direction ends, close both connections, because MQTT needs both directions.
	var copies sync.WaitGroup
	for _, way := range [2][2]net.Conn{{nc, broker}, {broker, nc}} {
		copies.Go(func() {
			_, _ = io.Copy(way[0], way[1]) // the client and the broker see that their connection was lost
			_ = nc.Close()
			_ = broker.Close()
		})
	}
	copies.Wait()
}

// report tells the user when connections to the broker begin to fail, and when they work again.
func (c *carrier) report(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		err = connectTimeout(c.timeout, err)
	}
	c.outage.Report(err, "the next connection tries again")
}

// add records an open connection, so that close closes it. If the carrier is already closed, add closes
// the connection and returns false.
func (c *carrier) add(nc net.Conn) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.conns == nil {
		_ = nc.Close() // no data is lost
		return false
	}
	c.conns[nc] = true
	return true
}

func (c *carrier) remove(nc net.Conn) {
	_ = nc.Close() // fails if carry or close has closed it
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.conns, nc)
}

// close closes the listener and all connections, and waits for their goroutines.
func (c *carrier) close() error {
	err := c.listener.Close()
	c.mu.Lock()
	for nc := range c.conns {
		_ = nc.Close()
	}
	c.conns = nil
	c.mu.Unlock()
	if c.cancel != nil {
		c.cancel()
	}
	c.wg.Wait()
	return err
}
