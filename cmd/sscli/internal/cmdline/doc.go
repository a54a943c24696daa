// Package cmdline parses a command line and runs its command.
//
// [Run] runs a whole command line. [NewRoot] builds the tree of all commands, for help,
// completion and the manual pages.
//
//	err := cmdline.Run(ctx, a, os.Args[1:])
//	os.Exit(a.Report(err))
//
// Cobra parses the words. This package adds operands that begin with a minus (package
// operand), `sscli -` for `sscli batch -`, errors that suggest the command which the user may
// have meant, and an error for -h HOST, which is redis-cli's flag for the host. If the first
// word names a command, only that command is built, because building all of them takes a
// fifth of the start-up time.
package cmdline
