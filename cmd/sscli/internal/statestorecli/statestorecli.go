// Package statestorecli is the command line of Microsoft's tool statestore-cli, for scripts that
// were written for that tool.
//
// If the program is started under the name [Name], through a link or a copy, main uses [New] in
// place of the command table. The commands get, set and delete have the flags of statestore-cli.
// Everything else is as in sscli: the client id is random, and the bytes on the wire, the errors and
// the exit codes are the same.
package statestorecli

import (
	"net"
	"strconv"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/cmd/sscli/internal/app"
	"github.com/sscli/sscli/cmd/sscli/internal/config"
	"github.com/sscli/sscli/cmd/sscli/internal/fault"
	"github.com/sscli/sscli/cmd/sscli/internal/usage"
	"github.com/sscli/sscli/cmd/sscli/internal/verb"
	"github.com/sscli/sscli/format"
	"github.com/sscli/sscli/internal/files"
)

// Name is the name of Microsoft's tool.
const Name = "statestore-cli"

// New returns the root command of statestore-cli.
func New(a *app.App) *cobra.Command {
	var host, ca, cert, key, keyPassword string
	var port uint16
	var plain, verbose bool
	root := &cobra.Command{
		Use:           Name,
		Short:         "Read and write the state store",
		Long:          "Read and write the state store.\n\nThis is sscli under the name of Microsoft's tool, with that tool's flags. Called by the\nname sscli it can do more.",
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.ArbitraryArgs,
		PersistentPreRunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 && cmd.HasParent() {
				return fault.Usagef("%.64q: %s takes no operand", args[0], cmd.CommandPath())
			}
			if err := usage.UnprotectFlags(cmd.Flags()); err != nil {
				return fault.Usagef("%w", err)
			}
			a.Settings = config.Settings{
				Address: net.JoinHostPort(host, strconv.Itoa(int(port))), TLS: !plain,
				CAFile: ca, CertFile: cert, KeyFile: key, KeyPasswordFile: keyPassword, Trace: verbose,
				Sources: map[string]config.Source{
					"ca-file": {Flag: "cafile"}, "cert-file": {Flag: "certfile"}, "key-file": {Flag: "keyfile"}, "key-password-file": {Flag: "keypasswordfile"},
				},
			}
			a.Flags = cmd.Flags()
			return a.SetOutput("raw")
		},
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return fault.Usagef("unknown command %.64q: expected get, set or delete", args[0])
			}
			return fault.Usagef("missing command: expected get, set or delete")
		},
	}
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usage.FlagError("", err) })
	root.SetOut(a.Stdout)
	root.SetErr(a.Stderr)
	root.CompletionOptions.DisableDefaultCmd = true
	fs := root.PersistentFlags()
	fs.StringVarP(&host, "hostname", "n", "localhost", "broker's host name")
	fs.Uint16VarP(&port, "port", "p", 8883, "broker's port")
	fs.BoolVar(&plain, "notls", false, "do not use TLS")
	fs.StringVarP(&ca, "cafile", "T", "", "PEM `FILE` of the CAs to trust")
	fs.StringVarP(&cert, "certfile", "C", "", "PEM `FILE` of the client certificate")
	fs.StringVarP(&key, "keyfile", "K", "", "PEM `FILE` of the key of the client certificate")
	fs.StringVarP(&keyPassword, "keypasswordfile", "P", "", "`FILE` that holds the password of the key")
	fs.BoolVar(&verbose, "verbose", false, "print every packet to stderr")
	root.AddCommand(get(a), set(a), del(a))
	return root
}

// keyFlag defines the flag --key. It does not check the key: sending a request with an empty key is an
// error.
func keyFlag(cmd *cobra.Command) *string {
	return cmd.Flags().StringP("key", "k", "", "the key")
}

func get(a *app.App) *cobra.Command {
	cmd := &cobra.Command{Use: "get", Short: "Print a value or write it to a file",
		Long: "Print a value and a newline, or write the value to a file.\n\nThe exit code is 1 if the key is missing."}
	key := keyFlag(cmd)
	file := cmd.Flags().StringP("valuefile", "f", "", "write the value's bytes to `FILE`")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return verb.Do(cmd.Context(), a, verb.Request{
			Commands: []client.Command{client.Get(*key)},
			Result: func(_ *client.Command, result client.Result) (format.Result, bool, error) {
				r := result.(client.GetResult)
				value, found := r.Value, r.Found
				switch {
				case !found:
					return nil, false, nil
				case *file != "":
					if err := files.Write(*file, value, 0o600); err != nil {
						return nil, false, &fault.OutputError{Err: err, File: true}
					}
					return nil, true, nil
				case term.IsTerminal(int(a.Stdout.Fd())):
					value = format.AppendEscape(nil, value)
				}
				_, err := a.Stdout.Write(append(value, '\n'))
				return nil, true, fault.Output(err)
			},
		})
	}
	return cmd
}

func set(a *app.App) *cobra.Command {
	cmd := &cobra.Command{Use: "set", Short: "Store a value"}
	key := keyFlag(cmd)
	value := cmd.Flags().String("value", "", "the value")
	file := cmd.Flags().StringP("valuefile", "f", "", "read the value from `FILE`")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if cmd.Flags().Changed("value") == (*file != "") {
			return fault.Usagef("expected one of --value and --valuefile")
		}
		data := []byte(*value)
		if *file != "" {
			var err error
			if data, err = files.ReadFile(*file, files.MaxValue); err != nil {
				return &fault.UsageError{Err: err}
			}
		}
		return verb.Do(cmd.Context(), a, verb.Request{
			Commands: []client.Command{client.Set(*key, data)},
			Result: func(_ *client.Command, r client.Result) (format.Result, bool, error) {
				return nil, r.(client.SetResult).Applied, nil
			},
		})
	}
	return cmd
}

func del(a *app.App) *cobra.Command {
	cmd := &cobra.Command{Use: "delete", Short: "Delete a key",
		Long: "Delete a key.\n\nThe exit code is 1 if the key is missing."}
	key := keyFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return verb.Do(cmd.Context(), a, verb.Request{
			Commands: []client.Command{client.Del(*key)},
			Result: func(_ *client.Command, r client.Result) (format.Result, bool, error) {
				return nil, r.(client.DelResult).Deleted, nil
			},
		})
	}
	return cmd
}
