package basics

import (
	"github.com/spf13/pflag"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/cmd/sscli/internal/config"
	"github.com/sscli/sscli/cmd/sscli/internal/fault"
	"github.com/sscli/sscli/cmd/sscli/internal/usage"
	"github.com/sscli/sscli/cmd/sscli/internal/verb"
	"github.com/sscli/sscli/format"
	"github.com/sscli/sscli/repl"
)

// Del returns the verb `del`.
func Del(env verb.Env) verb.Verb {
	var fence verb.FenceFlags
	var keysFrom usage.KeysFrom
	var match config.Text
	var dryRun bool
	return verb.Verb{
		Use:     "del KEY...",
		Aliases: []string{"delete", "rm"},
		Short:   "Delete keys",
		Long: `Delete keys, one request for each. The exit code is 1 if a key is missing.

--match PATTERN lists and reads the keys that match, as sscli scan does, and deletes them
after you confirm (--yes confirms in advance). A key that another client writes after it
was read is left alone, and the exit code is 1. So is a key that cannot be read. A key
that another client deletes first is not reported as missing. With --dry-run, del prints
the keys, as scan does, and deletes nothing. --match needs a broker that has SCAN.`,
		Example: "  sscli del setpoint\n  sscli del door --fence 001696374425000:00001:StateStore\n" +
			"  sscli del --match 'tmp/*' --dry-run\n  sscli del --keys-from keys.txt",
		Flags: func(fs *pflag.FlagSet) {
			keysFrom.Bind(fs)
			fs.Var(&match, "match", "delete the keys that match `PATTERN`, after you confirm")
			fs.BoolVar(&dryRun, "dry-run", false, "with --match: print the keys, and delete nothing")
			fence.Bind(fs)
		},
		Writes: func([]repl.Word) bool { return !dryRun },
		Parse: func(operands []repl.Word, in verb.Source) (verb.Request, error) {
			options, err := fence.Options(env)
			if err != nil {
				return verb.Request{}, err
			}
			if match != "" {
				if len(operands) > 0 || keysFrom.Given() || fence.Force {
					return verb.Request{}, fault.Usagef("--match together with KEY, --keys-from or --force-fence: use only one of them")
				}
				m := &matcher{pattern: string(match), dryRun: dryRun, options: options}
				return verb.Request{Commands: []client.Command{client.Scan(m.pattern, nil)}, Run: m.run}, nil
			}
			if dryRun {
				return verb.Request{}, fault.Usagef("--dry-run without --match: it prints the keys that a pattern matches")
			}
			keys, err := keysFrom.Keys(repl.Texts(operands), in)
			if err != nil {
				return verb.Request{}, err
			}
			if fence.Force && len(keys) > 1 {
				return verb.Request{}, fault.Usagef("--force-fence with %d keys: expected one key", len(keys))
			}
			req := delRequest(keys, options, len(keys) > 1 || keysFrom.Given())
			req.Force = fence.Force && len(keys) == 1
			return req, nil
		},
	}
}

// delRequest returns the request that deletes keys. If many is true, each result is printed with its key.
func delRequest(keys []string, options client.WriteOptions, many bool) verb.Request {
	var req verb.Request
	for _, key := range keys {
		req.Commands = append(req.Commands, client.Del(key, options))
		req.Rows = append(req.Rows, format.Del{Op: "del", Key: key, Many: many})
	}
	req.Result = func(c *client.Command, result client.Result) (format.Result, bool, error) {
		r := result.(client.DelResult)
		return format.Del{
			Op:  "del",
			Key: c.Key(), Deleted: r.Deleted, Version: r.Version, RTT: r.RTT, Many: many,
		}, r.Deleted, nil
	}
	return req
}
