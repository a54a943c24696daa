package bulkread

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/cmd/sscli/internal/fault"
	"github.com/sscli/sscli/internal/mqtt"
	"github.com/sscli/sscli/internal/wait"
)

// named adds the name of the store's context to an error.
func (s *Store) named(err error) error {
	if s.Context == "" {
		return err
	}
	return fmt.Errorf("context %s: %w", s.Context, err)
}

// The first new attempt of an outage follows without a pause. The pause before each later attempt grows
// from firstPause to maxPause.
const (
	firstPause = 50 * time.Millisecond
	maxPause   = 2 * time.Second
)

// Again takes the outcome, reply or err, of a read that was sent at the time sent. If the reply or the
// connection was lost, Again repeats the read. It returns the final outcome.
func (s *Store) Again(ctx context.Context, c client.Command, sent time.Time, reply client.Result, err error) (client.Result, error) {
	for err != nil && s.retry(ctx, sent, err) {
		sent = time.Now()
		limited, cancel := s.limit(ctx, err)
		reply, err = s.Session.Do(limited, c)
		cancel()
	}
	if err == nil {
		s.answered(sent)
		return reply, nil
	}
	return reply, s.unanswered(ctx, c, err)
}

// limit returns the context for a request that follows one whose error was err; nil = no error. After a
// timeout, the new request gets a quarter of RetryFor, so that there is time for several attempts.
func (s *Store) limit(ctx context.Context, err error) (context.Context, context.CancelFunc) {
	if isLost(err) {
		return context.WithTimeout(ctx, s.retryFor()/4)
	}
	return context.WithCancel(ctx)
}

func (s *Store) retryFor() time.Duration { return cmp.Or(s.RetryFor, client.DefaultTimeout) }

// retry reports whether to send a request again after err. sent is the time at which the request was
// sent. Before it returns, retry reports the outage and pauses, unless the request was in flight when
// an outage began that is over now. It returns false if err is neither about the connection nor a
// timeout, if err is permanent, if there has been no reply for RetryFor, or if ctx ends.
func (s *Store) retry(ctx context.Context, sent time.Time, err error) bool {
	if !IsConnection(err) && !isLost(err) || client.IsPermanent(err) || ctx.Err() != nil {
		return false
	}
	doing := "connecting again"
	if isLost(err) {
		doing = fmt.Sprintf("asking again for up to %v", s.retryFor())
	}
	s.mu.Lock()
	if !s.outage.Away() {
		if sent.Before(s.ended) { // the request was in flight when the connection was lost
			s.mu.Unlock()
			return true
		}
		s.pause = 0
	}
	s.outage.Trouble(s.named(err), doing)
	left, pause := s.retryFor()-time.Since(s.outage.Began()), s.pause
	s.pause = min(max(2*s.pause, firstPause), maxPause)
	s.mu.Unlock()
	return left > 0 && wait.For(ctx, min(pause, left))
}

// answered records the reply to a request that was sent at the time sent. It ends the outage if the
// outage began before that time.
func (s *Store) answered(sent time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.outage.Away() || sent.Before(s.outage.Began()) {
		return
	}
	again := ""
	if s.Context != "" {
		again = ", context " + s.Context
	}
	s.outage.Over(again)
	s.ended = time.Now()
}

// isLost reports whether a request was sent and timed out.
func isLost(err error) bool { return fault.IsTimeout(err) && !IsConnection(err) }

// IsConnection reports whether err means that a connection was lost or could not be made.
func IsConnection(err error) bool {
	if refused, ok := errors.AsType[*mqtt.ReasonError](err); ok {
		return refused.Packet != "PUBACK"
	}
	return fault.IsA[*mqtt.LostError](err) || fault.IsA[*mqtt.DialError](err)
}

// IsAboutKey reports whether err is about one request and not about the connection: the request was
// refused or invalid, or its reply was invalid.
func IsAboutKey(err error) bool {
	if refused, ok := errors.AsType[*mqtt.ReasonError](err); ok {
		return refused.Packet == "PUBACK"
	}
	return fault.IsA[*client.StoreError](err) || fault.IsA[*client.StatusError](err) || fault.IsA[*client.AnswerError](err) ||
		fault.IsA[*client.InvalidError](err) || fault.IsA[*client.TooLargeError](err)
}
