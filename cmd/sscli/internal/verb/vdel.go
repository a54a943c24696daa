package verb

import (
	"github.com/spf13/pflag"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/cmd/sscli/internal/app"
	"github.com/sscli/sscli/cmd/sscli/internal/config"
	"github.com/sscli/sscli/cmd/sscli/internal/fault"
	"github.com/sscli/sscli/cmd/sscli/internal/fence"
	"github.com/sscli/sscli/format"
)

// newVDel returns the verb `vdel`.
func newVDel() Verb {
	var fence fence.Flags
	var file config.Text
	return Verb{
		use:     "vdel KEY VALUE",
		short:   "Delete a key if it holds a value",
		long:    "Delete a key if its value is VALUE. The exit code is 1 if the key is missing or holds\nanother value.",
		example: "  sscli vdel lock me",
		Writes:  always,
		Flags: func(fs *pflag.FlagSet) {
			fs.VarP(&file, "file", "f", "read the value from `FILE`")
			fence.Bind(fs)
		},
		Parse: func(args []string, in app.Source, room []client.Command) (Request, error) {
			if len(args) == 0 {
				return Request{}, fault.Usagef("missing KEY and VALUE")
			}
			key := app.Unprotect(args[0])
			value, rest, err := app.Value(args[1:], string(file), in)
			if err != nil {
				return Request{}, err
			}
			if len(rest) > 0 {
				return Request{}, fault.Usagef("%.64q after the value: want vdel KEY VALUE, and quotes around a value with spaces", app.Unprotect(rest[0]))
			}
			options, err := fence.Options()
			if err != nil {
				return Request{}, err
			}
			return Request{
				Commands: append(room, client.VDel(key, []byte(value), options)),
				Force:    fence.Force,
				Show: func(_ *client.Command, result client.Result) (format.Result, bool, error) {
					r := result.(client.VDelResult)
					return format.VDel{Key: key, Deleted: r.Deleted, Found: r.Found, Version: app.Version(r.Version), RTT: r.RTT}, r.Deleted, nil
				},
			}, nil
		},
	}
}
