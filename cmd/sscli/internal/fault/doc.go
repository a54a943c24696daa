// Package fault turns an error into what the user sees: a message, a kind, an exit code
// and the next thing to try.
//
// [Of] does this for any error:
//
//	f, hint := fault.Of(err)
//	fmt.Fprintln(os.Stderr, "sscli:", f.Text())
//	os.Exit(f.Code)
//
// Of looks the error up in [Table], which has one row for each kind of error: how to recognize it, its
// exit code, its cause for docs/troubleshooting.md, and a hint. To change a hint or to add a kind of
// error, edit that table. An error type overrides the row's hint with an Advice method, and the row's
// exit code with an ExitCode method. [Codes] returns the table of exit codes.
//
// Commands return the errors of the packages they use, and add what they were doing. This
// package defines only the errors of the program itself: [UsageError] (made with [Usagef]),
// [OutputError], [ProtectedError] and so on. Two errors print nothing when they reach main:
// [ErrNo], whose result is printed, and [ExitError], whose cause was printed where it happened.
//
// Scripts may rely on kinds and exit codes. Messages, causes and hints may change.
package fault
