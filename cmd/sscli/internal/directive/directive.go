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

// Usages returns the usage and the description of each directive.
func Usages() [][2]string {
	return [][2]string{
		{"expect CODE CMD...", "run CMD and succeed if it ends with exit code CODE"},
		{"repeat N [INTERVAL] CMD...", "run CMD N times, or until its first error"},
		{"say TEXT...", "print TEXT on standard error, for people who watch"},
		{"sleep DURATION", "wait"},
		{"time CMD...", "run CMD and print how long it took"},
	}
}

// A Runner runs a line, given as words.
type Runner func(ctx context.Context, words []repl.Word) error

// Run runs a line that begins with a directive. It calls run for the directive's command. The error is
// the one that run returned, a usage error, an [*fault.ExpectError], or the cause of ctx.
func Run(ctx context.Context, a *app.App, words []repl.Word, run Runner) error {
	operands := words[1:]
	switch strings.ToLower(words[0].Text) {
	case "expect":
		return expect(ctx, a, operands, run)
	case "repeat":
		return repeat(ctx, operands, run)
	case "say":
		return say(a, operands)
	case "sleep":
		return sleep(ctx, operands)
	}
	return timed(ctx, a, operands, run)
}

// expect runs a command, and succeeds if it ends with the expected exit code.
func expect(ctx context.Context, a *app.App, words []repl.Word, run Runner) error {
	if len(words) < 2 {
		return fault.Usagef("usage: expect CODE CMD...")
	}
	want, err := strconv.Atoi(words[0].Text)
	if err != nil || want < 0 || want > 255 {
		return fault.Usagef("expect %.32q: must be an exit code of 0 to 255", words[0].Text)
	}
	err = run(ctx, words[1:])
	if err != nil && ctx.Err() != nil {
		return err
	}
	got := 0
	if err != nil {
		f, _ := a.Explain(err)
		got = f.Code
	}
	if got == want {
		return nil // do not print an expected error
	}
	if err != nil {
		a.Fault(err)
	}
	return &fault.ExpectError{Want: want, Got: got}
}

// say prints words on standard error. It prints nothing with --quiet, nor in the raw form, so that a
// script's remarks do not mix with its results if both streams go to the same file.
func say(a *app.App, words []repl.Word) error {
	if len(words) == 0 {
		return fault.Usagef("usage: say TEXT...")
	}
	a.Notify(format.Note{Level: format.Remark, Message: strings.Join(repl.Texts(words), " ")})
	return nil
}

func sleep(ctx context.Context, words []repl.Word) error {
	if len(words) != 1 || words[0].Text == "" {
		return fault.Usagef("usage: sleep DURATION")
	}
	d, err := usage.Duration("sleep", config.Text(words[0].Text))
	if err == nil && !wait.For(ctx, d) {
		err = context.Cause(ctx)
	}
	return err
}

func timed(ctx context.Context, a *app.App, words []repl.Word, run Runner) error {
	if len(words) == 0 {
		return fault.Usagef("usage: time CMD...")
	}
	start := time.Now()
	err := run(ctx, words)
	a.Say(format.Elapsed{Took: time.Since(start)})
	return err
}

// repeat runs a command several times, until its first error. A "no" (see [fault.ErrNo]) does not end
// repeat, but is returned at the end.
func repeat(ctx context.Context, words []repl.Word, run Runner) error {
	if len(words) < 2 {
		return fault.Usagef("usage: repeat N [INTERVAL] CMD...")
	}
	n, err := strconv.Atoi(words[0].Text)
	if err != nil || n < 1 {
		return fault.Usagef("repeat %.32q: must be a number of times, at least 1", words[0].Text)
	}
	words = words[1:]
	interval, err := config.ParseDuration(words[0].Text)
	switch {
	case fault.IsA[*config.NoUnitError](err): // an INTERVAL without a unit
		return fault.Usagef("repeat: %w", err)
	case err == nil && (interval < 0 || len(words) == 1):
		return fault.Usagef("usage: repeat N [INTERVAL] CMD...")
	case err == nil:
		words = words[1:]
	}
	var no error
	for i := range n {
		if i > 0 && interval > 0 {
			wait.For(ctx, interval)
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		switch err := run(ctx, words); {
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
	return slices.ContainsFunc(Usages(), func(u [2]string) bool {
		name, _, _ := strings.Cut(u[0], " ")
		return strings.EqualFold(name, word)
	})
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
