package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/cmd/sscli/internal/config"
	"github.com/sscli/sscli/format"
)

func newContext(a *app) *cobra.Command {
	parent := &cobra.Command{
		Use:         "context",
		Short:       "Name connections, and choose one",
		GroupID:     groupMore,
		Annotations: map[string]string{offline: ""},
		Long: `A context is a named connection: what the connection flags say, kept in a file.
-c NAME uses one, context use chooses the one that is used when nothing else is said.

From the first to the last that counts: a flag, the context that -c names, an SSCLI_
variable, the chosen context (SSCLI_CONTEXT chooses too), an AIO_ variable. A flag or
SSCLI_ variable that names another broker voids the chosen context as a whole, so that
its users and tokens are sent to nobody else.

With a protected context whatever writes asks on the terminal, and needs --yes where
there is none.

The file is $XDG_CONFIG_HOME/sscli/config.yaml (~/.config/sscli/config.yaml, on Windows
%AppData%\sscli\config.yaml) or what --config or SSCLI_CONFIG names. It holds the names
of files with secrets, never a secret.`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usage("unknown context command %.64q: want set, list, use, show or rm", unprotect(args[0]))
			}
			return usage("no context command: want set, list, use, show or rm")
		},
		RunE: func(*cobra.Command, []string) error { return nil },
	}
	parent.AddCommand(contextSet(a), contextList(a), contextUse(a), contextShow(a), contextRemove(a))
	return parent
}

// contextFile is the file that a command is to change.
func (a *app) contextFile(cmd *cobra.Command) (string, error) {
	if f := cmd.Flags().Lookup("context"); f != nil && f.Changed {
		return "", usage("--context %s: want the name as the operand", f.Value)
	}
	file, _ := config.Path(cmd.Flags(), a.env)
	if file == "" {
		return "", usage("no place for contexts: want HOME or XDG_CONFIG_HOME in the environment, or --config FILE")
	}
	return file, nil
}

// shownContext is a context as commands print it.
func shownContext(op, name string, all config.Contexts) format.Context {
	c := all.Named[name]
	shown := format.Context{Op: op, Name: name, Chosen: name != "" && name == all.Chosen, Protected: c.Protected, Broker: c.Broker()}
	if c.Embedded() {
		shown.Broker = "embedded"
	}
	return shown
}

// editContexts changes the file of contexts and prints the one that change returns.
func (a *app) editContexts(cmd *cobra.Command, change func(all *config.Contexts, file string) (format.Context, error)) error {
	file, err := a.contextFile(cmd)
	if err != nil {
		return err
	}
	var shown format.Context
	err = config.Edit(cmd.Context(), file, func(all *config.Contexts) (err error) {
		shown, err = change(all, file)
		return err
	})
	if err != nil {
		return err
	}
	return a.emit(shown)
}

func contextSet(a *app) *cobra.Command {
	var protected bool
	var unset []string
	cmd := &cobra.Command{
		Use:   "set NAME [connection flags]",
		Short: "Make a context, or change one",
		Long: `Make a context of the connection flags on this command line, or give one that is there
these flags too. A flag replaces what cannot stand beside it: --url replaces --host.
Names of files are kept as absolute paths.`,
		Example: "  sscli context set lab -u mqtts://lab.example --ca-file lab.crt\n  sscli context set prod --sat-file token --protected\n  sscli context set prod --unset client-id",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usage("%d operands: want context set NAME, and flags", len(args))
			}
			name := unprotect(args[0])
			if err := config.CheckName(name); err != nil {
				return &usageError{err: err}
			}
			return a.editContexts(cmd, func(all *config.Contexts, _ string) (shown format.Context, err error) {
				c := all.Named[name]
				nothing, err := c.Change(cmd.Flags(), unset)
				switch {
				case errors.Is(err, config.ErrNoBroker):
					return shown, &usageError{err: fmt.Errorf("context %s: no broker", name), hint: "sscli context set " + name + " --url mqtts://HOST:PORT"}
				case err != nil:
					return shown, &usageError{err: err}
				case cmd.Flags().Changed("protected"):
					c.Protected = protected
				case slices.ContainsFunc(unset, func(f string) bool { return strings.TrimPrefix(f, "--") == "protected" }):
					c.Protected = false
				case nothing:
					return shown, usage("nothing to set: want connection flags, --protected or --unset FLAG")
				}
				if all.Named == nil {
					all.Named = make(map[string]config.Context)
				}
				all.Named[name] = c
				return shownContext("set", name, *all), nil
			})
		},
		ValidArgsFunction: completeContext(a),
	}
	cmd.Flags().BoolVar(&protected, "protected", false, "ask before writes, and want --yes where nobody can be asked")
	cmd.Flags().StringSliceVar(&unset, "unset", nil, "take this `FLAG` away")
	return cmd
}

