package basics

import (
	"github.com/spf13/pflag"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/cmd/sscli/internal/config"
	"github.com/sscli/sscli/cmd/sscli/internal/fault"
	"github.com/sscli/sscli/cmd/sscli/internal/verb"
	"github.com/sscli/sscli/format"
	"github.com/sscli/sscli/repl"
)

// Vdel returns the verb `vdel`.
func Vdel(env verb.Env) verb.Verb {
	var fence verb.FenceFlags
	var file config.File
	return verb.Verb{
		Use:     "vdel KEY VALUE",
		Short:   "Delete a key if it holds a given value",
		Long:    "Delete a key if its value is VALUE. The exit code is 1 if the key is missing or holds\nanother value.",
		Example: "  sscli vdel mode manual",
		Writes:  verb.Always,
		Flags: func(fs *pflag.FlagSet) {
			fs.VarP(&file, "file", "f", "read the value from `FILE`")
			fence.Bind(fs)
		},
		Parse: func(operands []repl.Word, in verb.Source) (verb.Request, error) {
			if len(operands) == 0 {
				return verb.Request{}, fault.Usagef("missing KEY and VALUE")
			}
			key := operands[0].Text
			value, rest, err := verb.Value(operands[1:], string(file), in)
			if err != nil {
				return verb.Request{}, err
			}
			if len(rest) > 0 {
				return verb.Request{}, fault.Usagef("%.64q after the value: expected vdel KEY VALUE, and quotes around a value with spaces", rest[0].Text)
			}
			options, err := fence.Options(env)
			if err != nil {
				return verb.Request{}, err
			}
			return verb.Request{
				Commands: []client.Command{client.VDel(key, []byte(value), options)},
				Force:    fence.Force,
				Result: func(_ *client.Command, result client.Result) (format.Result, bool, error) {
					r := result.(client.VDelResult)
					return format.Del{Op: "vdel", Key: key, Deleted: r.Deleted, Differs: r.Found, Version: r.Version, RTT: r.RTT}, r.Deleted, nil
				},
			}, nil
		},
	}
}
