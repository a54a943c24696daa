package client

import (
	"errors"
	"fmt"
	"time"
)

// An InvalidError means that a request or an option is invalid. Nothing was sent.
type InvalidError struct {
	Err error
}

func (e *InvalidError) Error() string { return fmt.Sprint(e.Err) }

func (e *InvalidError) Unwrap() error { return e.Err }

func isA[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

func invalid(format string, args ...any) *InvalidError {
	return &InvalidError{fmt.Errorf(format, args...)}
}

// A ReplyError means that a reply is invalid: for example, it is not RESP3, has an invalid HLC,
// or holds a value that cannot answer the command.
type ReplyError struct {
	Err error
}

func (e *ReplyError) Error() string { return fmt.Sprintf("the reply is invalid: %v", e.Err) }

func (e *ReplyError) Unwrap() error { return e.Err }

// A StatusError is a reply whose `__stat` is neither 200 nor 204. For a
// write, a *[LostReplyError] wraps it, unless the status says that the broker's RPC layer
// refused the request before the store saw it.
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

// refuses reports whether the status says that the store did not see the request: bad request,
// unsupported content type, or unsupported protocol version.
func (e *StatusError) refuses() bool {
	return e.Status == 400 || e.Status == 415 || e.Status == 505
}

// A LostReplyError means that a write was sent but its outcome is unknown: no reply came, or the
// reply does not say whether the write was applied. [Session.ReadBack] tries to determine the
// outcome. The error wraps the cause: why the context ended, [ErrClosed], a *[LostError], an
// *[ReplyError] or a *[StatusError].
type LostReplyError struct {
	Command   Command
	Timestamp Version   // the request's `__ts`
	Expires   time.Time // when the request expires: the broker then drops it
	Err       error

	accepted bool          // the broker has acknowledged the request, so Expires is certain
	expiry   time.Duration // the Message Expiry Interval of the request
}

func (e *LostReplyError) Error() string {
	if e.answered() {
		return fmt.Sprintf("%s was sent: %v", e.Command.Verb(), e.Err)
	}
	return fmt.Sprintf("%s was sent, no reply came: %v", e.Command.Verb(), e.Err)
}

// answered reports whether a reply came, although it does not say whether the write was applied.
func (e *LostReplyError) answered() bool {
	switch e.Err.(type) {
	case *ReplyError, *StatusError:
		return true
	}
	return false
}

func (e *LostReplyError) Unwrap() error { return e.Err }

// A WatchError means that a request for one key of a [Watch] failed.
type WatchError struct {
	Key string
	Err error
}

func (e *WatchError) Error() string { return fmt.Sprintf("watch %q: %v", e.Key, e.Err) }

func (e *WatchError) Unwrap() error { return e.Err }

// A NoStoreError means that no store received a request. No client had subscribed to the request topic,
// so the broker discarded the request and each copy sent within the next second. The request was not
// applied.
type NoStoreError struct{}

func (*NoStoreError) Error() string {
	return "no state store is listening on this broker (PUBACK 0x10)"
}
