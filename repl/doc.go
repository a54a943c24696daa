// Package repl reads the lines of the shell and of batch, and splits them into words. Its
// callers give the words their meaning.
//
// The shell reads entries from a [Terminal], which can edit, complete and recall them,
// or from a [LineReader] where the terminal can only print:
//
//	t, err := repl.NewTerminal(repl.TerminalOptions{In: os.Stdin, Out: os.Stdout, History: history})
//	if err != nil {
//		return err
//	}
//	defer t.Close()
//	text, err := t.ReadEntry(ctx, "> ") // one line, or several
//
// A [Reader] reads lines from a stream: batch uses one for its input, and the shell uses
// one for the lines of an entry. [Split] splits a single line.
//
// # Grammar
//
//   - Spaces and tabs separate words.
//   - "…" is a part of a word in which \n \r \t \\ \" and \xHH stand for bytes. Any other
//     escape is an error.
//   - '…' is a part of a word, taken literally.
//   - Adjacent parts form one word: "a"b'c' is abc.
//   - # at the start of a word begins a comment, which lasts to the end of the line.
//   - A quote that is not closed continues on the next line.
//   - A word without quotes that is ; | || & && < > << or >>, or that ends in ;, is an error: a
//     line has no pipes or redirections.
//   - Every other character is literal, even a backslash outside of double quotes:
//     {thermostat}\setPoint is an ordinary key.
//
// Nothing is expanded: there are no variables, patterns or pipes. Bytes that are not
// UTF-8 pass through unchanged, and Split returns the same bytes that were given to
// [format.Word].
//
// # Editing
//
// chzyer/readline v1.5.1 decodes the cursor keys, edits the line, holds the killed text and
// steps through the history. This package does the rest, because readline
//
//   - misplaces the cursor after wide characters, line ends and some changes of the terminal's
//     size, and sends control characters and escape sequences to the terminal (screen.go);
//   - runs the lines of a paste one by one, loses bytes that are not UTF-8, and
//     misinterprets Ctrl-Space, the Delete key, Home in tmux, Ctrl-Left and unknown
//     escape sequences (keys.go);
//   - can only append to a word, so that it cannot quote a completion, and divides by
//     zero when completions are wider than the terminal (complete.go);
//   - does not widen a history search on Backspace, does not restore the line on Ctrl-G
//     after a second Ctrl-R, and dereferences nil in an empty history (terminal.go);
//   - writes a history file that other users can read, splits an entry of several lines,
//     and loses entries of other shells when it shortens the file (history.go);
//   - stops the parent process on Ctrl-Z, and returns an unfinished line as an entry when
//     the terminal is gone (terminal.go, terminal_unix.go);
//   - writes escape sequences to a terminal that can only print (linereader.go).
//
// This package offers no vi mode: in readline's vi mode, the cursor keys insert text, and
// r on an empty line panics. Tests type the same keys into readline and expect these
// faults. When a new version fixes a fault, its test fails, and our replacement can be
// deleted.
package repl
