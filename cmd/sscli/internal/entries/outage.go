package entries

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
	pause time.Duration
}

// The pause between two attempts to connect begins with the first and ends with the last.
const (
	firstPause = 50 * time.Millisecond
	lastPause  = 2 * time.Second
)

// wait waits before a request that ended with err is sent again. It reports false if that
// would be of no use: err is not about the connection or is permanent, the connection has
// been away for too long, or ctx ends.
func (o *outage) wait(ctx context.Context, err error) bool {
	if !isConnection(err) || client.IsPermanent(err) || ctx.Err() != nil {
		return false
	}
	o.mu.Lock()
	first := o.since.IsZero()
	if first {
		o.since, o.pause = time.Now(), 0
	}
	left, pause := o.limit-time.Since(o.since), o.pause
	o.pause = min(max(2*o.pause, firstPause), lastPause)
	o.mu.Unlock()
	if first && o.trouble != nil {
		o.trouble(err)
	}
	return left > 0 && wait.For(ctx, min(pause, left))
}

// over notes that a request was answered.
func (o *outage) over() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.since = time.Time{}
}

// isConnection reports whether err is a connection that broke, or could not be made.
func isConnection(err error) bool {
	if refused, ok := errors.AsType[*mqtt.ReasonError](err); ok {
		return refused.Packet != "PUBACK"
	}
	return isA[*mqtt.LostError](err) || isA[*mqtt.DialError](err)
}
