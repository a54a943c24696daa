package client

import (
	"errors"
	"fmt"
	"time"
)

// An InvalidError is a request or an option that cannot be right. Nothing was sent.
type InvalidError struct {
	Err error
}

func (e *InvalidError) Error() string { return e.Err.Error() }

func (e *InvalidError) Unwrap() error { return e.Err }

// isA reports whether err is, or wraps, an error of type E.
func isA[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

func invalid(format string, args ...any) *InvalidError {
	return &InvalidError{fmt.Errorf(format, args...)}
}

// An AnswerError is an invalid reply: it is not RESP3, has a bad HLC, or holds a
// value that cannot answer the command.
type AnswerError struct {
	Err error
}

func (e *AnswerError) Error() string { return "the reply is invalid: " + e.Err.Error() }

func (e *AnswerError) Unwrap() error { return e.Err }

// A StatusError is an answer whose `__stat` is neither 200 nor 204 (protocol.md 1.6). To
// a write it comes in a *[LostAnswerError] unless the status says that the broker's RPC
// layer refused the request before the store saw it.
type StatusError struct {
	Status  int
	Message string
}

func (e *StatusError) Error() string {
	if e.Message == "" {
		return fmt.Sprintf("the store answered with status %d", e.Status)
	}
	return fmt.Sprintf("the store answered with status %d: %q", e.Status, e.Message)
}

// refuses reports whether the status says that the store did not see the request: bad
// request, unsupported content type, or unsupported version of the protocol.
func (e *StatusError) refuses() bool {
	return e.Status == 400 || e.Status == 415 || e.Status == 505
}

// A LostAnswerError is a write that was sent and got no answer, or an answer that does not
// say whether it was applied. [Session.ReadBack] finds out what can be known. It wraps the
// cause: the end of the context, a *[LostError], an *[AnswerError] or a *[StatusError].
type LostAnswerError struct {
	Command   Command
	Timestamp Version   // the request's `__ts`
	Expires   time.Time // when the request expires: the broker then drops it
	Err       error

	accepted bool          // the broker has acknowledged the request, so Expires is certain
	expiry   time.Duration // of the request, counted from its arrival at the broker
}

func (e *LostAnswerError) Error() string {
	if e.answered() {
		return fmt.Sprintf("%s was sent: %v", e.Command.Verb(), e.Err)
	}
	return fmt.Sprintf("%s was sent, no answer came: %v", e.Command.Verb(), e.Err)
}

// answered reports whether there was an answer that does not say the outcome.
func (e *LostAnswerError) answered() bool {
	switch e.Err.(type) {
	case *AnswerError, *StatusError:
		return true
	}
	return false
}

func (e *LostAnswerError) Unwrap() error { return e.Err }

// A WatchError is the error of the watch of one key.
type WatchError struct {
	Key string
	Err error
}

func (e *WatchError) Error() string { return fmt.Sprintf("watch %q: %v", e.Key, e.Err) }

func (e *WatchError) Unwrap() error { return e.Err }

// A NoStoreError is a request that no store received: the broker discarded it, and each copy
// that was sent within the next second, because no client subscribes to requests. It was not
// applied.
type NoStoreError struct{}

func (*NoStoreError) Error() string {
	return "no state store is listening on this broker (PUBACK 0x10)"
}
