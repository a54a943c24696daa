// Package verb carries out requests to the store for the commands get, set, del, vdel, scan, call
// and keynotify.
//
// Each of these commands is a [Verb], which a function of package basics returns. The command line
// and a batch use a Verb in the same way: they bind its flags, parse its operands into a
// [Request], and carry out the request.
//
//	v := basics.Get(env)
//	v.Flags(flags) // unless Flags is nil
//	…
//	req, err := v.Parse(operands, source)
//	…
//	err = verb.Do(ctx, a, req)
//
// [Command] adapts a Verb to the command table. [Do] connects and carries out a request; [DoOver]
// uses an existing session. A batch with several requests in flight sends them through a window of
// package exchange, which also finds out whether a write whose reply was lost was applied, and calls
// [Present] to convert a result for printing.
//
// With --force-fence a write is sent with a token that the store accepts for the key (forcefence.go). A
// write is never repeated, except after the store refused its token.
package verb

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/cmd/sscli/internal/app"
	"github.com/sscli/sscli/cmd/sscli/internal/complete"
	"github.com/sscli/sscli/cmd/sscli/internal/fault"
	"github.com/sscli/sscli/cmd/sscli/internal/suggest"
	"github.com/sscli/sscli/cmd/sscli/internal/usage"
	"github.com/sscli/sscli/format"
	"github.com/sscli/sscli/internal/wire"
	"github.com/sscli/sscli/repl"
)

// A Verb is a command that sends requests to the store. It holds the values of its flags, so
// each use with flags needs a new Verb.
type Verb struct {
	Use     string   // cobra's Use: the name, then the operands
	Aliases []string // other names
	Short   string
	Long    string
	Example string
	Hidden  bool   // not in help
	Group   string // group in help; empty = app.GroupFirst
	Keys    int    // how many operands are keys; 0 = all

	// Flags defines the verb's own flags; nil = none.
	Flags func(*pflag.FlagSet)
	// Parse turns the operands into a request. It does not change the values of the flags. It reads
	// from the Source only if an operand or a flag names a file or standard input. The error is a usage
	// error or the error of the Source.
	Parse func(operands []repl.Word, in Source) (Request, error)
	// Writes reports whether a line with these operands may change the store. It does not read
	// the value. nil = the verb never writes.
	Writes func(operands []repl.Word) bool
}

// Always is the Writes function of verbs that always write.
func Always([]repl.Word) bool { return true }

// Name returns the verb's name, such as "get".
func (v Verb) Name() string { return (&cobra.Command{Use: v.Use}).Name() }

// Command returns a function that makes a verb's command for the command line.
func Command(newVerb func(Env) Verb) func(*app.App) *cobra.Command {
	return func(a *app.App) *cobra.Command {
		v := newVerb(a.Env)
		cmd := &cobra.Command{
			Use:               v.Use,
			Aliases:           v.Aliases,
			Short:             v.Short,
			Long:              v.Long,
			Example:           v.Example,
			Hidden:            v.Hidden,
			GroupID:           cmp.Or(v.Group, app.GroupFirst),
			ValidArgsFunction: complete.Keys(a, v.Keys),
			RunE: func(cmd *cobra.Command, _ []string) error {
				ctx := cmd.Context()
				in := func(name, what, form string) (string, error) { return a.Read(ctx, name, what+form) }
				req, err := v.Parse(usage.Words(cmd.Flags().Args()), in)
				if err != nil {
					return err
				}
				return Do(ctx, a, req)
			},
		}
		if v.Flags != nil {
			v.Flags(cmd.Flags())
		}
		return cmd
	}
}

// A Source reads a file, or standard input if the name is "-". what names the content in messages, and form
// continues what for a user who types the content at the terminal; it may be empty.
type Source func(name, what, form string) (string, error)

const theValue = "the value"

// Value returns the operand VALUE from words, the words after the key. If file is not empty, the value is
// the content of that file. Otherwise it is the first word, where - means standard input. rest holds the
// unused words.
func Value(words []repl.Word, file string, in Source) (value string, rest []repl.Word, err error) {
	switch {
	case file != "":
		value, err = in(file, theValue, "")
		if fault.IsA[*fs.PathError](err) && file != "-" {
			err = &fault.UsageError{Err: fmt.Errorf("-f: %w", err)}
		}
		return value, words, err
	case len(words) == 0:
		return "", nil, fault.Usagef("no value: expected VALUE, - for standard input, or -f FILE")
	case words[0] == repl.Word{Text: "-"}:
		value, err = in("-", theValue, "")
		return value, words[1:], err
	}
	if name, ok := strings.CutPrefix(words[0].Text, "@"); ok && !words[0].Quoted {
		if info, err := os.Stat(name); err == nil && info.Mode().IsRegular() {
			return "", nil, &fault.UsageError{Err: fmt.Errorf("the value %.64q would be this text, and a file has that name: for the text, use - and standard input", words[0].Text),
				Hint: suggest.Try("`-f FILE in place of VALUE`").Fill(suggest.File, name).Fill(suggest.Value, words[0].Text)}
		}
	}
	return words[0].Text, words[1:], nil
}

// A Request holds the commands that one command line, or one line of a batch, sends to the store.
type Request struct {
	Commands []client.Command // sent in order; may be empty if the keys come from a file
	Force    bool             // --force-fence; only with a single command
	Alone    bool             // unknown effect: a batch sends the request while no other is in flight
	Replaces bool             // Result replaces a file

	// Result converts the result of one of the commands for printing. yes is false if the result means
	// "no", which has exit code 1. If shown is nil, nothing is printed.
	Result func(c *client.Command, result client.Result) (shown format.Result, yes bool, err error)

	// Run, unless nil, carries out the whole request, and Commands holds only the first command.
	// Run is for requests in which each exchange depends on the previous one.
	Run func(ctx context.Context, a *app.App, s *client.Session) error

	Show format.Show  // --show, which affects only the human form of output; empty = not given
	Rows []format.Row // the parts of the results that are known in advance, to align the columns
}

// Check returns a usage error if the request cannot be sent, or if its results cannot be printed in
// this form of output.
func (r Request) Check(a *app.App) error {
	for i := range r.Commands {
		if err := r.Commands[i].Check(); err != nil {
			return &fault.UsageError{Err: err}
		}
		if err := CheckFence(a.Env, r.Commands[i]); err != nil {
			return err
		}
	}
	return usage.CheckShow(r.Show, a.Output)
}

// Changes returns a short description of what a request changes, such as `set "a" and 2 more`. It returns
// "" if the request only reads.
func (r Request) Changes() string {
	text, more := "", 0
	for _, c := range r.Commands {
		switch {
		case !wire.Changes(c.Verb()):
		case text == "":
			text = format.Verb(c.Verb())
			if c.Key() != "" {
				text += " " + format.Brief(c.Key())
			}
		default:
			more++
		}
	}
	if more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
