package verb

import (
	"context"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/cmd/sscli/internal/cli"
	"github.com/sscli/sscli/cmd/sscli/internal/complete"
	"github.com/sscli/sscli/format"
)

// A verb is a command that sends requests to the store. The command line and a
// batch read it the same way: flags, then parse. A verb is made anew for each
// use, because its flags are its own.
type Verb struct {
	use     string // name first
	Aliases []string
	short   string
	long    string
	example string
	Hidden  bool
	keys    int // how many operands are keys; 0 = all of them
	Flags   func(*pflag.FlagSet)
	Parse   func(args []string, in cli.Stdin) (Request, error)
	// writes tells by the operands whether the line may change something in the
	// store, without reading a value; nil = it never does.
	Writes func(operands []string) bool
}

// always is for verbs that write.
func always([]string) bool { return true }

func (v Verb) Name() string {
	name, _, _ := strings.Cut(v.use, " ")
	return name
}

// A request is what a line asks of the store.
type Request struct {
	Commands []client.Command
	Force    bool // past the fencing token of the key, of which there is one
	// show turns the reply to the i-th command into a result; yes is false for a
	// "no". A nil result prints nothing.
	Show  func(i int, r client.Result) (result format.Result, yes bool, err error)
	Alone bool // of unknown effect: in a batch nothing else may be under way
	// carry, if it is set, does it all instead, in several exchanges of which each
	// depends on the one before; commands is the first of them. It prints to p.
	Carry func(ctx context.Context, s *client.Session, p *format.Printer) error
}

// makers make each verb anew.
func Makers() []func() Verb {
	return []func() Verb{newGet, newSet, newDel, newVDel, newScan, newCall, newKeyNotify}
}

// verbCommands returns the rows of the command table that are verbs.
func Commands() []cli.Command {
	var rows []cli.Command
	for _, anew := range Makers() {
		rows = append(rows, cli.Command{Name: anew().Name(), New: func(a *cli.App) *cobra.Command { return verbCommand(a, anew()) }})
	}
	return rows
}

// verbCommand is the verb as a command of the command line.
func verbCommand(a *cli.App, v Verb) *cobra.Command {
	cmd := &cobra.Command{
		Use:               v.use,
		Aliases:           v.Aliases,
		Short:             v.short,
		Long:              v.long,
		Example:           v.example,
		Hidden:            v.Hidden,
		GroupID:           cli.GroupStore,
		ValidArgsFunction: complete.Keys(a, v.keys),
		RunE: func(cmd *cobra.Command, args []string) error {
			req, err := v.Parse(args, func() ([]byte, error) { return a.ReadStdin(cmd.Context(), "the value") })
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
