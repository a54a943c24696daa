package gateway

import (
	"context"
	"time"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/client/wait"
)

// The pauses between attempts to get back what was lost.
const (
	firstPause   = 100 * time.Millisecond
	longestPause = 10 * time.Second
)

// probeKey is a key that is read to connect. It need not exist, nor be readable.
const probeKey = "sscli/gateway"

// keepConnected connects again whenever the connection is lost, so that the first request
// afterwards need not, until ctx ends. The error is why the broker accepts no further
// connection of this client.
func (b *backend) keepConnected(ctx context.Context) error {
	for {
		select {
		case <-b.session.Down():
		case <-ctx.Done():
			return nil
		}
		lost := b.session.Err()
		if lost == nil {
			continue // a request has connected again
		}
		if ctx.Err() != nil {
			return nil
		}
		since := time.Now()
		b.log.Warn("the connection to the broker was lost, trying again", "error", lost)
		for pause := firstPause; ; pause = min(2*pause, longestPause) {
			_, err := b.session.Get(ctx, probeKey)
			if b.session.Err() == nil {
				break // whatever the answer is
			}
			if client.IsPermanent(err) {
				return err
			}
			if !wait.For(ctx, pause) {
				return nil
			}
		}
		b.log.Info("connected to the broker again", "after", time.Since(since).Round(time.Millisecond))
	}
}
