package fault

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/cmd/sscli/internal/process"
	"github.com/sscli/sscli/cmd/sscli/internal/signals"
	"github.com/sscli/sscli/cmd/sscli/internal/suggest"
	"github.com/sscli/sscli/cmd/sscli/internal/terminal"
	"github.com/sscli/sscli/format"
	"github.com/sscli/sscli/internal/mqtt"
)

// ErrNo means that the result, which is already printed, was "no". The exit code is 1.
var ErrNo = errors.New("no")

// NoIf returns [ErrNo] if no is true, and nil otherwise.
func NoIf(no bool) error {
	if no {
		return ErrNo
	}
	return nil
}

// An ExitError ends sscli with an exit code and no message, because the code is the exit code of a
// child process, or because the error was printed where it happened.
type ExitError struct {
	Code int   // the exit code
	Err  error // the cause; may be nil
}

func (e *ExitError) Error() string { return fmt.Sprintf("exit code %d", e.Code) }

func (e *ExitError) Unwrap() error { return e.Err }

// Partial returns err, an error that was printed, for a command that has made writes: with an exit code
// of its own in place of [CodeUsage], which says that nothing was sent.
func Partial(err error) error {
	if e, ok := errors.AsType[*ExitError](err); ok && e.Code == CodeUsage {
		return &ExitError{Code: CodePartial, Err: e.Err}
	}
	return err
}

// Parts returns the errors that err joins (see [errors.Join]), or err alone if it joins none. Those that a [UsageError] joins
// are usage errors.
func Parts(err error) (parts []error) {
	usage, isUsage := err.(*UsageError)
	inner := err
	if isUsage {
		inner = usage.Err
	}
	var texts []string
	if joined, ok := inner.(interface{ Unwrap() []error }); ok {
		for _, part := range joined.Unwrap() {
			texts = append(texts, part.Error())
			if isUsage {
				part = &UsageError{Err: part, Hint: usage.Hint}
			}
			parts = append(parts, Parts(part)...)
		}
	}
	if len(parts) == 0 || inner.Error() != strings.Join(texts, "\n") { // as of fmt.Errorf with several errors
		return []error{err}
	}
	return parts
}

// RunChild runs a command and waits for it to exit. If its exit code is not 0, the error is an
// *[ExitError] with that code.
func RunChild(c process.Command) error {
	runner := process.NewRunner()
	defer runner.Close()
	code, err := runner.Run(c)
	if err != nil || code == 0 {
		return err
	}
	return &ExitError{Code: code}
}

// ServerEnded returns the error of a server whose context ended with this cause. If the cause is a
// signal, ServerEnded returns an *[ExitError] with 128 plus the signal's number.
func ServerEnded(cause error) error {
	if s, ok := errors.AsType[*signals.Interrupted](cause); ok {
		return &ExitError{Code: 128 + int(s.Signal), Err: cause}
	}
	return cause
}

// A UsageError means that the command line is wrong and nothing was sent.
type UsageError struct {
	Err  error        // what is wrong
	Hint suggest.Hint // the next command to type; nil = the command's --help
}

func (e *UsageError) Error() string { return e.Err.Error() }

func (e *UsageError) Unwrap() error { return e.Err }

// Advice returns the hint, and whether there is one.
func (e *UsageError) Advice() (suggest.Hint, bool) { return e.Hint, e.Hint != nil }

// Usagef returns a [*UsageError] with a formatted message.
func Usagef(format string, args ...any) error {
	return &UsageError{Err: fmt.Errorf(format, args...)}
}

// An OutputError means that a result could not be printed.
type OutputError struct {
	Err  error // the cause; names the file if File is set
	Done bool  // the command was a write, and it was applied
	File bool  // the result goes to a file and not to standard output
}

func (e *OutputError) Error() string {
	if e.File {
		return e.Err.Error()
	}
	why := e.Err.Error()
	if path, ok := errors.AsType[*fs.PathError](e.Err); ok {
		why = path.Err.Error()
	}
	if terminal.IsReaderGone(e.Err) {
		why = terminal.ErrClosed.Error()
	}
	if !IsA[*format.FormError](e.Err) {
		why = "standard output: " + why
	}
	if e.Done {
		return "the write was applied, but its result could not be printed: " + why
	}
	return why
}

