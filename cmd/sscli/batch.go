package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/format"
	"github.com/sscli/sscli/repl"
)

type batchFlags struct {
	keepGoing, echo, load bool
	inflight, from        int
	set                   setFlags // of every line, with load
}

// loadFlags are those of set that batch --load has for all its lines.
func loadFlags() []string { return []string{"nx", "nex", "px", "ttl", "persist", "fence"} }

// maxInflight is more than any broker's Receive Maximum lets through.
const maxInflight = 1 << 16

func newBatch(a *app) *cobra.Command {
	f := batchFlags{inflight: 1, from: 1}
	cmd := &cobra.Command{
		Use:     "batch [FILE|-]",
		Short:   "Run commands from a file or standard input (also: sscli -)",
		GroupID: groupMore,
		Long: `Run commands, one a line, over one connection. A line is written as in the shell: words,
double quotes with \n \r \t \\ \" \xHH, single quotes, # for a comment; a quote that
is open at the end goes on in the next line.

Besides get, set, del, vdel, scan, call, ping, hlc and version there are
    expect CODE CMD...          succeeds if CMD ends with exit code CODE
    repeat N [INTERVAL] CMD...  runs CMD N times, to its first error
    sleep DURATION              waits
    time CMD...                 prints how long CMD took, to stderr

In the raw form get gives the lines of several keys also for one.

A "no" (exit code 1) is a result: it stops nothing, and it is the exit code only if
nothing worse happens. The first error stops the batch and gives the exit code.
Errors have the number of their line. At the end standard error gets a summary, with
the line to go on from if the batch ended early; -q leaves it out.

One line runs after the other. With --inflight N up to N are under way at a time, of
which no two have the same key; results come in the order of the lines all the same.
Lines with several keys, scan, call and whatever is no request wait for all lines
before them. Lines behind an error that were under way already have their results too,
and the summary names them.

With --load a line is an object of JSON, as get -o json prints it, and its key is set
to its value. Keys that were missing (found is false) are passed over.`,
		Example: "  sscli batch commands.txt\n  printf 'set a 1\\nget a\\n' | sscli -\n" +
			"  sscli get a b c -o json > backup\n  sscli batch --load backup --inflight 64",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usage("%d operands: want batch FILE, or batch - for standard input", len(args))
			}
			if f.inflight < 1 || f.inflight > maxInflight {
				return usage("--inflight %d: want 1 to %d", f.inflight, maxInflight)
			}
			if f.from < 1 {
				return usage("--from-line %d: want at least 1", f.from)
			}
			for _, name := range loadFlags() {
				if !f.load && cmd.Flags().Changed(name) {
					return usage("--%s without --load: want it in the lines", name)
				}
			}
			return a.batch(cmd.Context(), f, args[0])
		},
	}
	fs := cmd.Flags()
	fs.BoolVar(&f.keepGoing, "keep-going", false, "run the lines after an error too")
	fs.BoolVar(&f.echo, "echo", false, "print each line to stderr before its result")
	fs.IntVar(&f.inflight, "inflight", 1, "have up to `N` lines under way")
	fs.IntVar(&f.from, "from-line", 1, "pass over the lines before line `N`")
	fs.BoolVar(&f.load, "load", false, "set keys from lines of JSON, as get -o json prints them")
	all := pflag.NewFlagSet("", pflag.ContinueOnError)
	f.set.bind(all)
	for _, name := range loadFlags() {
		flag := all.Lookup(name)
		flag.Usage = "with --load, of every key: " + flag.Usage
		fs.AddFlag(flag)
	}
	return cmd
}

// batch runs the lines of a file, or of standard input for "-".
func (a *app) batch(ctx context.Context, f batchFlags, from string) (err error) {
	b := &batch{app: a, flags: f, in: a.all, stderr: a.stderr, verbs: make(map[string]func() verb)}
	for _, anew := range makers() {
		v := anew()
		for _, name := range append([]string{v.name()}, v.aliases...) {
			b.verbs[name] = anew
		}
	}
	if f.load {
		if b.set, err = f.set.options(); err != nil {
			return err
		}
	}
	if from == "-" && a.shell != nil {
		_, err := a.stdin.Read(nil) // which says why
		return &usageError{err: err, hint: "batch FILE"}
	}
	source := a.stdin
	a.streaming = from == "-"
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
		if err := b.confirmFile(ctx, file); err != nil {
			return err
		}
	}
	o, undo, err := a.broker()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, undo()) }()
	b.budget = o.Timeout
	limited, cancel := context.WithTimeout(ctx, o.Timeout)
	session, hangUp, err := a.dial(limited, o)
	cancel()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, hangUp()) }()
	b.session = session
	return b.run(ctx, source)
}

// confirm asks once for all lines that write, at the first of them.
func (b *batch) confirm(ctx context.Context, req request) error {
	if what := req.writes(); what != "" {
		return b.app.confirmAll(ctx, what)
	}
	return nil
}

// confirmFile asks once for all the lines of a file that write, before the first
// line is sent. A batch that cannot be read twice is asked for at its first such
// line.
func (b *batch) confirmFile(ctx context.Context, file *os.File) error {
	if info, err := file.Stat(); !b.app.settings.Protected || err != nil || !info.Mode().IsRegular() {
		return nil
	}
	if b.flags.load {
		return b.app.confirmAll(ctx, "batch --load "+format.Brief(file.Name()))
	}
	count := 0
	for lines := repl.NewReader(file); ; {
		line, err := lines.Next()
		if isA[*repl.LineError](err) {
			continue // to be told of when it is its turn
		}
		if err != nil {
			break // also to be told of then, if it is not the end
		}
		if b.writes(line.Words) {
			count++
		}
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return &usageError{err: err}
	}
	if count == 0 {
		return nil
	}
	return b.app.confirmAll(ctx, fmt.Sprintf("batch %s (lines that write: %d)", format.Brief(file.Name()), count))
}

