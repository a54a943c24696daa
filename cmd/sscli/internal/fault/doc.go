// Package fault turns an error into what the user sees: a message, a kind, an exit code
// and the next thing to try.
//
// [Of] does it for any error:
//
//	f := fault.Of(err)
//	fmt.Fprintln(os.Stderr, "sscli:", f.Message)
//	os.Exit(f.Code)
//
// It looks the error up in [Table], which has one row for each kind of error: how to
// recognize it, its exit code, its cause for docs/troubleshooting.md, and a hint. To change a
// hint or to add a kind of error, edit that table. An error that knows better what to type next
// has a method Advice, and one with another exit code a method ExitCode. [Codes] is the table of
// exit codes.
//
// Commands return errors of the packages they use, and wrap them with what they were doing.
// This package has types only for errors that begin in the command line: [UsageError] (made
// with [Usagef]), [OutputError], [ProtectedError] and so on. Two errors print nothing when they
// reach main: [ErrNo], a result that was a "no", and [ExitError], whose cause was printed where
// it happened.
//
// Kinds and exit codes are a contract. Messages, causes and hints may change.
package fault
