package lock

import (
	"fmt"
	"time"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/cmd/sscli/internal/app"
	"github.com/sscli/sscli/format"
)

// liveInterval is the time between two updates of the line.
const liveInterval = 100 * time.Millisecond

// showLease shows the lease of a lock in one line of the terminal, until end is called.
func showLease(a *app.App, l *client.Lock) (end func()) {
	if a.Output != "human" {
		return func() {}
	}
	first := l.Lease()
	_, end = app.Live(a, liveInterval, func() string {
		lease := l.Lease()
		ttl := l.Timing().TTL
		left := lease.UntilIn() + ttl - lease.Until.Sub(lease.Sent) // Until has a margin
		return leaseText(l.Name(), lease.Sent.After(first.Sent), ttl-left, left)
	})
	return end
}

// leaseText describes a lease that was acquired or renewed some time ago and expires after
// left.
func leaseText(name string, renewed bool, ago, left time.Duration) string {
	what := "acquired"
	if renewed {
		what = "renewed"
	}
	if left <= 0 {
		return fmt.Sprintf("lock %s: %s %s ago, expired", format.Brief(name), what, tenths(ago))
	}
	return fmt.Sprintf("lock %s: %s %s ago, expires in %s", format.Brief(name), what, tenths(ago), tenths(left))
}

// tenths returns a duration that does not flicker: 3.1s, 11.0s, 1m2.0s.
func tenths(d time.Duration) string {
	d = d.Truncate(100 * time.Millisecond)
	if d < time.Minute {
		return fmt.Sprintf("%.1fs", d.Seconds())
	}
	minutes := d / time.Minute
	return fmt.Sprintf("%dm%.1fs", minutes, (d - minutes*time.Minute).Seconds())
}
