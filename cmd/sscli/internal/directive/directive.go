package directive

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/sscli/sscli/client/wait"
	"github.com/sscli/sscli/cmd/sscli/internal/app"
	"github.com/sscli/sscli/cmd/sscli/internal/config"
	"github.com/sscli/sscli/cmd/sscli/internal/fault"
	"github.com/sscli/sscli/format"
)

// Words lists the line words: the usage of each, and what it does.
func Words() [][2]string {
	return [][2]string{
		{"expect CODE CMD...", "run CMD and succeed if it ends with exit code CODE"},
		{"repeat N [INTERVAL] CMD...", "run CMD N times, or until its first error"},
		{"say TEXT...", "print TEXT on standard error, for people who watch"},
		{"sleep DURATION", "wait"},
		{"time CMD...", "run CMD and print how long it took"},
	}
}

// Run runs a line that begins with a line word. It calls run for the command after that word, in
// the context of the line. The error is run's, or a usage error.
func Run(ctx context.Context, a *app.App, args []string, run func(context.Context, []string) error) error {
	switch strings.ToLower(args[0]) {
	case "expect":
		return expect(ctx, a, args[1:], run)
	case "repeat":
		return repeat(ctx, args[1:], run)
	case "say":
		return say(a, args[1:])
	case "sleep":
		return sleep(ctx, args[1:])
	}
	return timed(ctx, a, args[1:], run)
}

// expect runs a command and succeeds if the command ends with the expected exit code.
func expect(ctx context.Context, a *app.App, args []string, run func(context.Context, []string) error) error {
	if len(args) < 2 {
		return fault.Usagef("want expect CODE CMD...")
	}
	want, err := strconv.Atoi(args[0])
	if err != nil || want < 0 || want > 255 {
		return fault.Usagef("expect %.32q: want an exit code of 0 to 255", app.Unprotect(args[0]))
	}
	err = run(ctx, args[1:])
	if err != nil && ctx.Err() != nil {
		return err
	}
	got := 0
	if err != nil {
		f, _ := a.Explain(err)
		got = f.Code
	}
	if got == want {
		return nil // an expected error is not printed
	}
	if err != nil {
		a.Fault(err)
	}
	return &fault.ExpectError{Want: want, Got: got}
}

// say prints its words. The raw form has no such line, so that a script's remarks do not mix
// with its results.
func say(a *app.App, args []string) error {
	if len(args) == 0 {
		return fault.Usagef("want say TEXT...")
	}
	words := make([]string, len(args))
	for i, w := range args {
		words[i] = app.Unprotect(w)
	}
	if !a.Settings.Quiet {
		a.Say(format.Note{Level: format.Remark, Message: strings.Join(words, " ")})
	}
	return nil
}

// sleep waits.
func sleep(ctx context.Context, args []string) error {
	if len(args) != 1 {
		return fault.Usagef("want sleep DURATION")
	}
	d, err := config.ParseDuration(app.Unprotect(args[0]))
	if err != nil {
		return fault.Usagef("sleep: %w", err)
	}
	if d < 0 {
		return fault.Usagef("sleep %s: must not be negative", app.Unprotect(args[0]))
	}
	if !wait.For(ctx, d) {
		return context.Cause(ctx)
	}
	return nil
}

// timed runs a command and prints how long it took.
func timed(ctx context.Context, a *app.App, args []string, run func(context.Context, []string) error) error {
	if len(args) == 0 {
		return fault.Usagef("want time CMD...")
	}
	start := time.Now()
	err := run(ctx, args)
	a.Say(format.Elapsed{Took: time.Since(start)})
	return err
}

// repeat runs a command several times. Its error is the first error of the command, else a "no"
// if there was one.
func repeat(ctx context.Context, args []string, run func(context.Context, []string) error) error {
	if len(args) < 2 {
		return fault.Usagef("want repeat N [INTERVAL] CMD...")
	}
	n, err := strconv.Atoi(args[0])
	if err != nil || n < 1 {
		return fault.Usagef("repeat %.32q: want a number of times, at least 1", app.Unprotect(args[0]))
	}
	var pause time.Duration
	args = args[1:]
	d, err := config.ParseDuration(app.Unprotect(args[0]))
	switch {
	case fault.IsA[*config.NoUnitError](err): // no command has such a name
		return fault.Usagef("repeat: %w", err)
	case err == nil && (d < 0 || len(args) == 1):
		return fault.Usagef("want repeat N [INTERVAL] CMD...")
	case err == nil:
		pause, args = d, args[1:]
	}
	var no error
	for i := range n {
		if i > 0 && pause > 0 && !wait.For(ctx, pause) {
			return context.Cause(ctx)
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		switch err := run(ctx, args); {
		case fault.IsNo(err):
			no = err
		case err != nil:
			return err
		}
	}
	return no
}

// Is reports whether a word is a line word. Case does not matter.
func Is(name string) bool {
	switch strings.ToLower(name) {
	case "expect", "repeat", "say", "sleep", "time":
		return true
	}
	return false
}

// Command returns the command that a line word runs, with its operands, or the last of args if
// there is none. args begins with the line word.
func Command(args []string) []string {
	switch strings.ToLower(args[0]) {
	case "time":
		return args[1:]
	case "expect":
		return args[min(2, len(args)-1):]
	case "repeat":
		rest := args[min(2, len(args)-1):]
		if _, err := config.ParseDuration(app.Unprotect(rest[0])); err == nil && len(rest) > 1 {
			rest = rest[1:]
		}
		return rest
	}
	return args[len(args)-1:]
}
