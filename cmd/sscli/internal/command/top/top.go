// Package top is the command `sscli top`, which shows a live table of keys.
//
//	sscli top
//	sscli top 'thermostat/*' setpoint
//
// [New] makes the command. A [model] has the state of the keys and of the display. Events and key
// presses change the model, and [model.view] renders the model as lines for a screen of any size. A
// model uses no network and no terminal. A [monitor] connects the model to a session and a screen.
//
// Each key has its own watch (client.Session.Watch). A scan every few seconds finds new keys, because
// the store sends no notifications for keys that are not watched.
package top

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/cmd/sscli/internal/app"
	"github.com/sscli/sscli/cmd/sscli/internal/complete"
	"github.com/sscli/sscli/cmd/sscli/internal/fault"
	"github.com/sscli/sscli/cmd/sscli/internal/suggest"
	"github.com/sscli/sscli/cmd/sscli/internal/trace"
	"github.com/sscli/sscli/cmd/sscli/internal/usage"
	"github.com/sscli/sscli/format"
)

type flags struct {
	every usage.Duration
	limit int
}

// New returns the command `sscli top`.
func New(a *app.App) *cobra.Command {
	var f flags
	cmd := &cobra.Command{
		Use:     "top [PATTERN|KEY...]",
		Short:   "Show keys live in a table",
		GroupID: app.GroupDebug,
		Long: `Show keys live in a table: the value, when it was written, writes per second, and for locks
the holder and an estimate of the lease. Without an operand it shows the keys that
sscli scan lists.

An operand with *, ? or [ is a pattern, as in scan. The store sends no notification of new
keys, so top scans for them every 5s (--every). With a broker that has no SCAN, top shows
only keys that are named. A scan may leave out keys that are not UTF-8 text: name those.

Arrows select a key. Enter opens it: its value, its packets, and its history since top
started. / filters, s sorts, ? shows help, q goes back or quits. Ctrl-Z suspends top, and
fg resumes it.

If the same value is written to a key again and again, top treats the key as a lock and
the value as its holder. The bar is full at a renewal, and empty after three times the
longest time between renewals: the lease itself cannot be read.

top needs a terminal. In a pipe, use scan or watch.`,
		Example:           "  sscli top\n  sscli top 'thermostat/*' setpoint",
		ValidArgsFunction: complete.Keys(a, 0),
		RunE: func(cmd *cobra.Command, args []string) error {
			return run(cmd.Context(), a, f, args)
		},
	}
	fs := cmd.Flags()
	fs.Var(f.every.Least(100*time.Millisecond), "every", "`DURATION` between scans for new keys (default 5s)")
	fs.IntVar(&f.limit, "limit", 1000, "show at most `N` keys that a scan found")
	return cmd
}

func (f flags) check(a *app.App, operands []string) error {
	kind, _ := a.Env("TERM")
	hint := suggest.Try("`sscli scan` lists keys, `sscli watch KEY` streams changes")
	switch {
	case f.limit < 1:
		return fault.Usagef("--limit %d: must be at least 1", f.limit)
	case slices.Contains(operands, ""):
		return fault.Usagef("the key is empty: it must have at least one byte")
	case !slices.Contains([]string{"", "human", "wide"}, a.Settings.Output):
		return &fault.UsageError{Err: fmt.Errorf("%s %.32q: top draws on a terminal and has no other form", a.Settings.Sources["output"], a.Settings.Output), Hint: hint}
	case !term.IsTerminal(int(a.Stdout.Fd())):
		return &fault.UsageError{Err: errors.New("standard output is not a terminal, which top draws on"), Hint: hint}
	case kind == "dumb":
		return &fault.UsageError{Err: errors.New("TERM=dumb: top draws on a terminal, which must be able to move the cursor"), Hint: hint}
	case a.Settings.Trace && term.IsTerminal(int(a.Stderr.Fd())):
		return &fault.UsageError{Err: fmt.Errorf("%s: the packets would be printed over the table", a.Settings.Sources["trace"]), Hint: suggest.Try("`--trace-file FILE`, or Enter on a key")}
	}
	return nil
}

func run(ctx context.Context, a *app.App, f flags, operands []string) error {
	if err := f.check(a, operands); err != nil {
		return err
	}
	if len(operands) == 0 {
		operands = []string{"*"}
	}
	named := make(map[string]bool)
	m := newModel("")
	m.trace = a.Shell == nil
	for _, o := range operands {
		if strings.ContainsAny(o, "*?[") {
			m.patterns = append(m.patterns, o)
		} else {
			named[o] = true
		}
	}
	if len(m.patterns) > 0 {
		m.interval = cmp.Or(f.every.Duration, 5*time.Second)
	}
	m.title = "embedded"
	if !a.Settings.Embedded {
		m.title = format.Escape(a.Settings.URL())
	}
	return a.WithBroker(func(o client.Options) error {
		packets := trace.NewKeyLog()
		o.Trace = trace.Tee(o.Trace, packets.Add)
		limited, cancel := context.WithTimeout(ctx, o.Timeout)
		defer cancel()
		return a.Connect(limited, o, func(s *client.Session) error {
			return newMonitor(s, m, packets, named, f.limit).run(ctx, a)
		})
	})
}
