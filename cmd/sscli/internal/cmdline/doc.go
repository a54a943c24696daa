// Package cmdline turns the words of a command line into a command that runs.
//
// [Run] runs a whole command line, [NewRoot] builds the tree of all commands, from which
// help, completion and the manual pages are made:
//
//	err := cmdline.Run(ctx, a, os.Args[1:])
//	os.Exit(a.Report(err))
//
// Cobra parses the words. This package adds what cobra cannot do: operands that begin with a
// minus (package operand), `sscli -` for `sscli batch -`, errors that name the command which
// the user may have meant, and -h where redis-cli has its host. One command is built if the
// first word is its name; building all of them takes a fifth of the time of a start.
package cmdline
