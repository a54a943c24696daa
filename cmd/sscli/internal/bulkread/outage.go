package bulkread

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/client/mqtt"
	"github.com/sscli/sscli/client/wait"
)

// An outage is the time without a connection. Its methods may be called concurrently.
type outage struct {
	limit   time.Duration
	trouble func(error)

	mu    sync.Mutex
	since time.Time // zero: there is a connection, as far as is known
	ended time.Time // when the last outage was over
	pause time.Duration
}

// The pause between two attempts to connect begins with the first and ends with the last.
const (
	firstPause = 50 * time.Millisecond
	lastPause  = 2 * time.Second
)

// wait waits before a request that was sent at a time, and ended with err, is sent again. It
// reports false if that would be of no use: err is not about the connection or is permanent,
// the connection has been away for too long, or ctx ends.
func (o *outage) wait(ctx context.Context, sent time.Time, err error) bool {
	if !isConnection(err) || client.IsPermanent(err) || ctx.Err() != nil {
		return false
	}
	o.mu.Lock()
	if o.since.IsZero() && sent.Before(o.ended) { // it was under way when the connection broke
		o.mu.Unlock()
		return true
	}
	if o.since.IsZero() {
		o.since, o.pause = time.Now(), 0
	}
	left, pause := o.limit-time.Since(o.since), o.pause
	o.pause = min(max(2*o.pause, firstPause), lastPause)
	o.tell(err)
	o.mu.Unlock()
	return left > 0 && wait.For(ctx, min(pause, left))
}

// over notes that a request was answered which was sent at that time.
func (o *outage) over(sent time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.since.IsZero() || sent.Before(o.since) {
		return
	}
	o.since, o.ended = time.Time{}, time.Now()
	o.tell(nil)
}

// The caller of tell holds o.mu.
func (o *outage) tell(err error) {
	if o.trouble != nil {
		o.trouble(err)
	}
}

// isConnection reports whether err is a connection that broke, or could not be made.
func isConnection(err error) bool {
	if refused, ok := errors.AsType[*mqtt.ReasonError](err); ok {
		return refused.Packet != "PUBACK"
	}
	return isA[*mqtt.LostError](err) || isA[*mqtt.DialError](err)
}
