package basics

import (
	"github.com/spf13/pflag"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/cmd/sscli/internal/config"
	"github.com/sscli/sscli/cmd/sscli/internal/fault"
	"github.com/sscli/sscli/cmd/sscli/internal/usage"
	"github.com/sscli/sscli/cmd/sscli/internal/verb"
	"github.com/sscli/sscli/format"
	"github.com/sscli/sscli/internal/files"
	"github.com/sscli/sscli/repl"
)

// Get returns the verb `get`.
func Get(_ verb.Env) verb.Verb {
	var file config.File
	var versionOnly, lines bool
	var keysFrom usage.KeysFrom
	var show format.Show
	return verb.Verb{
		Use:   "get KEY...",
		Short: "Print values and their versions",
		Long: `Print the value of a key and its version. The exit code is 1 if a key is missing.

On a terminal, get indents JSON, shows text as it is, and shows other bytes as a hex dump.
It cuts a long value after one screen. --show selects another form.

In the raw form, get of one key prints the bytes of its value and nothing else. Several
keys, --lines and --keys-from print one line for each key: KEY, VERSION and VALUE,
separated by tabs, with C escapes. The VERSION of a missing key is -. --keys-from reads
the lines that scan -o raw prints. Keys are exact: for a pattern, use scan --long or
export.`,
		Example: "  sscli get setpoint\n  sscli get setpoint --show hex\n  sscli get -f image.png camera/last\n  sscli get -o json a b c\n" +
			"  sscli scan 'thermostat/*' | sscli get --keys-from -",
		Flags: func(fs *pflag.FlagSet) {
			fs.VarP(&file, "file", "f", "write the value to `FILE`, all or nothing, and print the version")
			fs.BoolVar(&versionOnly, "version-only", false, "print the version without the value")
			fs.BoolVar(&lines, "lines", false, "print one line per key even for a single key")
			keysFrom.Bind(fs)
			usage.BindShow(fs, &show)
		},
		Parse: func(operands []repl.Word, in verb.Source) (verb.Request, error) {
			if file != "" && (len(operands) > 1 || keysFrom.Given()) {
				return verb.Request{}, fault.Usagef("-f with several keys: expected one key")
			}
			keys, err := keysFrom.Keys(repl.Texts(operands), in)
			if err != nil {
				return verb.Request{}, err
			}
			req := verb.Request{Show: show, Replaces: file != ""}
			many := lines || len(keys) > 1 || keysFrom.Given()
			for _, key := range keys {
				req.Commands = append(req.Commands, client.Get(key))
				req.Rows = append(req.Rows, format.Get{Key: key, Many: many})
			}
			req.Result = func(c *client.Command, result client.Result) (format.Result, bool, error) {
				r := result.(client.GetResult)
				if r.Found && file != "" {
					if err := files.Write(string(file), r.Value, 0o600); err != nil {
						return nil, false, &fault.OutputError{Err: err, File: true}
					}
				}
				return format.Get{
					Key: c.Key(), Found: r.Found, Value: r.Value, Version: r.Version, RTT: r.RTT,
					Many: many, VersionOnly: versionOnly || file != "", Show: show,
				}, r.Found, nil
			}
			return req, nil
		},
	}
}
