// Package screenshot creates docs/terminal.svg, the picture in README.md, from a real run: it runs the
// commands of session.txt in a terminal, against an emulator, and draws their output with its colors.
//
//	go test ./scripts/screenshot -update
//
// Without -update, the test checks that the picture is still what a terminal shows, except for versions and
// times.
package screenshot
