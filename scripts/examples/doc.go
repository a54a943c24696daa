// Package examples holds no code, only tests: of what README.md and the pages in
// docs show.
//
// Each fenced block marked console is a session in bash. A line that begins with
// "$ " is a command, the lines up to the next one are what it printed. All those of
// a page run in order in one bash, with sscli on the PATH, in a directory that looks
// like the root of the repository and in which they may leave files; a page that does
// not start `sscli serve` finds one running, and SSCLI_URL set. What they print must be
// what the page says, to the character, except for what differs each time; see
// [transcript.normal].
//
// After a change of output:
//
//	go test ./scripts/examples -update
//
// and read what it did to the pages.
package examples
