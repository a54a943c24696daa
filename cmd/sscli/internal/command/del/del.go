// Package del is the command `sscli del`: it deletes keys.
package del

import (
	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/cmd/sscli/internal/app"
	"github.com/sscli/sscli/cmd/sscli/internal/fault"
	"github.com/sscli/sscli/cmd/sscli/internal/fence"
	"github.com/sscli/sscli/cmd/sscli/internal/verb"
	"github.com/sscli/sscli/format"
	"github.com/sscli/sscli/repl"
)

// New returns the verb `del`.
func New() verb.Verb {
	var fence fence.Flags
	return verb.Verb{
		Use:     "del KEY...",
		Aliases: []string{"delete", "rm"},
		Short:   "Delete keys",
		Long:    "Delete keys, one request for each. The exit code is 1 if a key is missing.",
		Example: "  sscli del setpoint\n  sscli del door --fence 001696374425000:00001:StateStore",
		Flags:   fence.Bind,
		Writes:  verb.Always,
		Parse: func(operands []repl.Word, _ verb.Source) (verb.Request, error) {
			if len(operands) == 0 {
				return verb.Request{}, fault.Usagef("missing KEY")
			}
			options, err := fence.Options()
			if err != nil {
				return verb.Request{}, err
			}
			if fence.Force && len(operands) > 1 {
				return verb.Request{}, fault.Usagef("--force-fence with %d keys: want one key", len(operands))
			}
			req := verb.Request{Force: fence.Force}
			for _, w := range operands {
				key := w.Text
				req.Commands = append(req.Commands, client.Del(key, options))
				req.Rows = append(req.Rows, format.Del{Op: "del", Key: key, Many: len(operands) > 1})
			}
			req.Result = func(c *client.Command, result client.Result) (format.Result, bool, error) {
				r := result.(client.DelResult)
				return format.Del{
					Op:  "del",
					Key: c.Key(), Deleted: r.Deleted, Version: app.Version(r.Version), RTT: r.RTT, Many: len(operands) > 1,
				}, r.Deleted, nil
			}
			return req, nil
		},
	}
}
