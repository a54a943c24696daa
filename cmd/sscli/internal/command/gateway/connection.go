package gateway

import (
	"context"
	"time"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/internal/wait"
)

// probeKey is the key that keepConnected reads to reconnect. It need not exist, and the user need not
// be allowed to read it.
const probeKey = "sscli/gateway"

// retry calls try until it succeeds or ctx ends, with growing pauses.
func (b *backend) retry(ctx context.Context, try func() error) {
	const maxPause = 10 * time.Second
	for pause := 100 * time.Millisecond; try() != nil && wait.For(ctx, pause); {
		pause = min(2*pause, maxPause)
	}
}

// keepConnected reconnects as soon as the connection is lost, so that the next request need not wait.
// It returns nil when ctx ends, or an error if the broker refuses this client permanently.
func (b *backend) keepConnected(ctx context.Context) error {
	for {
		select {
		case <-b.session.Down():
		case <-ctx.Done():
			return nil
		}
		lost := b.session.Err()
		if lost == nil {
			continue // a request has already reconnected
		}
		if ctx.Err() != nil {
			return nil
		}
		since := time.Now()
		b.log.Warn("the connection to the broker was lost, trying again", "error", lost)
		var permanent error
		b.retry(ctx, func() error {
			_, err := b.session.Get(ctx, probeKey)
			if b.session.Err() == nil {
				return nil // connected, even if the answer is an error
			}
			if client.IsPermanent(err) {
				permanent = err
				return nil
			}
			return err
		})
		if permanent != nil || ctx.Err() != nil {
			return permanent
		}
		b.log.Info("connected to the broker again", "after", time.Since(since).Round(time.Millisecond))
	}
}
