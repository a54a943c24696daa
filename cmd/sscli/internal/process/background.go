package process

import "io"

// BackgroundOptions configure a [Background] command.
type BackgroundOptions struct {
	Args   []string // the name of the command, then its arguments
	Stdout io.Writer
	Stderr io.Writer

	// Temp is a directory that the guard removes if sscli dies before the command; empty = none.
	Temp string
}