func contextList(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List the contexts; * is before the chosen one",
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if _, err := a.contextFile(cmd); err != nil {
				return err
			}
			all, _, err := config.Load(cmd.Flags(), a.env)
			if err != nil {
				return err
			}
			width := 0
			for _, name := range all.Names() {
				width = max(width, len(name))
			}
			for _, name := range all.Names() {
				c := shownContext("list", name, all)
				c.Width = width
				if err := a.emit(c); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

func contextUse(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "use NAME|none",
		Short:   "Choose the context that is used when nothing else is said",
		Example: "  sscli context use lab\n  sscli context use none",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usage("%d operands: want context use NAME, or context use none", len(args))
			}
			name := unprotect(args[0])
			return a.editContexts(cmd, func(all *config.Contexts, file string) (shown format.Context, err error) {
				if name == config.None {
					all.Chosen = ""
				} else if _, err := all.Find(name, "context use", file); err != nil {
					return shown, err
				} else {
					all.Chosen = name
				}
				return shownContext("use", all.Chosen, *all), nil
			})
		},
		ValidArgsFunction: completeContext(a),
	}
}

func contextRemove(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "rm NAME",
		Short: "Remove a context; no other is chosen in its place",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usage("%d operands: want context rm NAME", len(args))
			}
			name := unprotect(args[0])
			return a.editContexts(cmd, func(all *config.Contexts, file string) (shown format.Context, err error) {
				if _, err := all.Find(name, "context rm", file); err != nil {
					return shown, err
				}
				shown = shownContext("rm", name, *all)
				delete(all.Named, name)
				if all.Chosen == name {
					all.Chosen = ""
				}
				return shown, nil
			})
		},
		ValidArgsFunction: completeContext(a),
	}
}

func contextShow(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "show [NAME]",
		Short: "Show every value that counts, and who says so",
		Long: `Show what a command with the same flags and the same environment would use, and which
flag, variable or context says so. With NAME it is what it would be with -c NAME.`,
		Example: "  sscli context show\n  sscli context show lab\n  sscli context show -u mqtt://127.0.0.1 -o json",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usage("%d operands: want context show, or context show NAME", len(args))
			}
			if len(args) == 1 {
				if f := cmd.Flags().Lookup("context"); f.Changed {
					return usage("--context %s together with %s: want one of them", f.Value, unprotect(args[0]))
				}
				if err := cmd.Flags().Set("context", unprotect(args[0])); err != nil {
					return usage("%.64q: %w", args[0], err)
				}
			}
			err := a.configure(cmd.Flags())
			if isA[*config.UnknownContextError](err) || isA[*config.FileError](err) {
				return err
			}
			// A setting that is wrong is told of after those that are known.
			for _, s := range a.effective(cmd) {
				if printErr := a.emit(s); printErr != nil {
					return printErr
				}
			}
			return err
		},
		ValidArgsFunction: completeContext(a),
	}
}

// effective are the values that count.
func (a *app) effective(cmd *cobra.Command) []format.Setting {
	s := a.settings
	said := s.Effective()
	byName := make(map[string]bool)
	for _, e := range said {
		byName[e.Flag] = true
	}
	add := func(flag, value string) {
		if !byName[flag] {
			said = append(said, config.Effective{Flag: flag, Value: value, Source: "default"})
		}
	}
	add("client-id", "sscli- and random characters")
	add("timeout", client.DefaultTimeout.String())
	add("output", a.output)
	add("color", "auto")
	if file, source := config.Path(cmd.Flags(), a.env); file != "" {
		if source == "" {
			source = "default"
		}
		said = slices.Insert(said, 0, config.Effective{Flag: "config", Value: file, Source: source})
	}
	const most = 40 // long values push what is behind them
	var width, valueWidth int
	for _, e := range said {
		width = max(width, len(e.Flag))
		if len(e.Value) <= most {
			valueWidth = max(valueWidth, len(e.Value))
		}
	}
	var out []format.Setting
	for _, e := range said {
		v := format.Setting{Name: e.Flag, Value: e.Value, Source: e.Source, Width: width, ValueWidth: valueWidth}
		if e.FromContext {
			v.File = s.ContextFile
		}
		out = append(out, v)
	}
	return out
}

// completeContext completes the name of a context.
func completeContext(a *app) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return a.contextNames(cmd, toComplete)
	}
}
