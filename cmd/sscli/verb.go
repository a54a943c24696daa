package main

import (
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/client/wire"
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
	flags   func(*pflag.FlagSet)
	parse   func(args []string, in stdin) (request, error)
}

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
	show func(i int, r client.Reply) (result format.Result, yes bool, err error)
}

func verbs() []verb {
	return []verb{newGet(), newSet(), newDel(), newVDel(), newCall(), newKeyNotify()}
}

// findVerb returns the verb of that name, which may be of any case.
func findVerb(name string) (verb, bool) {
	name = strings.ToLower(name)
	for _, v := range verbs() {
		if v.name() == name {
			return v, true
		}
		for _, alias := range v.aliases {
			if alias == name {
				return v, true
			}
		}
	}
	return verb{}, false
}

// verbCommand is the verb as a command of the command line.
func (a *app) verbCommand(v verb) *cobra.Command {
	cmd := &cobra.Command{
		Use:     v.use,
		Aliases: v.aliases,
		Short:   v.short,
		Long:    v.long,
		Example: v.example,
		Hidden:  v.hidden,
		GroupID: groupStore,
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

// version is how a result shows a version: not at all if there is none.
func version(v wire.Version) format.Version {
	if v.IsZero() {
		return nil
	}
	return v
}
