package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/term"

	"github.com/sscli/sscli/cmd/sscli/internal/explain"
	"github.com/sscli/sscli/cmd/sscli/internal/terminal"
)

// confirm stands before everything that writes to the broker; whoever sends a write
// calls it first, with what is about to be done in a few words (`set "a"`), and sends
// nothing if it returns an error. It asks, if the context is protected: on the
// terminal, each time; where standard input or standard error is none the error is a
// *protectedError that names --yes. After --yes, and after confirmAll, it does not
// ask. The connection need not be there yet.
func (a *App) Confirm(ctx context.Context, what string) error {
	if !a.Settings.Protected || a.Settings.Yes || a.confirmed {
		return nil
	}
	stdin, ok := a.Stdin.(*os.File)
	typed := a.Shell != nil || ok && term.IsTerminal(int(stdin.Fd())) // a shell has the terminal
	if !typed || a.Streaming || !term.IsTerminal(int(a.Stderr.Fd())) {
		return &explain.ProtectedError{Context: a.Settings.Context, What: what, Batch: a.Streaming}
	}
	answer, err := terminal.Ask(ctx, a.Stderr, fmt.Sprintf("%s: the context %s is protected. Go on? [y/N] ", what, a.Settings.Context))
	if err != nil {
		return err
	}
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "y", "yes":
		return nil
	}
	return &explain.ProtectedError{Context: a.Settings.Context, What: what, Refused: true}
}

// confirmAll is confirm for all the writes to come of this run: the answer to it
// holds for all of them.
func (a *App) ConfirmAll(ctx context.Context, what string) error {
	if a.declined {
		return &explain.ProtectedError{Context: a.Settings.Context, What: what, Refused: true}
	}
	err := a.Confirm(ctx, what)
	if e, ok := errors.AsType[*explain.ProtectedError](err); ok {
		a.declined = e.Refused
	}
	a.confirmed = err == nil
	return err
}
