package main

import (
	"net"
	"os"
	"strconv"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/cmd/sscli/internal/atomicfile"
	"github.com/sscli/sscli/cmd/sscli/internal/config"
	"github.com/sscli/sscli/format"
)

// statestoreCLI is the name of Microsoft's tool. Under that name, as a link or a
// copy, sscli takes that tool's command line, for scripts that were written for it.
const statestoreCLI = "statestore-cli"

// newStatestoreCLI is the command table under that name: get, set and delete with
// that tool's flags. Its random client id, its bytes and its errors are sscli's.
func newStatestoreCLI(a *app) *cobra.Command {
	var host, ca, cert, key, keyPassword string
	var port uint16
	var plain, verbose bool
	root := &cobra.Command{
		Use:           statestoreCLI,
		Short:         "Read and write the state store, with the flags of Microsoft's tool of that name",
		Long:          "This is sscli under the name of Microsoft's tool. Called sscli, it can do more.",
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.ArbitraryArgs,
		PersistentPreRunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 && cmd.HasParent() {
				return usage("%.64q: %s takes no operand", unprotect(args[0]), cmd.CommandPath())
			}
			if err := unprotectFlags(cmd.Flags()); err != nil {
				return usage("%w", err)
			}
			a.settings = config.Settings{
				Address: net.JoinHostPort(host, strconv.Itoa(int(port))), TLS: !plain,
				CAFile: ca, CertFile: cert, KeyFile: key, KeyPasswordFile: keyPassword, Trace: verbose,
				Sources: map[string]string{
					"ca-file": "--cafile", "cert-file": "--certfile", "key-file": "--keyfile", "key-password-file": "--keypasswordfile",
				},
			}
			return a.print("raw")
		},
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usage("unknown command %.64q: want get, set or delete", unprotect(args[0]))
			}
			return usage("no command: want get, set or delete")
		},
	}
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usage("%s", flagError(err)) })
	root.SetOut(a.stdout)
	root.SetErr(a.stderr)
	root.CompletionOptions.DisableDefaultCmd = true
	fs := root.PersistentFlags()
	fs.StringVarP(&host, "hostname", "n", "localhost", "broker's host name")
	fs.Uint16VarP(&port, "port", "p", 8883, "broker's port")
	fs.BoolVar(&plain, "notls", false, "do not use TLS")
	fs.StringVarP(&ca, "cafile", "T", "", "PEM `FILE` with the certificates that the broker's must lead to")
	fs.StringVarP(&cert, "certfile", "C", "", "PEM `FILE` with the client's certificate")
	fs.StringVarP(&key, "keyfile", "K", "", "PEM `FILE` with the key of the client's certificate")
	fs.StringVarP(&keyPassword, "keypasswordfile", "P", "", "`FILE` with the password of the key")
	fs.BoolVar(&verbose, "verbose", false, "print every packet to stderr")
	root.AddCommand(statestoreGet(a), statestoreSet(a), statestoreDelete(a))
	return root
}

// keyFlag is the key of a command; an empty one is refused as everywhere.
func keyFlag(cmd *cobra.Command) *string {
	return cmd.Flags().StringP("key", "k", "", "the key")
}

func statestoreGet(a *app) *cobra.Command {
	cmd := &cobra.Command{Use: "get", Short: "Print a value and a newline, or write it to a file; exit code 1 if the key is missing"}
	key := keyFlag(cmd)
	file := cmd.Flags().StringP("valuefile", "f", "", "write the value's bytes to `FILE`")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return a.do(cmd.Context(), request{
			commands: []client.Command{client.Get(*key)},
			show: func(_ int, result client.Result) (format.Result, bool, error) {
				r := result.(client.GetResult)
				value, found := r.Value, r.Found
				switch {
				case !found:
					return nil, false, nil
				case *file != "":
					if err := atomicfile.Write(*file, value, 0o666); err != nil {
						return nil, false, &outputError{err: err, file: true}
					}
					return nil, true, nil
				case term.IsTerminal(int(a.stdout.Fd())):
					value = format.AppendEscape(nil, value)
				}
				if _, err := a.stdout.Write(append(value, '\n')); err != nil {
					return nil, true, &outputError{err: err}
				}
				return nil, true, nil
			},
		})
	}
	return cmd
}

func statestoreSet(a *app) *cobra.Command {
	cmd := &cobra.Command{Use: "set", Short: "Store a value"}
	key := keyFlag(cmd)
	value := cmd.Flags().String("value", "", "the value")
	file := cmd.Flags().StringP("valuefile", "f", "", "read the value from `FILE`")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if cmd.Flags().Changed("value") == (*file != "") {
			return usage("want one of --value and --valuefile")
		}
		data := []byte(*value)
		if *file != "" {
			var err error
			if data, err = os.ReadFile(*file); err != nil {
				return &usageError{err: err}
			}
		}
		return a.do(cmd.Context(), request{
			commands: []client.Command{client.Set(*key, data, client.SetOptions{})},
			show: func(_ int, r client.Result) (format.Result, bool, error) {
				return nil, r.(client.SetResult).Applied, nil
			},
		})
	}
	return cmd
}

func statestoreDelete(a *app) *cobra.Command {
	cmd := &cobra.Command{Use: "delete", Short: "Delete a key; exit code 1 if it is missing"}
	key := keyFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return a.do(cmd.Context(), request{
			commands: []client.Command{client.Del(*key, client.WriteOptions{})},
			show: func(_ int, r client.Result) (format.Result, bool, error) {
				return nil, r.(client.DelResult).Deleted, nil
			},
		})
	}
	return cmd
}
