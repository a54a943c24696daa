// Package export is the command `sscli export`, which writes keys and values as JSON Lines for
// `sscli import` and `sscli batch --load`.
package export

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/cmd/sscli/internal/app"
	"github.com/sscli/sscli/cmd/sscli/internal/complete"
	"github.com/sscli/sscli/cmd/sscli/internal/config"
	"github.com/sscli/sscli/cmd/sscli/internal/exchange"
	"github.com/sscli/sscli/cmd/sscli/internal/fault"
	"github.com/sscli/sscli/cmd/sscli/internal/suggest"
	"github.com/sscli/sscli/format"
	"github.com/sscli/sscli/internal/files"
)

// New returns the command `sscli export`.
func New(a *app.App) *cobra.Command {
	var file config.File
	var exact bool
	cmd := &cobra.Command{
		Use:     "export [PATTERN|KEY...]",
		Short:   "Write keys and values as JSON Lines",
		GroupID: app.GroupFiles,
		Long: `Write keys with their values and versions, one JSON object a line, which sscli import and
sscli batch --load read. Without operands, export writes the keys that sscli scan lists.
That list may lack keys that are not UTF-8 text: name those as operands.

An operand with *, ? or [ is a pattern, as in sscli scan; any other operand is a key. With
--exact, all operands are keys. The exit code is 1 if a key that is an operand is missing.

The form is json unless -o names another; raw and template print what get prints for
several keys. A pipe does not show that its writer ended early: use -f FILE, which is all
or nothing, or set -o pipefail.

If a reply is lost, export sends the request again, for up to --retry-for or, without it,
--timeout.

The store has no snapshots: each value is as it was when it was read. At the end, stderr
shows which keys were written (by the store's clock, compared with the local clock) or
deleted during the export. A key created after its page of the scan is not exported. The
store does not say when a key expires or which fencing token protects it, so the output
has neither. Beware of locks, which are keys too: an imported lock never expires.`,
		Example:           "  sscli export 'thermostat/*' > thermostat.jsonl\n  sscli export -f backup.jsonl\n  sscli export -c site-a | sscli import -c site-b -",
		ValidArgsFunction: complete.Keys(a, 0),
		RunE: func(cmd *cobra.Command, args []string) error {
			return run(cmd.Context(), a, args, exact, string(file))
		},
	}
	cmd.Flags().VarP(&file, "file", "f", "write to `FILE`, all or nothing")
	cmd.Flags().BoolVar(&exact, "exact", false, "treat all operands as keys, and none as a pattern")
	return cmd
}

// keysOf returns the keys that the operands name or match. named has an entry for each operand: true
// for a key, and false for a pattern.
func keysOf(operands []string, exact bool) (keys exchange.Keys, named map[string]bool, err error) {
	switch {
	case len(operands) == 0 && exact: // a list of keys that turned out empty does not mean all keys
		return nil, nil, fault.Usagef("--exact without an operand: expected the keys to export")
	case len(operands) == 0:
		operands = []string{"*"}
	}
	named = make(map[string]bool)
	for _, o := range operands {
		named[o] = exact || !strings.ContainsAny(o, "*?[")
		c := client.Get(o)
		if !named[o] {
			c = client.Scan(o, nil)
		}
		if err := c.Check(); err != nil {
			return nil, nil, &fault.UsageError{Err: err}
		}
	}
	return func(ctx context.Context, s *exchange.Store, add func(exchange.Entry) error) error {
		for _, o := range operands {
			var err error
			if named[o] {
				err = add(exchange.Entry{Key: o})
			} else {
				err = exchange.Scan(o)(ctx, s, add)
			}
			if err != nil {
				return err
			}
		}
		return nil
	}, named, nil
}

func run(ctx context.Context, a *app.App, operands []string, exact bool, file string) (err error) {
	keys, named, err := keysOf(operands, exact)
	if err != nil {
		return err
	}
	e := exporter{app: a, named: named, out: a.Out, began: time.Now()}
	form := "json"
	if a.Settings.Sources["output"].Flag != "" {
		form = a.Output
	}
	w := io.Writer(a.Stdout)
	if file != "" {
		if err := a.Settings.Broker(); err != nil {
			return err // before replacing the file
		}
		f, createErr := files.Create(file, 0o600)
		if createErr != nil {
			return &fault.OutputError{Err: createErr, File: true}
		}
		defer func() {
			if err == nil || errors.Is(err, fault.ErrNo) {
				if commitErr := f.Commit(); commitErr != nil {
					err = &fault.OutputError{Err: commitErr, File: true}
				}
				return
			}
			err = errors.Join(err, f.Discard())
		}()
		w, e.toFile = f, true
	}
	if e.toFile || form != a.Output {
		if e.out, err = format.New(w, format.Options{Output: form}); err != nil {
			return err
		}
	}
	return a.WithSession(ctx, func(s *client.Session, _ client.Options) error {
		defer app.CollectLess()()
		defer a.Progress(e.toFile, e.progress)()
		return e.run(ctx, exchange.NewBulk(a, s), keys)
	})
}

type exporter struct {
	app    *app.App
	out    *format.Printer
	toFile bool
	named  map[string]bool // from keysOf
	began  time.Time

	keys, bytes atomic.Int64 // counts; the progress goroutine reads them too
	sum         format.ExportSummary
	refused     error // the error of the first key that could not be read
}

func (e *exporter) progress() string {
	n, took := e.keys.Load(), time.Since(e.began)
	return fmt.Sprintf("%d keys, %.0f/s, %.1f MB", n, float64(n)/took.Seconds(), float64(e.bytes.Load())/1e6)
}

// run prints the entries of keys, and then a summary.
func (e *exporter) run(ctx context.Context, s *exchange.Store, keys exchange.Keys) error {
	err := s.Each(ctx, keys, func() error { return e.outputError(e.out.Flush()) }, e.entry)
	e.sum.Keys, e.sum.Bytes, e.sum.Elapsed = int(e.keys.Load()), e.bytes.Load(), time.Since(e.began)
	e.app.Summarize(e.sum)
	return cmp.Or(err, e.refused, fault.NoIf(e.sum.Missing > 0))
}

func (e *exporter) outputError(err error) error {
	if err == nil {
		return nil
	}
	return &fault.OutputError{Err: err, File: e.toFile}
}

func (e *exporter) entry(got exchange.Entry) error {
	switch {
	case got.Err != nil:
		e.sum.Refused++
		e.app.Refuse(&e.refused, got.Err)
		return nil
	case !got.Found && !e.named[got.Key]:
		e.sum.Record(got.Key, true)
		return nil
	case !got.Found:
		e.sum.Missing++
		if strings.HasSuffix(got.Key, ".json") || strings.HasSuffix(got.Key, ".jsonl") {
			e.app.Advise("no key is named "+format.Brief(got.Key), suggest.Run("sscli", "export", "-f", got.Key))
		}
	default:
		e.keys.Add(1)
		e.bytes.Add(int64(len(got.Value)))
		if got.WrittenSince(e.began) {
			e.sum.Record(got.Key, false)
		}
	}
	return e.outputError(e.out.Queue(format.Get{Key: got.Key, Found: got.Found, Value: got.Value, Version: got.Version, Many: true}))
}
