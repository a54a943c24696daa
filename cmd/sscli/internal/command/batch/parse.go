package batch

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/cmd/sscli/internal/cmdline"
	"github.com/sscli/sscli/cmd/sscli/internal/command/basics"
	"github.com/sscli/sscli/cmd/sscli/internal/command/ping"
	"github.com/sscli/sscli/cmd/sscli/internal/directive"
	"github.com/sscli/sscli/cmd/sscli/internal/fault"
	"github.com/sscli/sscli/cmd/sscli/internal/lineinput"
	"github.com/sscli/sscli/cmd/sscli/internal/suggest"
	"github.com/sscli/sscli/cmd/sscli/internal/usage"
	"github.com/sscli/sscli/cmd/sscli/internal/verb"
	"github.com/sscli/sscli/format"
	"github.com/sscli/sscli/repl"
)

// A lineVerb provides a verb for lines. Each line with flags needs a new verb; all lines without flags
// share one.
type lineVerb struct {
	newVerb func(verb.Env) verb.Verb // for a line with flags
	plain   verb.Verb                // for all lines without flags
}

func (b *batch) lineVerbs() map[string]*lineVerb {
	known := make(map[string]*lineVerb)
	for _, row := range slices.Concat(basics.Store(), basics.Diagnostics()) {
		v := &lineVerb{newVerb: row.New, plain: row.New(b.app.Env)}
		b.flagsOf(v.plain)
		for _, name := range append([]string{v.plain.Name()}, v.plain.Aliases...) {
			known[name] = v
		}
	}
	return known
}

// A task is a parsed line: a request of a verb, or a function that runs the line.
type task struct {
	req     verb.Request
	run     func(context.Context) error // nil if the line is a request
	version client.Version              // with LoadOptions.Newer, the version on the line
}

// sends reports whether the task is a single request that may be in flight together with the requests
// of other lines.
func (t *task) sends() bool {
	return t.run == nil && len(t.req.Commands) == 1 && t.req.Run == nil && !t.req.Alone && !t.req.Force
}

func (b *batch) parse(line lineinput.Line) (t task, err error) {
	switch {
	case line.Err != nil:
		return t, line.Err
	case b.flags.load:
		e, err := lineinput.ParseEntry(line.Text)
		if err != nil {
			return t, err
		}
		if !e.Found {
			return t, errNothing
		}
		if b.flags.Newer {
			t.version, _ = client.ParseVersion(e.Version) // zero if the line has no version
		}
		t.req = verb.SetRequest(e.Key, string(e.Value), b.set)
		return t, t.req.Check(b.app)
	}
	return b.parseWords(line.Words)
}

func (b *batch) parseWords(words []repl.Word) (t task, err error) {
	name, operands := words[0].Text, words[1:]
	if known := b.verb(name); known != nil {
		v, operands, err := b.parseFlags(known, operands)
		if err == nil {
			t.req, err = v.Parse(operands, b.in)
		}
		if err == nil {
			err = t.req.Check(b.app)
		}
		return t, err
	}
	lower := strings.ToLower(name)
	switch {
	case lower == "hlc" || lower == "version":
		t.run = cmdline.RunLine(cmdline.NewCommand(b.app, lower), operands)
	case lower == "ping" && b.flags.check:
		t.run = cmdline.RunLine(ping.Check(), operands)
	case lower == "ping":
		t.run = cmdline.RunLine(ping.Over(b.app, b.session), operands)
	case directive.Is(name) && b.flags.check:
		return t, directive.Check(b.app, words, b.checkWords)
	case directive.Is(name):
		t.run = func(ctx context.Context) error { return directive.Run(ctx, b.app, words, b.runWords) }
	default:
		return t, b.unknown(lower, words)
	}
	return t, nil
}

// unknown returns the error for a line whose first word cannot run in a batch. name is that word in
// lower case.
func (b *batch) unknown(name string, words []repl.Word) error {
	for _, cmd := range cmdline.NewRoot(b.app).Commands() {
		if cmd.Name() == name || cmd.HasAlias(name) {
			return fault.Usagef("%s cannot run in a batch; these can: %s", name, b.names())
		}
	}
	meant := suggest.Command("", repl.Texts(words))
	why := ": " + meant.Why
	if meant.Why == "" {
		why = "; a batch can run " + b.names()
	}
	err := fmt.Errorf("unknown command %.64q%s", words[0].Text, why)
	return &fault.UsageError{Err: err, Hint: meant.Hint.Inside()}
}

// verb returns the verb called name, in any case, or nil if there is none.
func (b *batch) verb(name string) *lineVerb { return b.verbs[strings.ToLower(name)] }

func (b *batch) runWords(ctx context.Context, words []repl.Word) error {
	t, err := b.parseWords(words)
	if err != nil {
		return err
	}
	return b.do(ctx, t)
}

func (b *batch) names() string {
	names := []string{"hlc", "ping", "version"}
	for _, u := range directive.Usages() {
		names = append(names, u.Name)
	}
	for name, v := range b.verbs {
		if name == v.plain.Name() && !v.plain.Hidden {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return format.List(names, "and")
}

func (b *batch) flagsOf(v verb.Verb) *pflag.FlagSet {
	fs := pflag.NewFlagSet(v.Name(), pflag.ContinueOnError)
	fs.SetOutput(io.Discard)
	if v.Flags != nil {
		v.Flags(fs)
	}
	// In the raw form without --lines, nothing would separate a value from the next result.
	if lines := fs.Lookup("lines"); lines != nil && b.app.Output == "raw" {
		_ = lines.Value.Set("true") // cannot fail: the flag is a bool
	}
	return fs
}

// parseFlags separates flags from operands. It returns a verb with these flags set, and the operands.
func (b *batch) parseFlags(known *lineVerb, words []repl.Word) (*verb.Verb, []repl.Word, error) {
	flag := slices.IndexFunc(words, usage.IsFlag)
	if flag < 0 {
		return &known.plain, words, nil
	}
	v := known.newVerb(b.app.Env)
	if v.Flags == nil {
		return &v, nil, fault.Usagef("%s: unknown flag: %.64s", v.Name(), words[flag].Text)
	}
	fs := b.flagsOf(v)
	err := fs.Parse(usage.Protect(words))
	if err == pflag.ErrHelp {
		return &v, nil, cmdline.NoHelp(v.Name())
	}
	if err == nil {
		err = usage.UnprotectFlags(fs)
	}
	if err != nil {
		return &v, nil, usage.FlagError(v.Name()+": ", err)
	}
	return &v, usage.Words(fs.Args()), nil
}

func (b *batch) writes(words []repl.Word) bool {
	words, ok := directive.Command(words)
	if !ok || len(words) == 0 {
		return false
	}
	known := b.verb(words[0].Text)
	if known == nil || known.plain.Writes == nil {
		return false
	}
	v, operands, err := b.parseFlags(known, words[1:])
	return err == nil && v.Writes(operands)
}
