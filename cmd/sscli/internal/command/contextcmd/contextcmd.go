// Package contextcmd is the command `sscli context`, which lists, shows, changes and chooses named
// connections.
//
// [New] makes the command with its subcommands set, list, use, show and rm. None of them connects to a
// broker. Package config reads and writes the context file.
package contextcmd

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/cmd/sscli/internal/app"
	"github.com/sscli/sscli/cmd/sscli/internal/complete"
	"github.com/sscli/sscli/cmd/sscli/internal/config"
	"github.com/sscli/sscli/cmd/sscli/internal/fault"
	"github.com/sscli/sscli/cmd/sscli/internal/suggest"
	"github.com/sscli/sscli/cmd/sscli/internal/usage"
	"github.com/sscli/sscli/format"
)

// New returns the command `sscli context`.
func New(a *app.App) *cobra.Command {
	return app.WithCommands(&cobra.Command{
		Use:         "context",
		Short:       "Manage named connections",
		GroupID:     app.GroupFirst,
		Annotations: map[string]string{app.Offline: ""},
		Long: `A context is a named connection: connection flags that sscli keeps in a file.

-c NAME uses a context for one command. sscli context use NAME chooses the context for
all commands without -c.

In order of precedence, a setting comes from a flag, the context that -c names, an SSCLI_
variable, the chosen context (of sscli context use, or SSCLI_CONTEXT), or an AIO_
variable. If a flag or an SSCLI_ variable names another broker, the whole chosen context
is ignored, so that its users and tokens are not sent to another broker.

In a protected context, every write asks for confirmation on the terminal. Without a
terminal, a write needs --yes.

The contexts are in $XDG_CONFIG_HOME/sscli/config.yaml, by default
~/.config/sscli/config.yaml, on Windows %AppData%\sscli\config.yaml. --config or
SSCLI_CONFIG names another file. The file holds names of files with secrets, never a
secret.`,
		Example: "  sscli context set lab --url mqtts://lab.example --ca-file lab.crt\n  sscli context use lab\n  sscli -c lab get setpoint",
	}, contextSet(a), contextList(a), contextUse(a), contextShow(a), contextRemove(a))
}

// contextFile returns the path of the context file. It returns a usage error if there is no path,
// or if --context is given: set, use and rm take the name as an operand, and list takes no name.
func contextFile(a *app.App, cmd *cobra.Command) (string, error) {
	if f := cmd.Flags().Lookup("context"); f != nil && f.Changed {
		return "", fault.Usagef("--context %s: set, use and rm take the name as the operand, and list takes none", f.Value)
	}
	file, _ := config.Path(cmd.Flags(), a.Env)
	if file == "" {
		return "", fault.Usagef("no file for contexts: set HOME or XDG_CONFIG_HOME, or use --config FILE")
	}
	return file, nil
}

func shownContext(op, name string, all config.Contexts) format.Context {
	c := all.Named[name]
	shown := format.Context{Op: op, Name: name, Chosen: name != "" && name == all.Chosen, Protected: c.Protected, Broker: c.Broker()}
	if c.Embedded() {
		shown.Broker = "embedded"
	}
	return shown
}

func editContexts(a *app.App, cmd *cobra.Command, change func(all *config.Contexts, file string) (format.Context, error)) error {
	file, err := contextFile(a, cmd)
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
	return a.Emit(shown)
}

func contextSet(a *app.App) *cobra.Command {
	var protected bool
	var unset []string
	cmd := &cobra.Command{
		Use:   "set NAME [connection flags]",
		Short: "Create or change a context",
		Long: `Create a context from the connection flags on this command line, or change one.

The flags are added to an existing context. A flag replaces the flags that exclude it:
--url replaces --host. Names of files are kept as absolute paths.`,
		Args:    usage.ExactArgs("NAME"),
		Example: "  sscli context set lab -u mqtts://lab.example --ca-file lab.crt\n  sscli context set prod --sat-file token --protected\n  sscli context set prod --unset client-id",
		RunE: func(cmd *cobra.Command, args []string) error {
			name := args[0]
			if err := config.CheckName(name); err != nil {
				return &fault.UsageError{Err: err}
			}
			return editContexts(a, cmd, func(all *config.Contexts, _ string) (shown format.Context, err error) {
				c := all.Named[name]
				nothing, err := c.Change(cmd.Flags(), unset)
				switch {
				case fault.IsA[*config.NoBrokerError](err):
					return shown, &fault.UsageError{Err: fmt.Errorf("context %s: no broker", name), Hint: suggest.Try("`sscli context set NAME --url mqtts://HOST:PORT`").Fill(suggest.Name, name)}
				case err != nil:
					return shown, &fault.UsageError{Err: err}
				case cmd.Flags().Changed("protected"):
					c.Protected = protected
				case slices.ContainsFunc(unset, func(f string) bool { return strings.TrimPrefix(f, "--") == "protected" }):
					c.Protected = false
				case nothing:
					return shown, fault.Usagef("nothing to set: expected connection flags, --protected or --unset FLAG")
				}
				if all.Named == nil {
					all.Named = make(map[string]config.Context)
				}
				all.Named[name] = c
				return shownContext("set", name, *all), nil
			})
		},
		ValidArgsFunction: complete.ContextNames(a, 1),
	}
	cmd.Flags().BoolVar(&protected, "protected", false, "ask before each write; without a terminal require --yes")
	cmd.Flags().StringSliceVar(&unset, "unset", nil, "remove `FLAG` from the context")
	return cmd
}

