// Package batch runs the lines of a file or of standard input over one connection: `sscli
// batch`, and `sscli -`.
//
// [New] makes the command. Package lineinput reads the lines, and parse.go parses them. batch.go runs
// them one by one; with --inflight, pipeline.go runs several at a time. summary.go counts their
// outcomes.
//
// Results are printed in the order of the lines. Only one request for a key is in flight at a time. The
// first error ends the batch, unless --keep-going is set; a "no" (exit code 1) is not an error. After a
// lost connection, each line is reported as applied, refused or unknown. Memory does not grow with the
// input, except that an import remembers a hash of each of its writes.
package batch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/cmd/sscli/internal/app"
	"github.com/sscli/sscli/cmd/sscli/internal/complete"
	"github.com/sscli/sscli/cmd/sscli/internal/config"
	"github.com/sscli/sscli/cmd/sscli/internal/fault"
	"github.com/sscli/sscli/cmd/sscli/internal/lineinput"
	"github.com/sscli/sscli/cmd/sscli/internal/suggest"
	"github.com/sscli/sscli/cmd/sscli/internal/usage"
	"github.com/sscli/sscli/cmd/sscli/internal/verb"
	"github.com/sscli/sscli/format"
	"github.com/sscli/sscli/internal/files"
	"github.com/sscli/sscli/repl"
)

// batchFlags are the flags of `sscli batch`, and the options of [Load]. Set and Newer require load.
type batchFlags struct {
	LoadOptions
	echo, load, check bool
	silent            bool // count the results, but do not print them
}

// loadFlags returns the names of the flags of `set` that apply to all lines of --load.
func loadFlags() []string { return []string{"nx", "nex", "px", "ttl", "persist", "fence"} }

// maxInflight is the maximum of --inflight. A broker's Receive Maximum, which is at most 65535, never
// allows more.
const maxInflight = 1 << 16

// New returns the command `sscli batch`.
func New(a *app.App) *cobra.Command {
	f := batchFlags{LoadOptions: LoadOptions{Name: "batch"}}
	cmd := &cobra.Command{
		Use:     "batch FILE|-",
		Short:   "Run commands from a file or standard input",
		GroupID: app.GroupFirst,
		Long: `Run commands, one a line, over one connection. sscli - is the same as sscli batch -.

A line is written as in the shell: words, double quotes with \n \r \t \\ \" \xHH, single
quotes, and # for a comment. A quote must be closed in its own line; \n in double quotes is
a line end.

Besides get, set, del, vdel, scan, call, ping, hlc and version there are
    expect CODE CMD...          succeeds if CMD ends with exit code CODE
    repeat N [INTERVAL] CMD...  runs CMD N times, or until its first error
    say TEXT...                 prints TEXT to stderr, but not in the raw form
    sleep DURATION              waits
    time CMD...                 prints to stderr how long CMD took

In the raw form get always prints a line with key, version and value.

A "no" (exit code 1) is a result: it does not stop the batch, and is the exit code only if
there is no error. The first error stops the batch and gives the exit code. Errors show
the line number. At the end, stderr shows a summary, with the line to continue from and the
number of lines that were not run if the batch ended early; -q leaves it out.

--check reports every mistake in the lines, and sends nothing. It needs no broker.

Lines run one after the other. With --inflight N, up to N lines run at a time, no two of
them with the same key. Results still appear in the order of the lines. Lines with several
keys, scan, call, and lines that send no request wait for all lines before them. If a line
has an error, later lines that were in flight still print their results, and the summary
names them.

With --load each line is a JSON object, as get -o json prints it, and its key is set to
its value. Keys that were missing (found is false) are skipped.`,
		Example: "  sscli batch commands.txt\n  printf 'set a 1\\nget a\\n' | sscli -\n" +
			"  sscli get a b c -o json > backup\n  sscli batch --load backup --inflight 64",
		Args:              usage.ExactArgs(config.FileValue),
		ValidArgsFunction: complete.Files,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkRange(f.Inflight, f.From); err != nil {
				return err
			}
			for _, name := range loadFlags() {
				if !f.load && cmd.Flags().Changed(name) {
					return fault.Usagef("--%s without --load: write it in the lines", name)
				}
			}
			b := newBatch(a, f)
			err := b.runFrom(cmd.Context(), args[0])
			if b.ran {
				a.Summarize(b.summary.result)
			}
			return err
		},
	}
	fs := cmd.Flags()
	fs.BoolVar(&f.KeepGoing, "keep-going", false, "continue after an error")
	fs.BoolVar(&f.check, "check", false, "report the mistakes in all lines, and send nothing")
	fs.BoolVar(&f.echo, "echo", false, "print each line to stderr before its result")
	fs.IntVar(&f.Inflight, "inflight", 1, "run up to `N` lines at a time")
	fs.IntVar(&f.From, "from-line", 1, "begin with line `N`")
	fs.BoolVar(&f.load, "load", false, "set keys from JSON lines, as get -o json prints them")
	all := pflag.NewFlagSet("", pflag.ContinueOnError)
	f.Set.Bind(all)
	for _, name := range loadFlags() {
		flag := all.Lookup(name)
		flag.Usage = "with --load, for every key: " + flag.Usage
		fs.AddFlag(flag)
	}
	return cmd
}

