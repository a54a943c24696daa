// Package repl reads the lines of the shell and of batch, and splits them into words. Its
// callers interpret the words.
//
// If the terminal can only print, the shell reads entries from a [LineReader]. Otherwise, it reads
// them from a [Terminal], which can edit, complete and recall entries:
//
//	t, err := repl.NewTerminal(repl.TerminalOptions{In: os.Stdin, Out: os.Stdout, History: history})
//	if err != nil {
//		return err
//	}
//	defer t.Close()
//	text, err := t.ReadEntry(ctx, "> ") // one line, or several
//
// A [Reader] reads lines from a stream. batch uses a Reader for its input, and the shell uses one
// for the lines of an entry. [Split] splits a single line.
//
// # Grammar
//
//   - Spaces and tabs separate words.
//   - "…" is a word in which \n \r \t \\ \" and \xHH stand for bytes. Any other escape is an
//     error.
//   - '…' is a word, taken literally.
//   - A quote inside any other word is an error, and so is text after a closing quote: shells
//     disagree about what they mean. See [QuoteError].
//   - # at the start of a word begins a comment, which lasts to the end of the line.
//   - In the shell, quoted text that is not closed continues on the next line. In a file it is an
//     error of its line.
//   - A word without quotes that is ; | || & && < > << or >>, or that ends in ;, is an error: a
//     line has no pipes or redirections.
//   - Every other character is literal, even a backslash outside of double quotes:
//     {thermostat}\setPoint is an ordinary key.
//
// There are no variables or patterns, so nothing is expanded. Bytes that are not UTF-8 pass through
// unchanged. Given the result of [format.Word], Split returns the original bytes.
//
// # Editing
//
// chzyer/readline v1.5.1 holds the edited line and the killed text, moves the cursor by words, switches the
// terminal to raw mode and translates the Windows console. This package does the rest, because readline's own loop
//
//   - misplaces the cursor after wide characters, line ends and some changes of the terminal's
//     size, and sends control characters and escape sequences to the terminal (screen.go);
//   - runs the lines of a paste one by one, loses bytes that are not UTF-8, and
//     misinterprets Ctrl-Space, the Delete key, Home in tmux, Ctrl-Left and unknown
//     escape sequences (internal/keyboard, edited.go);
//   - can only append to a word, so that it cannot quote a completion, and divides by
//     zero when completions are wider than the terminal (complete.go);
//   - does not widen a history search on Backspace, does not restore the line on Ctrl-G
//     after a second Ctrl-R, and dereferences nil in an empty history (terminal.go);
//   - writes a history file that other users can read, splits an entry of several lines,
//     and loses entries of other shells when it shortens the file (history.go);
//   - reads on while a command runs, stops the parent process on Ctrl-Z, and returns an unfinished line
//     as an entry when the terminal is gone (terminal.go, terminal_unix.go);
//   - writes escape sequences to a terminal that can only print (linereader.go).
//
// This package offers no vi mode: in readline's vi mode, the cursor keys insert text, and
// typing r on an empty line causes a panic. Tests type keys into readline and expect all these faults.
// When a new version of readline fixes a fault, the test for it fails, and our replacement can be
// deleted.
package repl
