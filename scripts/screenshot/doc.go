// Package screenshot makes docs/terminal.svg, the picture of README.md, from a real
// run: it types the commands of session.txt at a bash in a terminal, with a store
// beside it, and draws what they print, in the colors in which they print it.
//
//	go test ./scripts/screenshot -update
//
// Without -update it is the test that the picture is still what one would see, but for
// versions and times.
package screenshot
