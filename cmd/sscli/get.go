package main

import (
	"github.com/spf13/pflag"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/cmd/sscli/internal/atomicfile"
	"github.com/sscli/sscli/cmd/sscli/internal/config"
	"github.com/sscli/sscli/format"
)

func newGet() verb {
	var file config.Text
	var versionOnly, lines bool
	return verb{
		use:   "get KEY...",
		short: "Print values and their versions",
		long: `Print the value of a key and its version. Exit code 1 if a key is missing.

In the raw form one key gives its bytes and nothing else; several keys give lines of
KEY, VERSION and VALUE, separated by tabs, with C escapes (- for the version of a
missing key).`,
		example: "  sscli get setpoint\n  sscli get -f image.png camera/last\n  sscli get -o json a b c",
		flags: func(fs *pflag.FlagSet) {
			fs.VarP(&file, "file", "f", "write the value's bytes to `FILE`, all or nothing, and print the version")
			fs.BoolVar(&versionOnly, "version-only", false, "print the version without the value")
			fs.BoolVar(&lines, "lines", false, "use the lines of several keys also for one")
		},
		parse: func(args []string, _ stdin) (request, error) {
			if len(args) == 0 {
				return request{}, usage("no key: want get KEY...")
			}
			if file != "" && len(args) > 1 {
				return request{}, usage("-f with %d keys: want one", len(args))
			}
			req := request{}
			for _, key := range args {
				req.commands = append(req.commands, client.Get(unprotect(key)))
			}
			req.show = func(i int, result client.Result) (format.Result, bool, error) {
				r := result.(client.GetResult)
				if r.Found && file != "" {
					if err := atomicfile.Write(string(file), r.Value, 0o666); err != nil {
						return nil, false, &outputError{err: err, file: true}
					}
				}
				return format.Get{
					Key: unprotect(args[i]), Found: r.Found, Value: r.Value, Version: version(r.Version), RTT: r.RTT,
					Many: lines || len(args) > 1, VersionOnly: versionOnly || file != "",
				}, r.Found, nil
			}
			return req, nil
		},
	}
}
