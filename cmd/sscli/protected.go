package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/term"
)

// confirm stands before everything that writes to the broker; whoever sends a write
// calls it first, with what is about to be done in a few words (`set "a"`), and sends
// nothing if it returns an error. It asks, if the context is protected: on the
// terminal, each time; where standard input or standard error is none the error is a
// *protectedError that names --yes. After --yes, and after confirmAll, it does not
// ask. The connection need not be there yet.
func (a *app) confirm(ctx context.Context, what string) error {
	if !a.settings.Protected || a.settings.Yes || a.confirmed {
		return nil
	}
	stdin, ok := a.stdin.(*os.File)
	typed := a.shell != nil || ok && term.IsTerminal(int(stdin.Fd())) // a shell has the terminal
	if !typed || a.streaming || !term.IsTerminal(int(a.stderr.Fd())) {
		return &protectedError{context: a.settings.Context, what: what, batch: a.streaming}
	}
	answer, err := ask(ctx, a.stderr, fmt.Sprintf("%s: the context %s is protected. Go on? [y/N] ", what, a.settings.Context))
	if err != nil {
		return err
	}
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "y", "yes":
		return nil
	}
	return &protectedError{context: a.settings.Context, what: what, refused: true}
}

// confirmAll is confirm for all the writes to come of this run: the answer to it
// holds for all of them.
func (a *app) confirmAll(ctx context.Context, what string) error {
	if a.declined {
		return &protectedError{context: a.settings.Context, what: what, refused: true}
	}
	err := a.confirm(ctx, what)
	if e, ok := errors.AsType[*protectedError](err); ok {
		a.declined = e.refused
	}
	a.confirmed = err == nil
	return err
}
