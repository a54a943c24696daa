// Package repl reads the lines of the shell and of batch: it splits them into
// words. What the words mean is not its business.
//
// A shell has lines one at a time, and asks for another while a quote is open:
//
//	words, err := repl.Split(text)
//	if errors.Is(err, repl.ErrIncomplete) {
//		text += "\n" + nextLine
//	}
//
// A batch reads them from a stream with a [Reader].
//
// The grammar:
//
//   - Spaces and tabs separate words.
//   - "…" is a part of a word in which \n \r \t \\ \" and \xHH stand for other
//     bytes. Another escape is an error.
//   - '…' is a part of a word, taken literally.
//   - Parts without a space between them are one word: "a"b'c' is abc.
//   - # where a word could begin starts a comment, which the line's end ends.
//   - A quote that the line does not close goes on in the next one.
//   - Everything else is itself, the backslash outside of double quotes too:
//     {thermostat}\setPoint is an ordinary key.
//
// Bytes survive: those that are not UTF-8 pass through, and whatever
// [format.Word] writes is read back as the same bytes.
//
// It does not expand anything: there are no variables, patterns or pipes.
package repl
