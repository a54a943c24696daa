package client

import (
	"fmt"
	"time"
)

// An InvalidError is a request or an option that cannot be right. Nothing was sent.
type InvalidError struct {
	Err error
}

func (e *InvalidError) Error() string { return e.Err.Error() }

func (e *InvalidError) Unwrap() error { return e.Err }

func invalid(format string, args ...any) *InvalidError {
	return &InvalidError{fmt.Errorf(format, args...)}
}

// An AnswerError is an answer that makes no sense: not RESP3, a bad HLC, or a value that
// the command cannot have.
type AnswerError struct {
	Err error
}

func (e *AnswerError) Error() string { return "the answer makes no sense: " + e.Err.Error() }

func (e *AnswerError) Unwrap() error { return e.Err }

// A StatusError is an answer whose `__stat` is neither 200 nor 204: the broker's
// RPC layer refused the request before the store saw it (protocol.md 1.6).
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

// A LostAnswerError is a write that was sent and got no answer. It may have been applied
// or not; [Session.ReadBack] finds out what can be known. It wraps the cause: the end of
// the context or a *[LostError].
type LostAnswerError struct {
	Command   Command
	Timestamp Version   // the request's `__ts`
	Expires   time.Time // when the request expires: the broker then drops it
	Err       error
}

func (e *LostAnswerError) Error() string {
	return fmt.Sprintf("%s was sent, no answer came: %v", e.Command.Verb(), e.Err)
}

func (e *LostAnswerError) Unwrap() error { return e.Err }

// A NoStoreError is a request that the broker accepted while it reported that nobody
// subscribes to requests, and that got no answer: probably the broker has no state store.
type NoStoreError struct {
	Err error // what ended the wait
}

func (e *NoStoreError) Error() string {
	return "no state store is listening on this broker (PUBACK 0x10): " + e.Err.Error()
}

func (e *NoStoreError) Unwrap() error { return e.Err }
