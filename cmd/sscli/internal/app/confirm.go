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

// Confirm must be called before every write. If it returns an error, the caller must not send the
// write. what, such as `set "a"`, describes the write in a few words.
//
// In a protected context, Confirm asks the user on the terminal each time, except with --yes or after
// ConfirmAll. The error is a *fault.ProtectedError if the user declines or if [App.CanAsk] is false.
// Confirm does not need a connection.
func (a *App) Confirm(ctx context.Context, what string) error {
	if !a.Settings.Protected {
		return nil
	}
	return a.ConfirmAlways(ctx, what)
}

// ConfirmAlways is like Confirm, for a write that must be confirmed in every context.
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

// CanAsk reports whether sscli can ask the user: standard input and standard error are a terminal,
// and the command does not read its data from standard input.
func (a *App) CanAsk() bool {
	stdin, ok := a.Stdin.(*os.File)
	typed := a.Shell != nil || ok && term.IsTerminal(int(stdin.Fd())) // sscli's shell runs on a terminal
	return typed && !a.Streaming && term.IsTerminal(int(a.Stderr.Fd()))
}

// ConfirmAll is like Confirm, but the user is asked only once: a yes holds for all later writes,
// and a no for all later calls to ConfirmAll.
func (a *App) ConfirmAll(ctx context.Context, what string) error {
	if a.declined {
		return &fault.ProtectedError{Context: a.Settings.Context, What: what, Refused: true}
	}
	err := a.Confirm(ctx, what)
	if e, ok := errors.AsType[*fault.ProtectedError](err); ok {
		a.declined = e.Refused
	}
	a.confirmed = err == nil && a.Settings.Protected
	return err
}
