// Package directive runs the directives expect, repeat, say, sleep and time. A directive is the first
// word of a line of a shell or a batch, but not a command of sscli.
//
// [Is] recognizes a directive, and [Run] runs it:
//
//	if directive.Is(words[0].Text) {
//		return directive.Run(ctx, a, words, run)
//	}
//
// run is a function of the caller that runs a line. The line may begin with another directive:
// `time repeat 3 get a`. [Usages] is for help and completion.
package directive

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sscli/sscli/cmd/sscli/internal/app"
	"github.com/sscli/sscli/cmd/sscli/internal/config"
	"github.com/sscli/sscli/cmd/sscli/internal/fault"
	"github.com/sscli/sscli/cmd/sscli/internal/usage"
	"github.com/sscli/sscli/format"
	"github.com/sscli/sscli/internal/wait"
	"github.com/sscli/sscli/repl"
)

// A Usage says how a directive, or a dot-command of the shell, is written and what it does.
type Usage struct{ Name, Operands, Help string }

// String returns the name and the operands.
func (u Usage) String() string { return strings.TrimSpace(u.Name + " " + u.Operands) }

// Usages returns the usage of each directive.
func Usages() []Usage {
	return []Usage{
		{"expect", "CODE CMD...", "run CMD and succeed if it ends with exit code CODE"},
		{"repeat", "N [INTERVAL] CMD...", "run CMD N times, or until its first error"},
		{"say", "TEXT...", "print TEXT on standard error, for people who watch"},
		{"sleep", "DURATION", "wait"},
		{"time", "CMD...", "run CMD and print how long it took"},
	}
}

// A Runner runs a line, given as words.
type Runner func(ctx context.Context, words []repl.Word) error

// Run runs a line that begins with a directive. It calls run for the directive's command. The error is
// the one that run returned, a usage error, an [*fault.ExpectError], or the cause of ctx.
func Run(ctx context.Context, a *app.App, words []repl.Word, run Runner) error {
	l, err := parse(words)
	if err != nil {
		return err
	}
	switch l.name {
	case "expect":
		return l.expect(ctx, a, run)
	case "repeat":
		return l.repeat(ctx, run)
	case "say":
		// Nothing in the raw form or with --quiet, so that a script's remarks do not mix with its results if
		// both streams go to the same file.
		a.Notify(format.Note{Level: format.Remark, Message: strings.Join(repl.Texts(l.words), " ")})
		return nil
	case "sleep":
		if !wait.For(ctx, l.pause) {
			return context.Cause(ctx)
		}
		return nil
	}
	start := time.Now()
	err = run(ctx, l.words)
	a.Say(format.Elapsed{Took: time.Since(start)})
	return err
}

// Check returns the usage error that Run would return, without running the line. It calls check for the
// directive's command; an error whose exit code `expect` names is not an error.
func Check(a *app.App, words []repl.Word, check func(words []repl.Word) error) error {
	l, err := parse(words)
	if err != nil || l.name == "say" || l.name == "sleep" {
		return err
	}
	err = check(l.words)
	if err == nil && l.times > 1 {
		err = check(l.words) // what has read standard input cannot do so again
	}
	if err != nil && l.name == "expect" {
		if f, _ := a.FaultOf(err); f.Code == l.code {
			return nil
		}
	}
	return err
}

// A line is a parsed line that begins with a directive.
type line struct {
	name  string        // the directive, in lower case
	words []repl.Word   // the words of the directive's command, or of the text of say
	code  int           // the exit code that expect names
	times int           // how often repeat runs its command
	pause time.Duration // the duration of sleep, or the interval of repeat
}

// parse parses a line that begins with a directive. The error is a usage error.
func parse(words []repl.Word) (l line, err error) {
	l.name, l.words = strings.ToLower(words[0].Text), words[1:]
	switch n := len(l.words); {
	case l.name == "expect" && n < 2, l.name == "repeat" && n < 2,
		l.name == "sleep" && (n != 1 || l.words[0].Text == ""), n == 0:
		return l, usageOf(l.name)
	}
	switch first := l.words[0].Text; l.name {
	case "expect":
		if l.code, err = strconv.Atoi(first); err != nil || l.code < 0 || l.code > 255 {
			return l, fault.Usagef("expect %.32q: must be an exit code of 0 to 255", first)
		}
		l.words = l.words[1:]
	case "sleep":
		l.pause, err = usage.ParseDuration("sleep", first, 0)
	case "repeat":
		if l.times, err = strconv.Atoi(first); err != nil || l.times < 1 {
			return l, fault.Usagef("repeat %.32q: must be a number of times, at least 1", first)
		}
		l.words = l.words[1:]
		interval, err := config.ParseDuration(l.words[0].Text)
		switch {
		case fault.IsA[*config.NoUnitError](err): // an INTERVAL without a unit
			return l, fault.Usagef("repeat: %w", err)
		case err == nil && (interval < 0 || len(l.words) == 1):
			return l, usageOf(l.name)
		case err == nil:
			l.pause, l.words = interval, l.words[1:]
		}
	}
	return l, err
}

// usageOf returns a usage error that shows how a directive is written.
func usageOf(name string) error {
	for _, u := range Usages() {
		if u.Name == name {
			return fault.Usagef("usage: %s", u)
		}
	}
	return nil
}

// expect runs a command, and succeeds if it ends with the expected exit code.
func (l line) expect(ctx context.Context, a *app.App, run Runner) error {
	err := run(ctx, l.words)
	if err != nil && ctx.Err() != nil {
		return err
	}
	got := 0
	if err != nil {
		f, printed := a.FaultOf(err)
		if got = f.Code; got == l.code && !printed {
			a.Notify(format.Note{Level: format.Remark, Message: "as expected: " + f.Text()}) // for people only
		}
	}
	if got == l.code {
		return nil
	}
	if err != nil {
		a.Fault(err)
	}
	return &fault.ExpectError{Want: l.code, Got: got}
}

// repeat runs a command several times, until its first error. A "no" (see [fault.ErrNo]) does not end
// repeat, but is returned at the end.
func (l line) repeat(ctx context.Context, run Runner) error {
	var no error
	for i := range l.times {
		if i > 0 && l.pause > 0 {
			wait.For(ctx, l.pause)
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		switch err := run(ctx, l.words); {
		case errors.Is(err, fault.ErrNo):
			no = err
		case err != nil:
			return err
		}
	}
	return no
}

// Is reports whether a word is a directive. Case does not matter.
func Is(word string) bool {
	return slices.ContainsFunc(Usages(), func(u Usage) bool { return strings.EqualFold(u.Name, word) })
}

// Command returns the words of a line without the directives before the command. ok is false if no
// command can follow, because a directive lacks an operand or takes no command.
func Command(words []repl.Word) (command []repl.Word, ok bool) {
	for len(words) > 0 && Is(words[0].Text) {
		own := 1 // the number of words before the directive's command
		switch strings.ToLower(words[0].Text) {
		case "expect":
			own = 2
		case "repeat":
			own = 2
			if len(words) > 2 {
				if _, err := config.ParseDuration(words[2].Text); err == nil {
					own = 3
				}
			}
		case "say", "sleep":
			return nil, false
		}
		if len(words) < own {
			return nil, false
		}
		words = words[own:]
	}
	return words, true
}
