package verb

import (
	"cmp"
	"context"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/cmd/sscli/internal/app"
	"github.com/sscli/sscli/cmd/sscli/internal/complete"
	"github.com/sscli/sscli/cmd/sscli/internal/fault"
	"github.com/sscli/sscli/format"
)

// A Verb is a command that sends requests to the store. The command line and a batch use it
// the same way: first Flags, then Parse. A Verb holds the values of its flags, so each use with
// flags needs a new one, from one of [Makers].
type Verb struct {
	use     string   // as cobra has it: the name first
	Aliases []string // other names
	short   string
	long    string
	example string
	Hidden  bool   // not in help
	group   string // in help; empty for app.GroupStore
	keys    int    // how many operands are keys; 0 for all of them

	// Flags defines the verb's own flags; nil if there are none.
	Flags func(*pflag.FlagSet)
	// Parse turns the operands into a request, and does not change the values of the flags. in
	// reads a value from a file or from standard input, and is called only if an operand or a
	// flag says so. room is empty; its memory may become the request's. The error is a usage
	// error, or in's.
	Parse func(args []string, in app.Source, room []client.Command) (Request, error)
	// Writes reports whether a line with these operands may change the store, without
	// reading a value. nil for a verb that only reads.
	Writes func(operands []string) bool
}

// always is Verb.Writes of verbs that write.
func always([]string) bool { return true }

// Name returns the verb's name: "get".
func (v Verb) Name() string {
	name, _, _ := strings.Cut(v.use, " ")
	return name
}

// A Request is what a line asks of the store.
type Request struct {
	Commands []client.Command // at least one; sent in order
	Force    bool             // --force-fence; there is one command then
	Alone    bool             // the effect is unknown: in a batch nothing else may be under way
	Replaces bool             // Show replaces a file

	// Show turns the reply to one of the commands into a result; yes is false for a "no". A nil
	// result prints nothing.
	Show func(c *client.Command, r client.Result) (result format.Result, yes bool, err error)

	// Carry, unless nil, carries out the whole request: several exchanges, each of which
	// depends on the one before. Commands is the first of them.
	Carry func(ctx context.Context, a *app.App, s *client.Session) error

	View format.Show  // --show, which only the human form heeds; empty if it was not given
	Rows []format.Row // the results as far as they are known before, to align their columns
}

// Check returns a usage error if a request cannot be sent, or its results not be printed in
// this form of output.
func (r Request) Check(output string) error {
	for _, c := range r.Commands {
		if err := c.Check(); err != nil {
			return &fault.UsageError{Err: err}
		}
	}
	return app.CheckShow(r.View, output)
}

// Makers returns, for each verb, a function that makes it.
func Makers() []func() Verb {
	return []func() Verb{newGet, newSet, newDel, newVDel, newScan, newCall, newKeyNotify}
}

// Command returns the row of the command table for the verb with a name. There must be one.
func Command(name string) app.Command {
	return app.Command{Name: name, New: func(a *app.App) *cobra.Command {
		for _, anew := range Makers() {
			if v := anew(); v.Name() == name {
				return verbCommand(a, v)
			}
		}
		panic("no verb has the name " + name)
	}}
}

// verbCommand returns a verb as a command of the command line.
func verbCommand(a *app.App, v Verb) *cobra.Command {
	cmd := &cobra.Command{
		Use:               v.use,
		Aliases:           v.Aliases,
		Short:             v.short,
		Long:              v.long,
		Example:           v.example,
		Hidden:            v.Hidden,
		GroupID:           cmp.Or(v.group, app.GroupStore),
		ValidArgsFunction: complete.Keys(a, v.keys),
		RunE: func(cmd *cobra.Command, args []string) error {
			req, err := v.Parse(args, func(name string) ([]byte, error) { return a.Read(cmd.Context(), name, "the value") }, nil)
			if err != nil {
				return err
			}
			return Do(a, cmd.Context(), req)
		},
	}
	if v.Flags != nil {
		v.Flags(cmd.Flags())
	}
	return cmd
}
