package main

import (
	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/format"
)

func newDel() verb {
	var fence fencing
	return verb{
		use:     "del KEY...",
		aliases: []string{"delete", "rm"},
		short:   "Delete keys",
		long:    "Delete keys, each with a request of its own. Exit code 1 if one was missing.",
		example: "  sscli del setpoint\n  sscli del door --fence 001696374425000:00001:StateStore",
		flags:   fence.bind,
		writes:  always,
		parse: func(args []string, _ stdin) (request, error) {
			if len(args) == 0 {
				return request{}, usage("no key: want del KEY...")
			}
			options, err := fence.options()
			if err != nil {
				return request{}, err
			}
			if fence.force && len(args) > 1 {
				return request{}, usage("--force-fence with %d keys: want one", len(args))
			}
			req := request{force: fence.force}
			for _, key := range args {
				req.commands = append(req.commands, client.Del(unprotect(key), options))
			}
			req.show = func(i int, result client.Result) (format.Result, bool, error) {
				r := result.(client.DelResult)
				return format.Del{
					Key: unprotect(args[i]), Deleted: r.Deleted, Version: version(r.Version), RTT: r.RTT, Many: len(args) > 1,
				}, r.Deleted, nil
			}
			return req, nil
		},
	}
}
