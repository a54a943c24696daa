package client

import (
	"errors"
	"fmt"
	"time"
)

// The errors of locks, for errors.Is.
var (
	ErrLockBusy  = errors.New("another holds the lock")      // see LockBusyError
	ErrLockLost  = errors.New("the lock was lost")           // see LockLostError
	ErrNotHolder = errors.New("the lock is not held by you") // see NotHolderError
)

// A LockBusyError means that another client held the lock until the wait ended. It matches
// ErrLockBusy.
type LockBusyError struct {
	Status LockStatus
	Waited time.Duration // LockOptions.Wait; 0 if LockOptions.Try was set
}

func (e *LockBusyError) Error() string {
	text := fmt.Sprintf("lock %q is held by %s", e.Status.Name, e.Status.by())
	if e.Waited > 0 {
		text += fmt.Sprintf(", waited %v", e.Waited)
	}
	return text
}

// Is reports whether target is ErrLockBusy.
func (e *LockBusyError) Is(target error) bool { return target == ErrLockBusy }

// Loss is the reason why a lock was lost.
type Loss string

// The reasons for a loss.
const (
	LossNoRenewal Loss = "no renewal was answered in time" // see LockLostError.Err; or this process or machine was suspended
	LossDeleted   Loss = "its key was deleted or expired"  // or the store restarted empty
	LossTaken     Loss = "another holds it"
)

// A LockLostError is the cause of a Lock's context after the lock was lost. It matches
// ErrLockLost.
type LockLostError struct {
	Name   string
	Loss   Loss
	Holder []byte // the new holder if Loss is LossTaken; nil if not known
	Lease  Lease  // the last lease
	Err    error  // why the last renewal failed; nil if it succeeded
}

func (e *LockLostError) Error() string {
	switch {
	case e.Holder != nil:
		return fmt.Sprintf("lock %q was lost: %q holds it", e.Name, e.Holder)
	case e.Err != nil:
		return fmt.Sprintf("lock %q was lost: %s: %v", e.Name, e.Loss, e.Err)
	}
	return fmt.Sprintf("lock %q was lost: %s", e.Name, e.Loss)
}

// Is reports whether target is ErrLockLost.
func (e *LockLostError) Is(target error) bool { return target == ErrLockLost }

func (e *LockLostError) Unwrap() error { return e.Err }

// A NotHolderError means that a lock was not renewed or released, because the lock is free or
// another client holds it. It matches ErrNotHolder.
type NotHolderError struct {
	Status LockStatus
}

func (e *NotHolderError) Error() string {
	if !e.Status.Held {
		return fmt.Sprintf("lock %q is free: the store does not say whether it expired, or was released or broken", e.Status.Name)
	}
	return fmt.Sprintf("lock %q is held by %s", e.Status.Name, e.Status.by())
}

// Is reports whether target is ErrNotHolder.
func (e *NotHolderError) Is(target error) bool { return target == ErrNotHolder }

// A LockUnknownError means that a lock request got no usable reply, so its outcome is unknown.
// It wraps the cause.
type LockUnknownError struct {
	Name   string
	Holder []byte

	// Over says that Holder no longer holds the lock. Whether Holder held it until the release
	// is unknown.
	Over bool

	// Until is when the lock expires at the latest, by the local clock; zero if not known.
	Until time.Time

	Err error
}

func (e *LockUnknownError) Error() string {
	switch {
	case e.Over:
		return fmt.Sprintf("lock %q is released, but whether %q held it until then is unknown: %v", e.Name, e.Holder, e.Err)
	case e.Until.IsZero():
		return fmt.Sprintf("lock %q may still be held by %q: %v", e.Name, e.Holder, e.Err)
	}
	return fmt.Sprintf("lock %q may be held by %q until %s: %v", e.Name, e.Holder, e.Until.UTC().Format(time.RFC3339), e.Err)
}

func (e *LockUnknownError) Unwrap() error { return e.Err }
