package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"text/template"
)

// errNo is a "no": a result that was printed, and exit code 1.
var errNo = errors.New("no")

// An exitError is an exit code that needs no more words: a child's, or that of an
// error that was printed where it happened.
type exitError struct {
	code int
	err  error // may be nil
}

func (e *exitError) Error() string { return fmt.Sprintf("exit code %d", e.code) }

func (e *exitError) Unwrap() error { return e.err }

// A usageError is a command line that cannot be understood.
type usageError struct {
	err  error
	hint string // the next thing to type
}

func (e *usageError) Error() string { return e.err.Error() }

func (e *usageError) Unwrap() error { return e.err }

func usage(format string, args ...any) error {
	return &usageError{err: fmt.Errorf(format, args...)}
}

// An outputError is a result that could not be printed.
type outputError struct {
	err  error
	done bool // the result is that of a write, which was applied
	file bool // it was to go to a file, which err names
}

func (e *outputError) Error() string {
	if e.file {
		return e.err.Error()
	}
	why := e.err.Error()
	if path, ok := errors.AsType[*fs.PathError](e.err); ok {
		why = path.Err.Error()
	}
	if !isA[template.ExecError](e.err) {
		why = "standard output: " + why
	}
	if e.done {
		return "the write was applied, but its result could not be printed: " + why
	}
	return why
}

func (e *outputError) Unwrap() error { return e.err }

// A notAppliedError is a write whose answer was lost and that was not applied.
type notAppliedError struct{ err error }

func (e *notAppliedError) Error() string {
	return "the write was not applied: " + e.err.Error()
}

func (e *notAppliedError) Unwrap() error { return e.err }

// An unknownError is a write of which nobody can say whether it was applied.
type unknownError struct {
	err error
	why string
}

func (e *unknownError) Error() string {
	return fmt.Sprintf("the write was sent, whether it was applied is unknown: %v (%s)", e.err, e.why)
}

func (e *unknownError) Unwrap() error { return e.err }

// isTimeout tells whether time ran out, rather than something else ending it.
func isTimeout(err error) bool { return errors.Is(err, context.DeadlineExceeded) }

// A protectedError is a write with a protected context that nobody confirmed.
// Nothing was sent.
type protectedError struct {
	context string
	what    string
	refused bool // by the user, who was asked
	batch   bool // is what standard input is
}

func (e *protectedError) Error() string {
	if e.refused {
		return e.what + ": not sent, as you answered"
	}
	if e.batch {
		return fmt.Sprintf("%s: the context %s is protected, and standard input is the batch, not the answer", e.what, e.context)
	}
	return fmt.Sprintf("%s: the context %s is protected, and there is no terminal to ask on", e.what, e.context)
}

// An expectError is a command that ended with another code than expected.
type expectError struct {
	want, got int
}

func (e *expectError) Error() string {
	return fmt.Sprintf("expected exit code %d, got %d", e.want, e.got)
}

// A noScanError is a broker whose store does not know SCAN.
type noScanError struct{ err error }

func (e *noScanError) Error() string {
	return "this broker's state store has no SCAN and cannot list its keys: " + e.err.Error()
}

func (e *noScanError) Unwrap() error { return e.err }

// errGap ends a watch whose continuity is not proven (--fail-on-gap).
var errGap = errors.New("events are missing, or may be (--fail-on-gap)")

func isA[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

// An overTLSError says of an error that the connection was, or should have been,
// with TLS.
type overTLSError struct{ err error }

func (e *overTLSError) Error() string { return e.err.Error() }

func (e *overTLSError) Unwrap() error { return e.err }

// isNo tells whether an error is a "no", which is a result.
func isNo(err error) bool { return errors.Is(err, errNo) }
