package main

import (
	"context"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/format"
)

// A verb is a command that sends requests to the store. The command line and a
// batch read it the same way: flags, then parse. A verb is made anew for each
// use, because its flags are its own.
type verb struct {
	use     string // name first
	aliases []string
	short   string
	long    string
	example string
	hidden  bool
	keys    int // how many operands are keys; 0 = all of them
	flags   func(*pflag.FlagSet)
	parse   func(args []string, in stdin) (request, error)
	// writes tells by the operands whether the line may change something in the
	// store, without reading a value; nil = it never does.
	writes func(operands []string) bool
}

// always is for verbs that write.
func always([]string) bool { return true }

func (v verb) name() string {
	name, _, _ := strings.Cut(v.use, " ")
	return name
}

// A request is what a line asks of the store.
type request struct {
	commands []client.Command
	force    bool // past the fencing token of the key, of which there is one
	// show turns the reply to the i-th command into a result; yes is false for a
	// "no". A nil result prints nothing.
	show  func(i int, r client.Result) (result format.Result, yes bool, err error)
	alone bool // of unknown effect: in a batch nothing else may be under way
	// carry, if it is set, does it all instead, in several exchanges of which each
	// depends on the one before; commands is the first of them. It prints to p.
	carry func(ctx context.Context, s *client.Session, p *format.Printer) error
}

// makers make each verb anew.
func makers() []func() verb {
	return []func() verb{newGet, newSet, newDel, newVDel, newScan, newCall, newKeyNotify}
}

// verbCommands returns the rows of the command table that are verbs.
func verbCommands() []command {
	var rows []command
	for _, anew := range makers() {
		rows = append(rows, command{anew().name(), func(a *app) *cobra.Command { return verbCommand(a, anew()) }})
	}
	return rows
}

// verbCommand is the verb as a command of the command line.
func verbCommand(a *app, v verb) *cobra.Command {
	cmd := &cobra.Command{
		Use:               v.use,
		Aliases:           v.aliases,
		Short:             v.short,
		Long:              v.long,
		Example:           v.example,
		Hidden:            v.hidden,
		GroupID:           groupStore,
		ValidArgsFunction: a.completeKeys(v.keys),
		RunE: func(cmd *cobra.Command, args []string) error {
			req, err := v.parse(args, a.all)
			if err != nil {
				return err
			}
			return a.do(cmd.Context(), req)
		},
	}
	if v.flags != nil {
		v.flags(cmd.Flags())
	}
	return cmd
}
