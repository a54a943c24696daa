package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"

	"github.com/sscli/sscli/cmd/sscli/internal/fault"
	"github.com/sscli/sscli/cmd/sscli/internal/suggest"
	"github.com/sscli/sscli/cmd/sscli/internal/terminal"
	"github.com/sscli/sscli/format"
	"github.com/sscli/sscli/internal/files"
)

// Read reads a file, or standard input if the name is "-", until its end or until ctx ends. what,
// such as "the value", names the content in messages. If standard input is a terminal, Read first
// prints that sscli is waiting for the content, because there is no prompt. Any other standard input can be
// read only once: see TakeInput. More than [files.MaxValue] bytes are an error.
func (a *App) Read(ctx context.Context, name, what string) (string, error) {
	if name = files.InputName(name); name == "-" {
		return a.readInput(ctx, what, files.MaxValue)
	}
	a.Signals.Arm()
	return terminal.ReadFile(ctx, name)
}

// ReadKeys is like Read of standard input, which has many keys with their values: at most [files.MaxKeys] bytes.
func (a *App) ReadKeys(ctx context.Context) (string, error) {
	return a.readInput(ctx, "the keys", files.MaxKeys)
}

func (a *App) readInput(ctx context.Context, what string, limit int64) (string, error) {
	a.Signals.Arm()
	if err := a.TakeInput(); err != nil {
		return "", err
	}
	if a.inputIsTerminal() {
		a.Inform("reading " + what + "; Ctrl-D ends")
	}
	text, err := terminal.ReadAll(ctx, a.Stdin, limit)
	if fault.IsA[*fault.UsageError](err) {
		a.inputTaken = false // there is none
	}
	if large, ok := errors.AsType[*files.SizeError](err); ok {
		err = fault.Usagef("standard input: %w", large)
	}
	if err == nil || fault.IsA[*fault.UsageError](err) || ctx.Err() != nil {
		return text, err // the *fault.UsageError means that there is no standard input
	}
	return "", fmt.Errorf("standard input: %w", err)
}

func (a *App) inputIsTerminal() bool {
	f, ok := a.Stdin.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// TakeInput records that standard input is read to its end. It returns a usage error if it was read before: its end must
// not count as an empty value. A terminal can be read again.
func (a *App) TakeInput() error {
	if a.inputTaken && !a.inputIsTerminal() {
		return fault.Usagef("standard input was read to its end already, and cannot be read again: use a file")
	}
	a.inputTaken = true
	return nil
}

// Open opens a file of lines, or standard input if the name is "-". Call end after the last read.
// The error is a *fault.UsageError, or the cause of ctx if ctx ends while a FIFO has no writer. In a shell,
// which has no standard input, "-" is an error; its hint is command, such as "import", followed by FILE.
func (a *App) Open(ctx context.Context, name, command string) (source io.Reader, end func() error, err error) {
	if name = files.InputName(name); name != "-" {
		file, err := terminal.Open(ctx, name)
		if ctx.Err() != nil {
			return nil, nil, context.Cause(ctx)
		}
		if err != nil {
			return nil, nil, &fault.UsageError{Err: err}
		}
		return file, file.Close, nil
	}
	// Windows knows the end of an empty pipe before it is read.
	if _, err := a.Stdin.Read(nil); err != nil && err != io.EOF { // in a shell, or closed
		return nil, nil, &fault.UsageError{Err: err, Hint: suggest.Try("`sscli " + command + " FILE`")}
	}
	return a.Stdin, func() error { return nil }, nil
}

// A closedInput is a standard input that was closed when sscli started.
type closedInput struct{}

// Read returns a usage error.
func (closedInput) Read([]byte) (int, error) {
	return 0, &fault.UsageError{Err: errors.New("standard input is closed, or /dev/null that is open for reading and writing"), Hint: suggest.Try("redirect it from a file or a pipe; for an empty value, give '' in place of -, or use </dev/null")}
}

// NotePattern prints a note if a missing key looks like a pattern or like an MQTT topic filter,
// because the command looked for exactly that key. The note suggests use, which has a place for
// the pattern.
func (a *App) NotePattern(key string, use suggest.Hint) {
	pattern := Pattern(key)
	if pattern == "" {
		return
	}
	a.Inform(fmt.Sprintf("no key is named %s; for a pattern: %s", format.Brief(key), a.Hint(use.Fill(suggest.Pattern, pattern))))
}

// Pattern returns the pattern that the user may have meant by a key, or "" if the key does not look
// like a pattern. The + and # of an MQTT topic filter become *.
func Pattern(key string) string {
	levels, filter := strings.Split(key, "/"), false
	for i, level := range levels {
		if level == "+" || level == "#" && i == len(levels)-1 {
			levels[i], filter = "*", true
		}
	}
	if !filter && !strings.ContainsAny(key, "*?") {
		return ""
	}
	return strings.Join(levels, "/")
}