func newBatch(a *app.App, f batchFlags) *batch {
	b := &batch{app: a, flags: f, stderr: a.Stderr}
	b.verbs = b.lineVerbs()
	return b
}

// runFrom connects, and runs the lines of a file. from is the file's name, or "-" for standard input.
func (b *batch) runFrom(ctx context.Context, from string) (err error) {
	a, f := b.app, b.flags
	from = files.InputName(from)
	b.in = func(name, what, form string) (string, error) {
		switch name = files.InputName(name); {
		case name == "-" && from == "-":
			return "", fault.Usagef("- for %s: standard input is the batch itself; use a file, or read the batch from a file", what)
		case name == "-" && f.check:
			return "", a.TakeInput()
		}
		return a.Read(ctx, name, what+form)
	}
	if !f.load {
		a.Flags = nil // the lines have flags of their own
	} else if b.set, err = f.Set.Options(b.app.Env); err != nil {
		return err
	}
	source, end, err := a.Open(ctx, from, f.Name)
	if err != nil {
		return err
	}
	defer end()
	a.Streaming = from == "-"
	if file, ok := source.(*os.File); ok && !a.Streaming {
		if err := b.checkFile(ctx, file); err != nil {
			return err
		}
	}
	if f.check {
		return b.check(ctx, source)
	}
	settle := func(err error) error { return err }
	if f.load {
		settle = a.HoldMistakes()
	}
	return settle(a.WithSession(ctx, func(s *client.Session, _ client.Options) error {
		b.session = s
		defer app.CollectLess()()
		if !a.Settings.Embedded {
			defer app.OneCore()()
		}
		return b.run(ctx, source)
	}))
}

// checkFile checks the input before the first line runs. It refuses a file of JSON lines unless
// --load or import reads it, and then finds the first mistake in any line. In a protected context it
// asks once for all writes. It checks only regular files, because other files cannot be read twice;
// for other files, confirm asks later.
func (b *batch) checkFile(ctx context.Context, file *os.File) error {
	if !isRegular(file) {
		return nil
	}
	name := format.Path(file.Name())
	first := make([]byte, 1)
	if n, _ := io.ReadFull(again(file), first); n == 1 && first[0] == '{' && !b.flags.load {
		return &fault.UsageError{Err: fmt.Errorf("%s has JSON lines, no commands", name), Hint: suggest.Run(suggest.Operand([]string{"sscli", "import"}, file.Name())...)}
	}
	if b.flags.load && !b.flags.check {
		if err := b.flags.CheckLines(ctx, file); err != nil {
			return err
		}
	}
	switch {
	case !b.app.Settings.Protected || b.flags.check:
		return nil
	case b.flags.load && b.flags.Name == "batch":
		return b.app.ConfirmAll(ctx, "batch --load "+name)
	case b.flags.load:
		return b.app.ConfirmAll(ctx, b.flags.Name+" "+name)
	}
	count := 0
	for lines := repl.NewReader(again(file)); ; {
		line, err := lines.Next()
		if fault.IsA[*repl.LineError](err) {
			continue // running the line will report the error
		}
		if err != nil {
			break // io.EOF, or a read error that the batch will report
		}
		if line.Number >= b.flags.From && b.writes(line.Words) {
			count++
		}
	}
	if count == 0 {
		return nil
	}
	return b.app.ConfirmAll(ctx, fmt.Sprintf("batch %s (lines that write: %d)", name, count))
}

// confirm asks before the first request that writes, if the context is protected. The answer holds for
// the whole batch.
func (b *batch) confirm(ctx context.Context, req *verb.Request) error {
	if !b.app.Settings.Protected {
		return nil
	}
	if what := req.Changes(); what != "" {
		b.flush() // print earlier results before the question
		return b.app.ConfirmAll(ctx, what)
	}
	return nil
}

// A batch runs lines over one session.
type batch struct {
	app     *app.App
	flags   batchFlags
	verbs   map[string]*lineVerb // by name and alias
	set     client.SetOptions    // with --load, the options for every line
	session *client.Session
	in      verb.Source // reads values from files and standard input
	stderr  io.Writer   // standard error, or a writer that prints above the progress line
	summary summary

	ran       bool  // run was called
	unstarted int   // number of lines that a pipeline read but did not start
	unwritten error // why results could not be written, or nil
}