// writes tells whether a line writes.
func (b *batch) writes(words []repl.Word) bool {
	args := make([]string, 0, len(words))
	for _, w := range words {
		args = append(args, protect(w.Text, w.Quoted))
	}
	for len(args) > 1 && isLineWord(args[0]) {
		args = behindLineWord(args)
	}
	anew, ok := b.verbs[strings.ToLower(unprotect(args[0]))]
	if !ok {
		return false
	}
	v := anew()
	if v.writes == nil {
		return false
	}
	fs := pflag.NewFlagSet(v.name(), pflag.ContinueOnError)
	fs.SetOutput(io.Discard)
	if v.flags != nil {
		v.flags(fs)
	}
	return fs.Parse(args[1:]) == nil && v.writes(unprotectAll(fs.Args()))
}

// A batch runs lines over one session.
type batch struct {
	app     *app
	flags   batchFlags
	verbs   map[string]func() verb // by each of their names
	set     client.SetOptions      // with --load
	session *client.Session
	budget  time.Duration
	in      stdin
	stderr  io.Writer // above the line of progress, if there is one
	tally   tally

	unwritten error // why results could not be written
}

// run ends with the first error in the order of the lines, else with a "no" if
// there was one.
func (b *batch) run(ctx context.Context, source io.Reader) error {
	source, done := b.showProgress(source)
	begun := time.Now()
	lines := readLines(source, b.flags)
	if b.flags.inflight > 1 {
		b.pipelined(ctx, lines)
	} else {
		b.sequential(ctx, lines)
	}
	lines.stop()
	b.app.line = 0
	if !b.flush() && b.tally.first == nil {
		b.tally.first = &exitError{b.app.fault(b.unwritten), b.unwritten}
		b.tally.end(batchLine{}, b.flags.from)
	}
	done()
	if !b.app.settings.Quiet {
		b.app.say(b.tally.summary(time.Since(begun)))
	}
	if b.tally.first != nil {
		return b.tally.first
	}
	return b.tally.no
}

// flush writes the results that are queued, and tells whether all could be written so
// far; the end of the batch says so if not.
func (b *batch) flush() bool {
	if err := b.app.flush(); b.unwritten == nil {
		b.unwritten = err
	}
	return b.unwritten == nil
}

// sequential runs one line after the other.
func (b *batch) sequential(ctx context.Context, lines *lineReader) {
	for {
		line, err := lines.next(ctx)
		if err == io.EOF {
			return
		}
		b.echo(line)
		if err == nil {
			err = b.line(ctx, line)
		}
		if !b.report(ctx, line, err) {
			return
		}
	}
}

// report takes what became of a line, prints its error, and tells whether the batch
// goes on.
func (b *batch) report(ctx context.Context, line batchLine, err error) bool {
	b.app.line = line.number
	code := 0
	if err != nil && err != errNothing && !errors.Is(err, errNo) {
		b.flush()
		code = b.app.fault(err)
	}
	b.tally.count(line, code, err)
	if code == 0 || b.flags.keepGoing && !line.end && ctx.Err() == nil {
		return true
	}
	if line.number > 0 || !isA[*usageError](err) { // a --from-line behind the end is no line to go on from
		b.tally.end(line, b.flags.from)
	}
	return false
}

// echo prints a line as it was written, but for what a terminal must not get.
func (b *batch) echo(line batchLine) {
	if b.flags.echo && line.text != "" {
		fmt.Fprintln(b.stderr, "> "+strings.ReplaceAll(format.Escape(line.text), `\\`, `\`))
	}
}

// errNothing is a line of --load without anything to load.
var errNothing = errors.New("nothing to load")

// parse reads what a line asks of the store. run is set in place of a request for a
// line that is something else.
func (b *batch) parse(line batchLine) (req request, run func(context.Context) error, err error) {
	if line.err != nil {
		return request{}, nil, line.err
	}
	if b.flags.load {
		e, err := repl.ParseEntry(line.text)
		if err != nil {
			return request{}, nil, &usageError{err: err}
		}
		if !e.Found {
			return request{}, nil, errNothing
		}
		req = setRequest(e.Key, e.Value, b.set)
		return req, nil, check(req)
	}
	args := make([]string, 0, len(line.words))
	for _, w := range line.words {
		args = append(args, protect(w.Text, w.Quoted))
	}
	return b.command(args)
}

func check(req request) error {
	for _, c := range req.commands {
		if err := c.Check(); err != nil {
			return &usageError{err: err}
		}
	}
	return nil
}

// line runs one line.
func (b *batch) line(ctx context.Context, line batchLine) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	b.app.line = line.number
	req, run, err := b.parse(line)
	return b.carryOut(ctx, req, run, err)
}

func (b *batch) carryOut(ctx context.Context, req request, run func(context.Context) error, err error) error {
	if err == nil {
		err = b.confirm(ctx, req)
	}
	switch {
	case err != nil:
		return err
	case run != nil:
		return run(ctx)
	case req.carry != nil:
		return req.carry(ctx, b.session, b.app.out)
	case len(req.commands) > 1:
		return b.app.doMany(ctx, ctx, b.session, req, b.budget)
	}
	reply, err := b.app.carry(ctx, b.session.Do, req)
	return b.app.finish(ctx, req, 0, reply, err, b.budget, b.session.ReadBack)
}
