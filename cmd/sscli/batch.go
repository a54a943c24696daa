package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/cmd/sscli/config"
	"github.com/sscli/sscli/format"
	"github.com/sscli/sscli/repl"
)

type batchFlags struct {
	keepGoing, echo bool
}

func (a *app) newBatch() *cobra.Command {
	var f batchFlags
	cmd := &cobra.Command{
		Use:     "batch [FILE|-]",
		Short:   "Run commands from a file or standard input (also: sscli -)",
		GroupID: groupMore,
		Long: `Run commands, one a line, over one connection. A line is written as in the shell: words,
double quotes with \n \r \t \\ \" \xHH, single quotes, # for a comment; a quote that
is open at the end goes on in the next line.

Besides get, set, del, vdel and call there are
    expect CODE CMD...   succeeds if CMD ends with exit code CODE
    sleep DURATION       waits

In the raw form get gives the lines of several keys also for one.

A "no" (exit code 1) is a result: it stops nothing, and it is the exit code only if
nothing worse happens. The first error stops the batch and gives the exit code.`,
		Example: "  sscli batch commands.txt\n  printf 'set a 1\\nget a\\n' | sscli -",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usage("%d operands: want batch FILE, or batch - for standard input", len(args))
			}
			return a.batch(cmd.Context(), f, args[0])
		},
	}
	cmd.Flags().BoolVar(&f.keepGoing, "keep-going", false, "run the lines after an error too")
	cmd.Flags().BoolVar(&f.echo, "echo", false, "print each line to stderr before it runs")
	return cmd
}

// batch runs the lines of a file, or of standard input for "-".
func (a *app) batch(ctx context.Context, f batchFlags, from string) (err error) {
	b := &batch{app: a, in: a.all}
	source := a.stdin
	if from == "-" {
		b.in = func() ([]byte, error) {
			return nil, usage("- for a value: standard input is the batch itself; want -f FILE, or the batch from a file")
		}
	} else {
		file, err := os.Open(unprotect(from))
		if err != nil {
			return &usageError{err: err}
		}
		defer file.Close()
		source = file
	}
	o, undo, err := a.broker()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, undo()) }()
	b.budget = o.Timeout
	limited, cancel := context.WithTimeout(ctx, o.Timeout)
	b.session, err = client.Dial(limited, o)
	cancel()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.session.Close()) }()
	return b.run(ctx, f, source)
}

// A batch runs lines over one session.
type batch struct {
	app     *app
	session *client.Session
	budget  time.Duration
	in      stdin
}

// run ends with the first error in the order of the lines, else with a "no" if
// there was one.
func (b *batch) run(ctx context.Context, f batchFlags, source io.Reader) error {
	lines := repl.NewReader(source)
	defer func() { b.app.line = 0 }()
	var first, no error
	for {
		line, err := b.next(ctx, lines)
		if errors.Is(err, io.EOF) {
			break
		}
		end := err != nil // of the stream, or by a signal
		if bad, ok := errors.AsType[*repl.LineError](err); ok {
			line.Number, err, end = bad.Number, &usageError{err: bad.Err}, false
		}
		b.app.line = line.Number
		if err == nil {
			if f.echo {
				// As it was written, but for what a terminal must not get.
				fmt.Fprintln(b.app.stderr, "> "+strings.ReplaceAll(format.Escape(line.Text), `\\`, `\`))
			}
			err = b.line(ctx, line.Words)
		}
		if err == nil {
			continue
		}
		if errors.Is(err, errNo) {
			no = err
			continue
		}
		code := b.app.fault(err)
		if first == nil {
			first = &exitError{code, err}
		}
		if !f.keepGoing || end || ctx.Err() != nil {
			break
		}
	}
	if first != nil {
		return first
	}
	return no
}

// next reads a line; while it waits for one, a signal still ends the batch.
func (b *batch) next(ctx context.Context, lines *repl.Reader) (repl.Line, error) {
	type result struct {
		line repl.Line
		err  error
	}
	// Nothing can interrupt a read from a terminal or a pipe, so after a signal
	// this goroutine ends with the process.
	read := make(chan result, 1)
	go func() {
		line, err := lines.Next()
		read <- result{line, err}
	}()
	select {
	case r := <-read:
		return r.line, r.err
	case <-ctx.Done():
		return repl.Line{}, context.Cause(ctx)
	}
}

// line runs the words of one line.
func (b *batch) line(ctx context.Context, words []repl.Word) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	args := make([]string, 0, len(words))
	for _, w := range words {
		args = append(args, protect(w.Text, w.Quoted))
	}
	return b.command(ctx, args)
}

func (b *batch) command(ctx context.Context, args []string) error {
	switch name, args := args[0], args[1:]; name {
	case "expect":
		return b.expect(ctx, args)
	case "sleep":
		return b.sleep(ctx, args)
	default:
		return b.verb(ctx, name, args)
	}
}

func (b *batch) verb(ctx context.Context, name string, args []string) error {
	v, ok := findVerb(name)
	if !ok {
		return usage("unknown command %.64q: a batch knows %s, expect and sleep", unprotect(name), verbNames())
	}
	fs := pflag.NewFlagSet(v.name(), pflag.ContinueOnError)
	fs.SetOutput(io.Discard)
	if v.flags != nil {
		v.flags(fs)
	}
	// In a batch a result is a line, also that of get.
	if lines := fs.Lookup("lines"); lines != nil && b.app.output == "raw" {
		if err := lines.Value.Set("true"); err != nil {
			return err
		}
	}
	err := fs.Parse(args)
	if err == nil {
		err = unprotectFlags(fs)
	}
	if err != nil {
		return usage("%s: %s", v.name(), flagError(err))
	}
	req, err := v.parse(fs.Args(), b.in)
	if err != nil {
		return err
	}
	for _, c := range req.commands {
		if err := c.Check(); err != nil {
			return &usageError{err: err}
		}
	}
	if len(req.commands) > 1 {
		return b.app.doMany(ctx, ctx, b.session, req, b.budget)
	}
	reply, err := b.app.carry(ctx, b.session.Do, req)
	return b.app.finish(ctx, req, 0, reply, err, b.budget, b.session.ReadBack)
}

// An expectError is a command that ended with another code than expected.
type expectError struct {
	want, got int
}

func (e *expectError) Error() string {
	return fmt.Sprintf("expected exit code %d, got %d", e.want, e.got)
}

func (b *batch) expect(ctx context.Context, args []string) error {
	if len(args) < 2 {
		return usage("want expect CODE CMD...")
	}
	want, err := strconv.Atoi(args[0])
	if err != nil || want < 0 || want > 255 {
		return usage("expect %.32q: want an exit code of 0 to 255", unprotect(args[0]))
	}
	err = b.command(ctx, args[1:])
	if err != nil && ctx.Err() != nil {
		return err
	}
	got := 0
	if err != nil {
		f, _ := b.app.explain(err)
		got = f.Code
	}
	if got == want {
		return nil // an error that was expected is not one to tell of
	}
	if err != nil {
		b.app.fault(err)
	}
	return &expectError{want, got}
}

func (b *batch) sleep(ctx context.Context, args []string) error {
	if len(args) != 1 {
		return usage("want sleep DURATION")
	}
	d, err := config.ParseDuration(args[0])
	if err != nil || d < 0 {
		return usage("sleep %.32q: want a duration such as 500ms or 2s", unprotect(args[0]))
	}
	if !wait(ctx, d) {
		return context.Cause(ctx)
	}
	return nil
}

func verbNames() string {
	var names []string
	for _, v := range verbs() {
		if !v.hidden {
			names = append(names, v.name())
		}
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}
