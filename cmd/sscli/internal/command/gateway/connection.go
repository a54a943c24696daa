package gateway

import (
	"context"
	"time"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/internal/retry"
)

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
		again := func(err error) bool { return !client.IsPermanent(err) }
		err := retry.Do(ctx, retry.Options{For: retry.Forever, Again: again}, func() error { return b.session.Connect(ctx) })
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		b.log.Info("connected to the broker again", "after", time.Since(since).Round(time.Millisecond))
	}
}
