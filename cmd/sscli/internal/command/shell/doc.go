// Package shell is the interactive shell: `sscli shell`, or sscli alone on a terminal.
//
// [New] makes the command. Package repl edits and splits the lines; this package runs them:
//
//   - shell.go talks to the user: it greets, prompts, and reports a lost connection.
//   - line.go runs an entry: each line gets a new tree of commands (newLineRoot) and an
//     application of its own (newLine), with the connection and the settings of the shell.
//   - connection.go holds the one connection of all lines. It is made again when a command
//     needs it.
//   - complete.go and keys.go are what Tab offers.
//   - dot.go has the commands of the shell itself (.output, .trace), help.go its overview,
//     history.go decides what is kept.
//
// A command runs in a shell as it does on the command line, with the same results and exit
// codes. It differs in three things: the shell has the terminal, so a command cannot read
// standard input; a line cannot change the connection; serve and shell are refused. Ctrl-C ends
// the running command; the third Ctrl-C ends the shell.
package shell
