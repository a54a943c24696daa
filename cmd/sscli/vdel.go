package main

import (
	"github.com/spf13/pflag"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/cmd/sscli/internal/config"
	"github.com/sscli/sscli/format"
)

func newVDel() verb {
	var fence fencing
	var file config.Text
	return verb{
		use:     "vdel KEY VALUE",
		short:   "Delete a key if it holds a value",
		long:    "Delete a key if its value is VALUE. Exit code 1 if it is missing or holds another value.",
		example: "  sscli vdel lock me",
		writes:  always,
		flags: func(fs *pflag.FlagSet) {
			fs.VarP(&file, "file", "f", "read the value from `FILE`")
			fence.bind(fs)
		},
		parse: func(args []string, in stdin) (request, error) {
			if len(args) == 0 {
				return request{}, usage("no key: want vdel KEY VALUE")
			}
			key := unprotect(args[0])
			value, rest, err := value(args[1:], string(file), in)
			if err != nil {
				return request{}, err
			}
			if len(rest) > 0 {
				return request{}, usage("%.64q after the value: want vdel KEY VALUE, and quotes around a value with spaces", unprotect(rest[0]))
			}
			options, err := fence.options()
			if err != nil {
				return request{}, err
			}
			return request{
				commands: []client.Command{client.VDel(key, value, options)},
				force:    fence.force,
				show: func(_ int, result client.Result) (format.Result, bool, error) {
					r := result.(client.VDelResult)
					return format.VDel{Key: key, Deleted: r.Deleted, Found: r.Found, Version: version(r.Version), RTT: r.RTT}, r.Deleted, nil
				},
			}, nil
		},
	}
}
