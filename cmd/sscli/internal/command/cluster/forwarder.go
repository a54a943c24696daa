package cluster

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"time"

	"github.com/sscli/sscli/cmd/sscli/internal/app"
)

// A forwarder accepts connections on a listener and forwards each to the broker in the cluster.
type forwarder struct {
	dial     func(ctx context.Context, network, address string) (net.Conn, error)
	listener net.Listener
	timeout  time.Duration // for connecting to the broker

	cancel context.CancelFunc // cancels attempts to connect to the broker; nil = not started
	wg     sync.WaitGroup
	mu     sync.Mutex
	outage app.Outage
	conns  map[net.Conn]bool // open connections; nil once the forwarder is closed
}

// start accepts connections until close.
func (f *forwarder) start(ctx context.Context) {
	f.conns = make(map[net.Conn]bool)
	ctx, f.cancel = context.WithCancel(ctx)
	f.wg.Go(func() {
		for {
			nc, err := f.listener.Accept()
			if errors.Is(err, net.ErrClosed) {
				return
			}
			if err != nil { // such as too many open files
				time.Sleep(100 * time.Millisecond)
				continue
			}
			f.wg.Go(func() { f.forward(ctx, nc) })
		}
	})
}

// forward carries the bytes of one connection until it ends.
func (f *forwarder) forward(ctx context.Context, nc net.Conn) {
	if !f.add(nc) {
		return
	}
	defer f.remove(nc)
	limited, cancel := context.WithTimeout(ctx, f.timeout)
	broker, err := f.dial(limited, "", "")
	cancel()
	if ctx.Err() != nil {
		return
	}
	f.report(err)
	if err != nil || !f.add(broker) {
		return
	}
	defer f.remove(broker)
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
func (f *forwarder) report(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err != nil {
		err = connectTimeout(f.timeout, err)
	}
	f.outage.Report(err, "the next connection tries again")
}

// add records an open connection, so that close closes it. If the forwarder is already closed, add closes
// the connection and returns false.
func (f *forwarder) add(nc net.Conn) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.conns == nil {
		_ = nc.Close() // no data is lost
		return false
	}
	f.conns[nc] = true
	return true
}

func (f *forwarder) remove(nc net.Conn) {
	_ = nc.Close() // fails if forward or close has closed it
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.conns, nc)
}

// close closes the listener and all connections, and waits for their goroutines.
func (f *forwarder) close() error {
	err := f.listener.Close()
	f.mu.Lock()
	for nc := range f.conns {
		_ = nc.Close()
	}
	f.conns = nil
	f.mu.Unlock()
	if f.cancel != nil {
		f.cancel()
	}
	f.wg.Wait()
	return err
}
