package bulkread

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/client/mqtt"
	"github.com/sscli/sscli/client/wait"
	"github.com/sscli/sscli/cmd/sscli/internal/app"
	"github.com/sscli/sscli/cmd/sscli/internal/fault"
)

// named adds the name of the store's context to an error.
func (r *Reader) named(err error) error { return r.options.named(err) }

func (o Options) named(err error) error {
	if o.Context == "" {
		return err
	}
	return fmt.Errorf("context %s: %w", o.Context, err)
}

// A reconnect decides whether a request is sent again after the connection was lost, and reports
// the outage. Its methods may be called concurrently.
type reconnect struct {
	options Options

	mu     sync.Mutex
	outage app.Outage
	ended  time.Time     // end of the last outage
	pause  time.Duration // before the next attempt
}

// The pause between two attempts to connect grows from firstPause to maxPause.
const (
	firstPause = 50 * time.Millisecond
	maxPause   = 2 * time.Second
)

// wait waits until a request can be sent again, which was sent at a time and ended with err. It
// returns false if the request must not be sent again: err is not about the connection or is
// permanent, the connection has been away for too long, or ctx ends.
func (r *reconnect) wait(ctx context.Context, sent time.Time, err error) bool {
	if !isConnection(err) || client.IsPermanent(err) || ctx.Err() != nil {
		return false
	}
	r.mu.Lock()
	if !r.outage.Away() {
		if sent.Before(r.ended) { // the request was in flight when the connection was lost
			r.mu.Unlock()
			return true
		}
		r.pause = 0
	}
	r.outage.Trouble(r.options.App, r.options.named(err), "connecting again")
	left, pause := r.options.Timeout-time.Since(r.outage.Began()), r.pause
	r.pause = min(max(2*r.pause, firstPause), maxPause)
	r.mu.Unlock()
	return left > 0 && wait.For(ctx, min(pause, left))
}

// answered ends the outage: a request that was sent after its beginning was answered.
func (r *reconnect) answered(sent time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.outage.Away() || sent.Before(r.outage.Began()) {
		return
	}
	again := ""
	if r.options.Context != "" {
		again = ", context " + r.options.Context
	}
	r.outage.Over(r.options.App, again)
	r.ended = time.Now()
}

// isConnection reports whether a connection was lost, or could not be made.
func isConnection(err error) bool {
	if refused, ok := errors.AsType[*mqtt.ReasonError](err); ok {
		return refused.Packet != "PUBACK"
	}
	return fault.IsA[*mqtt.LostError](err) || fault.IsA[*mqtt.DialError](err)
}

// isAboutKey reports whether the store or the broker refused one request, rather than the
// connection.
func isAboutKey(err error) bool {
	if refused, ok := errors.AsType[*mqtt.ReasonError](err); ok {
		return refused.Packet == "PUBACK"
	}
	return fault.IsA[*client.StoreError](err) || fault.IsA[*client.StatusError](err) || fault.IsA[*client.AnswerError](err) ||
		fault.IsA[*client.InvalidError](err) || fault.IsA[*client.TooLargeError](err)
}