func (e *OutputError) Unwrap() error { return e.Err }

// Output wraps err, an error from a write to standard output, in an *[OutputError]. It returns nil if err
// is nil.
func Output(err error) error {
	if err == nil {
		return nil
	}
	return &OutputError{Err: err}
}

// IsUnread reports whether an error only means that the reader of standard output is gone and that no
// write was made. The reader had enough, as in `sscli scan | head`, so this is not worth a message.
func IsUnread(err error) bool {
	switch e := err.(type) {
	case *OutputError:
		return !e.Done && !e.File && terminal.IsReaderGone(e.Err)
	case interface{ Unwrap() error }:
		return IsUnread(e.Unwrap())
	case interface{ Unwrap() []error }:
		return !slices.ContainsFunc(e.Unwrap(), func(err error) bool { return !IsUnread(err) })
	}
	return false
}

// A DataError means that the file of `serve --data` cannot be used.
type DataError struct {
	Err  error
	Hint suggest.Hint // the next thing to do
}

func (e *DataError) Error() string { return e.Err.Error() }

func (e *DataError) Unwrap() error { return e.Err }

// Advice returns the hint.
func (e *DataError) Advice() (suggest.Hint, bool) { return e.Hint, true }

// A NotAppliedError means that a write got no usable reply and was not applied.
type NotAppliedError struct {
	Err    error         // why there is no usable reply
	Within time.Duration // how long sscli waited for the reply; 0 = not known
}

func (e *NotAppliedError) Error() string { return Message(e) }

func (e *NotAppliedError) Unwrap() error { return e.Err }

// An UnknownError means that a write may or may not have been applied.
type UnknownError struct {
	Err    error         // why there is no usable reply
	Within time.Duration // how long sscli waited for the reply; 0 = not known
	Why    string        // what is known about the key, or why nothing is known; empty = Err says everything
	Hint   suggest.Hint  // the next command to type; nil = the table's hint
}

func (e *UnknownError) Error() string { return Message(e) }

func (e *UnknownError) Unwrap() error { return e.Err }

// Advice returns the hint.
func (e *UnknownError) Advice() (suggest.Hint, bool) { return e.Hint, e.Hint != nil }

// NoAnswer returns a text that describes why a request got no usable reply. within is how long sscli
// waited; 0 = not known.
func NoAnswer(err error, within time.Duration) string {
	message, details := noAnswer(err, within)
	return format.Fault{Message: message, Details: details}.Text()
}

// IsTimeout reports whether the error is a timeout.
func IsTimeout(err error) bool { return errors.Is(err, context.DeadlineExceeded) }

// IsConnection reports whether an error means that a connection was lost or could not be made.
func IsConnection(err error) bool {
	if refused, ok := errors.AsType[*mqtt.ReasonError](err); ok {
		return refused.Packet != "PUBACK"
	}
	return IsA[*mqtt.LostError](err) || IsA[*mqtt.DialError](err)
}

// IsRefused reports whether the broker would refuse the same again: a connection, a request or a watch.
func IsRefused(err error) bool {
	refused, ok := errors.AsType[*mqtt.ReasonError](err)
	return client.IsPermanent(err) || ok && refused.Permanent() && !IsA[*mqtt.ReauthError](err)
}

// IsLost reports whether an error means that the reply to a read was lost, or that the read could not be sent.
func IsLost(err error) bool {
	return err != nil && !IsRefused(err) && (IsTimeout(err) || IsConnection(err))
}

// IsAway reports whether an error means that the store did nothing and that a later attempt may succeed: the broker
// or its store could not be reached, or did not answer a read.
func IsAway(err error) bool {
	if err == nil || IsRefused(err) || IsA[*client.LostReplyError](err) || IsA[*NotAppliedError](err) || IsA[*UnknownError](err) {
		return false
	}
	f, _ := Of(err)
	return f.Kind != "error" && (f.Code == CodeConnection || IsTimeout(err))
}

// A DatasetError means that a value is not a data set.
type DatasetError struct {
	Err  error        // where the value is wrong, and why
	Hint suggest.Hint // the next thing to type; nil = none
}

