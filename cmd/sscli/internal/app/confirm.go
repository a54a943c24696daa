package app

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/term"

	"github.com/sscli/sscli/cmd/sscli/internal/fault"
	"github.com/sscli/sscli/cmd/sscli/internal/terminal"
)

// Confirm must be called before every write, with what is about to be done in a few words
// (`set "a"`); if it returns an error, nothing may be sent. For a protected context it asks
// on the terminal, each time; after --yes, and after ConfirmAll, it does not ask. If the
// user declines, or if standard input or standard error is no terminal, the error is an
// *fault.ProtectedError. The connection need not exist yet.
func (a *App) Confirm(ctx context.Context, what string) error {
	if !a.Settings.Protected || a.Settings.Yes || a.confirmed {
		return nil
	}
	if !a.CanAsk() {
		return &fault.ProtectedError{Context: a.Settings.Context, What: what, Batch: a.Streaming}
	}
	a.Signals.Arm()
	answer, err := terminal.Ask(ctx, a.Stderr, fmt.Sprintf("%s: context %s is protected. Continue? [y/N] ", what, a.Settings.Context))
	if err != nil {
		return err
	}
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "y", "yes":
		return nil
	}
	return &fault.ProtectedError{Context: a.Settings.Context, What: what, Refused: true}
}

// CanAsk reports whether the user can be asked: standard input and standard error are a terminal,
// and standard input is not read for something else.
func (a *App) CanAsk() bool {
	stdin, ok := a.Stdin.(*os.File)
	typed := a.Shell != nil || ok && term.IsTerminal(int(stdin.Fd())) // a shell has the terminal
	return typed && !a.Streaming && term.IsTerminal(int(a.Stderr.Fd()))
}

// ConfirmAll is Confirm for all later writes of this run: the user is asked once.
func (a *App) ConfirmAll(ctx context.Context, what string) error {
	if a.declined {
		return &fault.ProtectedError{Context: a.Settings.Context, What: what, Refused: true}
	}
	err := a.Confirm(ctx, what)
	if e, ok := errors.AsType[*fault.ProtectedError](err); ok {
		a.declined = e.Refused
	}
	a.confirmed = err == nil
	return err
}
