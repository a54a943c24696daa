// Package examples contains only tests, which run the examples in README.md and docs.
//
// Each fenced block marked console is part of a bash session. A line that begins with "$ " is a command, and
// the lines up to the next command are its output. All commands of a page run in order in one bash, with
// sscli on the PATH. They run in a copy of the repository's root, where they may create files. For a page
// that does not start `sscli serve`, the tests start an emulator and set SSCLI_URL. A block marked "console
// terminal" runs in a separate terminal, concurrently with the rest of the page: the next command starts once
// the block has printed something, and the page ends when the block ends. The output must be exactly what the
// page shows, except for text that differs from run to run; see [transcript.normal].
//
// After the output changes, run
//
//	go test ./scripts/examples -update
//
// and review the changed pages.
package examples
