package main

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/sscli/sscli/client/wait"
	"github.com/sscli/sscli/cmd/sscli/internal/config"
	"github.com/sscli/sscli/format"
)

// lineWords are what the lines of the shell and of a batch have besides commands,
// with what each is for.
func lineWords() [][2]string {
	return [][2]string{
		{"expect CODE CMD...", "run CMD and succeed if it ends with exit code CODE"},
		{"repeat N [INTERVAL] CMD...", "run CMD N times, to its first error"},
		{"sleep DURATION", "wait"},
		{"time CMD...", "run CMD and print how long it took"},
	}
}

// lineWord runs a line that begins with a line word; run runs the words after it.
func lineWord(ctx context.Context, a *app, args []string, run func(context.Context, []string) error) error {
	switch strings.ToLower(args[0]) {
	case "expect":
		return expect(ctx, a, args[1:], run)
	case "repeat":
		return repeat(ctx, args[1:], run)
	case "sleep":
		return sleep(ctx, args[1:])
	}
	return timed(ctx, a, args[1:], run)
}

func expect(ctx context.Context, a *app, args []string, run func(context.Context, []string) error) error {
	if len(args) < 2 {
		return usage("want expect CODE CMD...")
	}
	want, err := strconv.Atoi(args[0])
	if err != nil || want < 0 || want > 255 {
		return usage("expect %.32q: want an exit code of 0 to 255", unprotect(args[0]))
	}
	err = run(ctx, args[1:])
	if err != nil && ctx.Err() != nil {
		return err
	}
	got := 0
	if err != nil {
		f, _ := a.explain(err)
		got = f.Code
	}
	if got == want {
		return nil // an error that was expected is not one to tell of
	}
	if err != nil {
		a.fault(err)
	}
	return &expectError{want, got}
}

func sleep(ctx context.Context, args []string) error {
	if len(args) != 1 {
		return usage("want sleep DURATION")
	}
	d, err := config.ParseDuration(unprotect(args[0]))
	if err != nil || d < 0 {
		return usage("sleep %.32q: want a duration such as 500ms or 2s", unprotect(args[0]))
	}
	if !wait.For(ctx, d) {
		return context.Cause(ctx)
	}
	return nil
}

func timed(ctx context.Context, a *app, args []string, run func(context.Context, []string) error) error {
	if len(args) == 0 {
		return usage("want time CMD...")
	}
	start := time.Now()
	err := run(ctx, args)
	a.say(format.Elapsed{Took: time.Since(start)})
	return err
}

// repeat ends with the first error, else with a "no" if there was one.
func repeat(ctx context.Context, args []string, run func(context.Context, []string) error) error {
	if len(args) < 2 {
		return usage("want repeat N [INTERVAL] CMD...")
	}
	n, err := strconv.Atoi(args[0])
	if err != nil || n < 1 {
		return usage("repeat %.32q: want how many times, at least 1", unprotect(args[0]))
	}
	var pause time.Duration
	args = args[1:]
	if d, err := config.ParseDuration(unprotect(args[0])); err == nil {
		if d < 0 || len(args) == 1 {
			return usage("want repeat N [INTERVAL] CMD...")
		}
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
		case isNo(err):
			no = err
		case err != nil:
			return err
		}
	}
	return no
}

func isLineWord(name string) bool {
	switch strings.ToLower(name) {
	case "expect", "repeat", "sleep", "time":
		return true
	}
	return false
}

// behindLineWord is the command that a line word runs; of sleep nothing is left.
func behindLineWord(args []string) []string {
	switch strings.ToLower(args[0]) {
	case "time":
		return args[1:]
	case "expect":
		return args[min(2, len(args)-1):]
	case "repeat":
		rest := args[min(2, len(args)-1):]
		if _, err := config.ParseDuration(unprotect(rest[0])); err == nil && len(rest) > 1 {
			rest = rest[1:]
		}
		return rest
	}
	return args[len(args)-1:]
}
