package explain

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"text/template"

	"github.com/sscli/sscli/cmd/sscli/internal/signals"
)

// errNo is a "no": a result that was printed, and exit code 1.
var ErrNo = errors.New("no")

// An exitError is an exit code that needs no more words: a child's, or that of an
// error that was printed where it happened.
type ExitError struct {
	Code int
	Err  error // may be nil
}

func (e *ExitError) Error() string { return fmt.Sprintf("exit code %d", e.Code) }

func (e *ExitError) Unwrap() error { return e.Err }

// ServerEnded returns the error of a server whose context has ended. A signal that asked
// for that gives the exit code and is no error to report.
func ServerEnded(cause error) error {
	if s, ok := errors.AsType[*signals.Interrupted](cause); ok {
		return &ExitError{Code: 128 + int(s.Signal), Err: cause}
	}
	return cause
}

// A usageError is a command line that cannot be understood.
type UsageError struct {
	Err  error
	Hint string // the next thing to type
}

func (e *UsageError) Error() string { return e.Err.Error() }

func (e *UsageError) Unwrap() error { return e.Err }

func Usagef(format string, args ...any) error {
	return &UsageError{Err: fmt.Errorf(format, args...)}
}

// An outputError is a result that could not be printed.
type OutputError struct {
	Err  error
	Done bool // the result is that of a write, which was applied
	File bool // it was to go to a file, which err names
}

func (e *OutputError) Error() string {
	if e.File {
		return e.Err.Error()
	}
	why := e.Err.Error()
	if path, ok := errors.AsType[*fs.PathError](e.Err); ok {
		why = path.Err.Error()
	}
	if !IsA[template.ExecError](e.Err) {
		why = "standard output: " + why
	}
	if e.Done {
		return "the write was applied, but its result could not be printed: " + why
	}
	return why
}

func (e *OutputError) Unwrap() error { return e.Err }

// A notAppliedError is a write whose answer was lost and that was not applied.
type NotAppliedError struct{ Err error }

func (e *NotAppliedError) Error() string {
	return "the write was not applied: " + e.Err.Error()
}

func (e *NotAppliedError) Unwrap() error { return e.Err }

// An unknownError is a write of which nobody can say whether it was applied.
type UnknownError struct {
	Err error
	Why string
}

func (e *UnknownError) Error() string {
	return fmt.Sprintf("the write was sent, whether it was applied is unknown: %v (%s)", e.Err, e.Why)
}

func (e *UnknownError) Unwrap() error { return e.Err }

// isTimeout tells whether time ran out, rather than something else ending it.
func IsTimeout(err error) bool { return errors.Is(err, context.DeadlineExceeded) }

// A protectedError is a write with a protected context that nobody confirmed.
// Nothing was sent.
type ProtectedError struct {
	Context string
	What    string
	Refused bool // by the user, who was asked
	Batch   bool // is what standard input is
}

func (e *ProtectedError) Error() string {
	if e.Refused {
		return e.What + ": not sent, as you answered"
	}
	if e.Batch {
		return fmt.Sprintf("%s: the context %s is protected, and standard input is the batch, not the answer", e.What, e.Context)
	}
	return fmt.Sprintf("%s: the context %s is protected, and there is no terminal to ask on", e.What, e.Context)
}

// An expectError is a command that ended with another code than expected.
type ExpectError struct {
	Want, Got int
}

func (e *ExpectError) Error() string {
	return fmt.Sprintf("expected exit code %d, got %d", e.Want, e.Got)
}

// A noScanError is a broker whose store does not know SCAN.
type NoScanError struct{ Err error }

func (e *NoScanError) Error() string {
	return "this broker's state store has no SCAN and cannot list its keys: " + e.Err.Error()
}

func (e *NoScanError) Unwrap() error { return e.Err }

// errGap ends a watch whose continuity is not proven (--fail-on-gap).
var ErrGap = errors.New("events are missing, or may be (--fail-on-gap)")

func IsA[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

// An overTLSError says of an error that the connection was, or should have been,
// with TLS.
type OverTLSError struct{ Err error }

func (e *OverTLSError) Error() string { return e.Err.Error() }

func (e *OverTLSError) Unwrap() error { return e.Err }

// isNo tells whether an error is a "no", which is a result.
func IsNo(err error) bool { return errors.Is(err, ErrNo) }
