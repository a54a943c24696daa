package verb

import (
	"github.com/spf13/pflag"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/cmd/sscli/internal/app"
	"github.com/sscli/sscli/cmd/sscli/internal/atomicfile"
	"github.com/sscli/sscli/cmd/sscli/internal/config"
	"github.com/sscli/sscli/cmd/sscli/internal/fault"
	"github.com/sscli/sscli/format"
)

// newGet returns the verb `get`.
func newGet() Verb {
	var file config.Text
	var versionOnly, lines bool
	var show format.Show
	return Verb{
		use:   "get KEY...",
		short: "Print values and their versions",
		long: `Print the value of a key and its version. The exit code is 1 if a key is missing.

On a terminal, JSON is indented, text is shown as it is, and other bytes as a hex dump.
A long value is cut after one screen. --show selects another form.

In the raw form one key gives the bytes of its value and nothing else. Several keys
give one line each: KEY, VERSION and VALUE, separated by tabs, with C escapes. The
VERSION of a missing key is -.`,
		example: "  sscli get setpoint\n  sscli get setpoint --show hex\n  sscli get -f image.png camera/last\n  sscli get -o json a b c",
		Flags: func(fs *pflag.FlagSet) {
			fs.VarP(&file, "file", "f", "write the value to `FILE`, all or nothing, and print the version")
			fs.BoolVar(&versionOnly, "version-only", false, "print the version without the value")
			fs.BoolVar(&lines, "lines", false, "print one line per key even for a single key")
			app.BindShow(fs, &show)
		},
		Parse: func(args []string, _ app.Source, room []client.Command) (Request, error) {
			if len(args) == 0 {
				return Request{}, fault.Usagef("missing KEY")
			}
			if file != "" && len(args) > 1 {
				return Request{}, fault.Usagef("-f with %d keys: want one key", len(args))
			}
			req := Request{View: show, Replaces: file != "", Commands: room}
			many := lines || len(args) > 1
			for _, key := range app.UnprotectAll(args) {
				req.Commands = append(req.Commands, client.Get(key))
				req.Rows = append(req.Rows, format.Get{Key: key, Many: many})
			}
			req.Show = func(c *client.Command, result client.Result) (format.Result, bool, error) {
				r := result.(client.GetResult)
				if r.Found && file != "" {
					if err := atomicfile.Write(string(file), r.Value, 0o666); err != nil {
						return nil, false, &fault.OutputError{Err: err, File: true}
					}
				}
				return format.Get{
					Key: c.Key(), Found: r.Found, Value: r.Value, Version: app.Version(r.Version), RTT: r.RTT,
					Many: many, VersionOnly: versionOnly || file != "", Show: show,
				}, r.Found, nil
			}
			return req, nil
		},
	}
}
