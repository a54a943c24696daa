package client

import (
	"context"
	"time"

	"github.com/sscli/sscli/internal/mqtt"
)

// While no store is listening, a request is sent again every storeRetry, because the store may
// be about to start. The request fails when storePatience has passed since the broker first
// reported no subscribers.
const (
	storePatience = time.Second
	storeRetry    = 200 * time.Millisecond
)

// handleNoSubscribers handles a PUBACK that reports no subscribers: the broker has discarded this
// copy of the request. Unless another copy is unacknowledged or accepted, handleNoSubscribers
// schedules a new copy or, once storePatience has passed, fails the request.
func (r *request) handleNoSubscribers() {
	r.s.mu.Lock()
	r.copies--
	if r.noSubscribers.IsZero() {
		r.noSubscribers = time.Now()
	}
	left := time.Until(r.noSubscribers.Add(storePatience))
	another := r.accepted || r.copies > 0
	r.s.mu.Unlock()
	switch {
	case another: // the outcome of the other copy counts
	case left <= 0:
		r.s.finish(r.id, &NoStoreError{})
	default:
		time.AfterFunc(min(storeRetry, left), r.retry)
	}
}

// retry sends another copy of a request that no store has received.
func (r *request) retry() {
	if !r.s.hold() {
		return
	}
	defer r.s.wg.Done()
	r.s.mu.Lock()
	conn := r.conn
	_, outstanding := r.s.outstanding.Get(r.id)
	r.s.mu.Unlock()
	switch {
	case !outstanding:
		return
	case conn == nil: // the request was sent with SUBSCRIBE, which is not answered yet
		time.AfterFunc(storeRetry, r.retry)
		return
	}
	ctx, cancel := context.WithTimeout(r.s.ctx, storePatience)
	defer cancel()
	if err := r.sendCopy(ctx, conn); err != nil {
		r.s.finish(r.id, err)
	}
}

// sendCopy sends another copy of a request, unless the request has ended. An error means that the copy was
// not sent.
func (r *request) sendCopy(ctx context.Context, conn *mqtt.Conn) error {
	m := r.message()
	m.Expiry = wholeSeconds(time.Until(r.sent.Add(r.expiry)))
	r.s.mu.Lock()
	_, outstanding := r.s.outstanding.Get(r.id)
	if outstanding {
		r.expires = time.Now().Add(m.Expiry)
		r.copies++
	}
	r.s.mu.Unlock()
	if !outstanding {
		return nil // the error of the request may say that the store did not receive it
	}
	err := conn.Publish(ctx, m, r.onAck)
	if err != nil {
		r.s.mu.Lock()
		r.copies--
		r.s.mu.Unlock()
	}
	return err
}

// hasNoSubscribers reports whether no store has received the request: the broker has discarded
// every copy.
func (r *request) hasNoSubscribers() bool {
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	return !r.noSubscribers.IsZero() && !r.accepted && r.copies == 0
}