func (e *DatasetError) Error() string { return "not a data set: " + e.Err.Error() }

func (e *DatasetError) Unwrap() error { return e.Err }

// Advice returns the hint.
func (e *DatasetError) Advice() (suggest.Hint, bool) { return e.Hint, true }

// A NotWrittenError means that a value was not written, for example because the key changed.
type NotWrittenError struct {
	Why  string       // why it was not written
	Hint suggest.Hint // the next thing to type; nil = none
}

func (e *NotWrittenError) Error() string { return e.Why }

// Advice returns the hint.
func (e *NotWrittenError) Advice() (suggest.Hint, bool) { return e.Hint, true }

// A NextError adds a hint to an error, in place of the table's hint.
type NextError struct {
	Err  error
	Hint suggest.Hint // the next command to type
}

func (e *NextError) Error() string { return Message(e.Err) }

func (e *NextError) Unwrap() error { return e.Err }

// Advice returns the hint.
func (e *NextError) Advice() (suggest.Hint, bool) { return e.Hint, true }

// A ProtectedError means that a write in a protected context, or of many keys, was not confirmed.
// Nothing was written.
type ProtectedError struct {
	Context string   // the name of the protected context; empty = the write must be confirmed in every context
	What    string   // what was about to be sent
	Details []string // what else is known
	Refused bool     // the user was asked, and declined
	Batch   bool     // nobody was asked, because standard input is the batch
}

func (e *ProtectedError) Error() string { return Message(e) }

// describe returns the text without the details.
func (e *ProtectedError) describe() string {
	if e.Refused {
		return e.What + ": cancelled, nothing was sent"
	}
	why := "this must be confirmed"
	if e.Context != "" {
		why = "context " + e.Context + " is protected"
	}
	if e.Batch {
		return fmt.Sprintf("%s: %s, and standard input is the batch, so it cannot be confirmed there", e.What, why)
	}
	return fmt.Sprintf("%s: %s, and there is no terminal", e.What, why)
}

// Advice suppresses the hint of the [Table] if the user declined.
func (e *ProtectedError) Advice() (suggest.Hint, bool) { return nil, e.Refused }

// An ExpectError means that a command did not end with the exit code that `expect` named.
type ExpectError struct {
	Want, Got int // exit codes
}

func (e *ExpectError) Error() string {
	return fmt.Sprintf("expected exit code %d, got %d", e.Want, e.Got)
}

// ExitCode returns the command's exit code, or 1 if that was 0.
func (e *ExpectError) ExitCode() int { return max(e.Got, CodeNo) }

// A NoScanError means that the broker's store has no SCAN.
type NoScanError struct{ Err error }

func (e *NoScanError) Error() string {
	return "this broker's state store cannot list its keys, it has no SCAN: " + e.Err.Error()
}

func (e *NoScanError) Unwrap() error { return e.Err }

// A StoresError means that several state stores answer on one broker.
type StoresError struct{ Answers int } // how many replies one request got

func (e *StoresError) Error() string {
	return fmt.Sprintf("%d state stores answer on this broker: each has keys of its own, and a client gets the answer of any", e.Answers)
}

// ErrGap ends a watch with --fail-on-gap when events were missed or may have been.
var ErrGap = errors.New("events were missed, or may have been (--fail-on-gap)")

// IsA reports whether the error is, or wraps, an E.
func IsA[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

// A CauseError is an error whose cause is a detail.
type CauseError struct {
	What string
	Err  error
}

func (e *CauseError) Error() string { return Message(e) }

func (e *CauseError) Unwrap() error { return e.Err }

// A DetailError adds to an error what else is known. Where there is no room, details are left out, from the last.
type DetailError struct {
	Err     error
	Details []string
}

func (e *DetailError) Error() string { return Message(e) }

func (e *DetailError) Unwrap() error { return e.Err }

// An OverTLSError marks an error of a connection that uses TLS. It does not change the message.
type OverTLSError struct{ Err error }

func (e *OverTLSError) Error() string { return e.Err.Error() }

func (e *OverTLSError) Unwrap() error { return e.Err }
