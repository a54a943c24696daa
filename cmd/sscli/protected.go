package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/term"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/client/wire"
)

// A protectedError is a write with a protected context that nobody confirmed.
// Nothing was sent.
type protectedError struct {
	context string
	what    string
	refused bool // by the user, who was asked
	batch   bool // is what standard input is
}

func (e *protectedError) Error() string {
	if e.refused {
		return e.what + ": not sent, as you answered"
	}
	if e.batch {
		return fmt.Sprintf("%s: the context %s is protected, and standard input is the batch, not the answer", e.what, e.context)
	}
	return fmt.Sprintf("%s: the context %s is protected, and there is no terminal to ask on", e.what, e.context)
}

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
	typed := a.held != nil || ok && term.IsTerminal(int(stdin.Fd())) // a shell has the terminal
	if !typed || a.streaming || !term.IsTerminal(int(a.stderr.Fd())) {
		return &protectedError{context: a.settings.Context, what: what, batch: a.streaming}
	}
	answer, err := a.ask(ctx, fmt.Sprintf("%s: the context %s is protected. Go on? [y/N] ", what, a.settings.Context))
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

// writes says in a few words what a request changes; empty if it only reads.
func (r request) writes() string {
	text, more := "", 0
	for _, c := range r.commands {
		switch {
		case !changes(c):
		case text == "":
			text = lower(c.Verb())
			if c.Key() != "" {
				text += " " + shownKey(c.Key())
			}
		default:
			more++
		}
	}
	if more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// changes tells whether a command may change something in the store. Of a verb that
// nobody here knows, it may.
func changes(c client.Command) bool { return changesVerb(c.Verb()) }

func changesVerb(verb string) bool {
	switch verb {
	case wire.VerbGet, wire.VerbKeyNotify, wire.VerbScan:
		return false
	}
	return true
}
