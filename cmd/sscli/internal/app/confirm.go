package app

import (
	"context"
	"errors"
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
	if !a.Settings.Protected {
		return nil
	}
	return a.ConfirmAlways(ctx, what)
}

// ConfirmAlways is Confirm for a write that needs an answer in every context.
func (a *App) ConfirmAlways(ctx context.Context, what string) error {
	if a.Settings.Yes || a.confirmed {
		return nil
	}
	refused, why := &fault.ProtectedError{What: what, Batch: a.Streaming}, ""
	if a.Settings.Protected {
		refused.Context = a.Settings.Context
		why = ": context " + refused.Context + " is protected"
	}
	if !a.CanAsk() {
		return refused
	}
	a.Signals.Arm()
	answer, err := terminal.Ask(ctx, a.Stderr, what+why+". Continue? [y/N] ")
	if err != nil {
		return err
	}
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "y", "yes":
		return nil
	}
	refused.Refused = true
	return refused
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
