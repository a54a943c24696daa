package verb

import (
	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/cmd/sscli/internal/app"
	"github.com/sscli/sscli/cmd/sscli/internal/fault"
	"github.com/sscli/sscli/cmd/sscli/internal/fence"
	"github.com/sscli/sscli/format"
)

// newDel returns the verb `del`.
func newDel() Verb {
	var fence fence.Flags
	return Verb{
		use:     "del KEY...",
		Aliases: []string{"delete", "rm"},
		short:   "Delete keys",
		long:    "Delete keys, one request for each. The exit code is 1 if a key is missing.",
		example: "  sscli del setpoint\n  sscli del door --fence 001696374425000:00001:StateStore",
		Flags:   fence.Bind,
		Writes:  always,
		Parse: func(args []string, _ app.Source, room []client.Command) (Request, error) {
			if len(args) == 0 {
				return Request{}, fault.Usagef("missing KEY")
			}
			options, err := fence.Options()
			if err != nil {
				return Request{}, err
			}
			if fence.Force && len(args) > 1 {
				return Request{}, fault.Usagef("--force-fence with %d keys: want one key", len(args))
			}
			req := Request{Force: fence.Force, Commands: room}
			for _, key := range app.UnprotectAll(args) {
				req.Commands = append(req.Commands, client.Del(key, options))
				req.Rows = append(req.Rows, format.Del{Key: key, Many: len(args) > 1})
			}
			req.Show = func(c *client.Command, result client.Result) (format.Result, bool, error) {
				r := result.(client.DelResult)
				return format.Del{
					Key: c.Key(), Deleted: r.Deleted, Version: app.Version(r.Version), RTT: r.RTT, Many: len(args) > 1,
				}, r.Deleted, nil
			}
			return req, nil
		},
	}
}