func contextList(a *app.App) *cobra.Command {
	return &cobra.Command{
		Use:     "list",
		Short:   "List the contexts, with * before the chosen one",
		Example: "  sscli context list",
		Args:    usage.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if _, err := contextFile(a, cmd); err != nil {
				return err
			}
			all, _, err := config.Load(cmd.Flags(), a.Env)
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
				if err := a.Emit(c); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

func contextUse(a *app.App) *cobra.Command {
	return &cobra.Command{
		Use:   "use NAME|none",
		Short: "Choose the default context",
		Long: `Choose the context for all commands that do not name one.

The name none means that no context is chosen.`,
		Args:    usage.ExactArgs("NAME"),
		Example: "  sscli context use lab\n  sscli context use none",
		RunE: func(cmd *cobra.Command, args []string) error {
			name := args[0]
			err := editContexts(a, cmd, func(all *config.Contexts, file string) (shown format.Context, err error) {
				if name == config.None {
					all.Chosen = ""
				} else if _, err := all.Find(name, "context use", file); err != nil {
					return shown, err
				} else {
					all.Chosen = name
				}
				return shownContext("use", all.Chosen, *all), nil
			})
			if err == nil && name != config.None {
				warnOverridden(a, cmd, name)
			}
			return err
		},
		ValidArgsFunction: complete.ContextNames(a, 1),
	}
}

// warnOverridden warns if environment variables override the context that was just chosen.
func warnOverridden(a *app.App, cmd *cobra.Command, name string) {
	config.ForgetWarning(a.Env)                // a pending warning is about the previous context
	s, _ := config.Resolve(cmd.Flags(), a.Env) // a command that connects will report the error
	variables, what := s.Override.Variables, "it"
	switch other, _ := a.Env("SSCLI_CONTEXT"); {
	case other != "" && other != name:
		variables = []string{"SSCLI_CONTEXT"}
	case s.Override.Context != name:
		return
	case s.Context == name:
		what = "a part of it"
	}
	verb := "is set and overrides"
	if len(variables) > 1 {
		verb = "are set and override"
	}
	a.Advise(fmt.Sprintf("%s %s %s", strings.Join(variables, ", "), verb, what), suggest.Run(append([]string{"unset"}, variables...)...))
}

func contextRemove(a *app.App) *cobra.Command {
	return &cobra.Command{
		Use:   "rm NAME",
		Short: "Remove a context",
		Long: `Remove a context.

If it was the chosen context, no context is chosen afterwards.`,
		Example: "  sscli context rm lab",
		Args:    usage.ExactArgs("NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			name := args[0]
			return editContexts(a, cmd, func(all *config.Contexts, file string) (shown format.Context, err error) {
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
		ValidArgsFunction: complete.ContextNames(a, 1),
	}
}

func contextShow(a *app.App) *cobra.Command {
	return &cobra.Command{
		Use:   "show [NAME]",
		Short: "Show the effective settings and their sources",
		Long: `Show the settings that a command would use, and where each of them comes from.

These are the settings of a command with the same flags and the same environment; with
NAME, of a command with -c NAME. The source is a flag, a variable, or a context.`,
		Example: "  sscli context show\n  sscli context show lab\n  sscli context show -u mqtt://127.0.0.1 -o json",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return fault.Usagef("%.64q: sscli context show takes only one NAME", args[1])
			}
			if len(args) == 1 {
				if f := cmd.Flags().Lookup("context"); f.Changed {
					return fault.Usagef("--context %s together with %s: use only one of them", f.Value, args[0])
				}
				if err := cmd.Flags().Set("context", args[0]); err != nil {
					return fault.Usagef("%.64q: %w", args[0], err)
				}
			}
			err := a.Configure(cmd.Flags())
			if fault.IsA[*config.UnknownContextError](err) || fault.IsA[*config.FileError](err) {
				return err
			}
			// Print the valid settings before the error about an invalid one.
			for _, s := range effective(a, cmd) {
				if printErr := a.Emit(s); printErr != nil {
					return printErr
				}
			}
			return err
		},
		ValidArgsFunction: complete.ContextNames(a, 1),
	}
}

func effective(a *app.App, cmd *cobra.Command) []format.Setting {
	settings := a.Settings.Effective()
	add := func(flag, value string) {
		if !slices.ContainsFunc(settings, func(e config.Effective) bool { return e.Flag == flag }) {
			settings = append(settings, config.Effective{Flag: flag, Value: value, Source: "default"})
		}
	}
	add("client-id", "sscli- and random characters")
	add("timeout", client.DefaultTimeout.String())
	add("output", a.Output)
	add("color", "auto")
	if file, source := config.Path(cmd.Flags(), a.Env); file != "" {
		settings = slices.Insert(settings, 0, config.Effective{Flag: "config", Value: file, Source: cmp.Or(source.String(), "default")})
	}
	const maxWidth = 40 // longer values do not widen the column
	var width, valueWidth int
	for _, e := range settings {
		width = max(width, len(e.Flag))
		if len(e.Value) <= maxWidth {
			valueWidth = max(valueWidth, len(e.Value))
		}
	}
	var out []format.Setting
	for _, e := range settings {
		out = append(out, format.Setting{Name: e.Flag, Value: e.Value, Source: e.Source, File: e.File, Width: width, ValueWidth: valueWidth})
	}
	return out
}
