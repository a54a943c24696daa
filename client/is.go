package client

import (
	"context"
	"slices"
	"time"

	"github.com/sscli/sscli/internal/mqtt"
	"github.com/sscli/sscli/internal/wire"
)

// What to do after an error, for errors.Is. The error itself is a *[StoreError], a *[ReasonError] or
// another type, and says more.
var (
	// ErrFenced means that the key is protected by a fencing token, and that the request had none, an
	// older one, or one from the future. If the request had the token of a lock, the lock was lost,
	// or a newer token of the lock was faster.
	ErrFenced error = &condition{"the write was fenced out", []ErrorKind{wire.ErrorFenceRequired, wire.ErrorFenceLower, wire.ErrorFenceAhead}, nil}

	// ErrNotAuthorized means that the broker's rules do not allow this client to use the key, to
	// publish or to subscribe.
	ErrNotAuthorized error = &condition{"not authorized", []ErrorKind{wire.ErrorNotAuthorized}, []byte{mqtt.ReasonNotAuthorized}}

	// ErrQuota means that the store is full.
	ErrQuota error = &condition{"the store is full", []ErrorKind{wire.ErrorQuota}, nil}

	// ErrClock means that the clocks of the client and the store, or of the store that issued a fencing
	// token, differ by more than a minute.
	ErrClock error = &condition{"the clocks differ", []ErrorKind{wire.ErrorClockAhead, wire.ErrorFenceAhead}, nil}

	// ErrNoReply means that a time limit of the session, such as Options.Timeout, has passed. If a
	// deadline of the caller's own context has passed, the error is context.DeadlineExceeded instead.
	// ErrNoReply itself also matches context.DeadlineExceeded.
	ErrNoReply error = noReplyError{}
)

// A condition is an error that StoreErrors and ReasonErrors match.
type condition struct {
	text  string
	kinds []ErrorKind
	codes []byte
}

func (c *condition) Error() string { return c.text }

// HasKind reports whether a *[StoreError] of a kind matches c.
func (c *condition) HasKind(k ErrorKind) bool { return slices.Contains(c.kinds, k) }

// HasCode reports whether a *[ReasonError] with a code matches c.
func (c *condition) HasCode(code byte) bool { return slices.Contains(c.codes, code) }

type noReplyError struct{}

func (noReplyError) Error() string { return "timed out" }

// Timeout and Temporary make the error a net.Error, as context.DeadlineExceeded is.
func (noReplyError) Timeout() bool   { return true }
func (noReplyError) Temporary() bool { return true }

func (noReplyError) Is(target error) bool { return target == context.DeadlineExceeded }

// limitTo returns a context that ends with ErrNoReply when d has passed.
func limitTo(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, d, ErrNoReply)
}