// run runs the lines of source. It returns the first error in the order of the lines, or else a "no"
// if there was one.
func (b *batch) run(ctx context.Context, source io.Reader) error {
	done := b.showProgress(source)
	begun := time.Now()
	b.ran = true
	lines, stop := lineinput.Read(source, lineinput.Options{JSON: b.flags.load, From: b.flags.From})
	defer stop()
	if b.flags.Inflight > 1 || b.flags.silent {
		b.unstarted = b.pipelined(ctx, lines)
	} else {
		b.sequential(ctx, lines)
	}
	b.app.Line = 0
	if !b.flush() && b.summary.first == nil {
		b.summary.first = &fault.ExitError{Code: b.app.Fault(b.unwritten), Err: b.unwritten}
		b.summary.end(lineinput.Line{}, b.flags.From)
	}
	done()
	b.summary.result.Elapsed = time.Since(begun)
	if b.summary.ended {
		b.countRest(ctx, source, lines)
	}
	if b.summary.first != nil {
		return b.summary.first
	}
	return b.summary.no
}

// countRest counts the lines that a batch that ended early did not run. It reads a regular file to its
// end, unless ctx ends. A program at the other end of a pipe may take any time to write its next line, so
// there countRest counts the lines that come soon.
func (b *batch) countRest(ctx context.Context, source io.Reader, lines <-chan lineinput.Line) {
	sum := &b.summary.result
	sum.NotRun = b.unstarted
	var late <-chan time.Time
	if file, ok := source.(*os.File); !ok || ctx.Err() != nil || !isRegular(file) {
		late = time.After(restTime)
	}
	for {
		select {
		case line, ok := <-lines:
			if !ok || line.End {
				return
			}
			sum.NotRun++
		case <-late:
			sum.More = true
			return
		case <-ctx.Done():
			if late == nil {
				late = time.After(restTime)
				ctx = context.WithoutCancel(ctx)
			}
		}
	}
}

// restTime is how long countRest waits for the end of a pipe.
const restTime = 200 * time.Millisecond

// again returns a reader that begins at the start of a regular file, and leaves the file's offset alone.
func again(file *os.File) io.Reader {
	return files.NewTextReader(io.NewSectionReader(file, 0, math.MaxInt64))
}

func isRegular(file *os.File) bool {
	info, err := file.Stat()
	return err == nil && info.Mode().IsRegular()
}

// flush writes the queued results, and reports whether all results so far were written.
func (b *batch) flush() bool { return b.written(b.app.Flush()) }

// written takes the error of writing results, and reports whether all results so far were written. If not, run prints
// the first error at the end.
func (b *batch) written(err error) bool {
	b.unwritten = cmp.Or(b.unwritten, err)
	return b.unwritten == nil
}

func (b *batch) sequential(ctx context.Context, lines <-chan lineinput.Line) {
	for {
		line, ok := lineinput.Next(ctx, lines)
		if !ok {
			return
		}
		b.echo(line)
		b.app.Line = line.Number
		t, err := b.parse(line)
		if err == nil {
			err = b.do(ctx, t)
		}
		if !b.report(ctx, line, err) {
			return
		}
	}
}

// report counts the outcome of a line, prints its error, and reports whether the batch continues.
func (b *batch) report(ctx context.Context, line lineinput.Line, err error) bool {
	b.app.Line = line.Number
	code := 0
	if err != nil && err != errNothing && !errors.Is(err, fault.ErrNo) {
		b.flush()
		code = b.app.Fault(err)
	}
	b.summary.count(line, code, err)
	if b.summary.result.Applied+b.summary.result.Unknown > 0 {
		b.app.Wrote()
	}
	if code == 0 || b.flags.KeepGoing && !line.End && ctx.Err() == nil {
		return true
	}
	switch out, _ := errors.AsType[*fault.OutputError](err); {
	case out != nil && out.Done: // only the result of a write was lost: continue after it
		b.summary.end(lineinput.Line{}, b.flags.From)
	case line.Number > 0 || !fault.IsA[*fault.UsageError](err): // a --from-line after the end of the input leaves no line to continue from
		b.summary.end(line, b.flags.From)
	}
	return false
}

// echo prints a line for --echo. It escapes characters that must not reach a terminal.
func (b *batch) echo(line lineinput.Line) {
	if b.flags.echo && line.Text != "" {
		fmt.Fprintln(b.stderr, "> "+strings.ReplaceAll(format.Escape(line.Text), `\\`, `\`))
	}
}

// errNothing is the error for a line of --load whose key was missing when it was exported.
var errNothing = errors.New("nothing to load")

// do runs a task. If the task writes in a protected context, do asks first.
func (b *batch) do(ctx context.Context, t task) error {
	if err := b.confirm(ctx, &t.req); err != nil {
		return err
	}
	if t.run != nil {
		return t.run(ctx)
	}
	return verb.DoOver(ctx, b.app, b.session, t.req)
}
