package verb

import (
	"context"

	"github.com/spf13/pflag"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/cmd/sscli/internal/cli"
	"github.com/sscli/sscli/cmd/sscli/internal/explain"
	"github.com/sscli/sscli/format"
)

// newScan returns the verb `scan`.
func newScan() Verb {
	limit := -1
	return Verb{
		use:     "scan [PATTERN]",
		Aliases: []string{"keys"},
		short:   "List keys",
		long: `List the keys that match a pattern, or all keys.

In a pattern * stands for any bytes, ? for one byte, and [0-9] or [abc] for one byte
of a set. The default is *. An empty result is not an error.

SCAN is new. If the broker does not know it, the exit code is 5. The store promises
no order. It may list a key twice, may or may not list a key that is written or
deleted meanwhile, and may leave out keys that this client may not read.

Keys are printed page by page, as the store sends them. --timeout is for connecting,
and then for each page. The raw form is one line for each key, with C escapes.`,
		example: "  sscli scan\n  sscli scan 'thermostat/*'\n  sscli scan --limit 10 -o json",
		Flags: func(fs *pflag.FlagSet) {
			fs.IntVar(&limit, "limit", -1, "stop after `N` keys")
			fs.Lookup("limit").DefValue = "0" // no limit; help shows no default
		},
		Parse: func(args []string, _ cli.Source) (Request, error) {
			pattern := "*"
			if len(args) > 1 {
				return Request{}, explain.Usagef("%d patterns: want one, in quotes so that the shell does not expand it to file names", len(args))
			}
			if len(args) == 1 {
				pattern = cli.Unprotect(args[0])
			}
			if limit < -1 || limit == 0 {
				return Request{}, explain.Usagef("--limit %d: want at least 1", limit)
			}
			first := client.Scan(pattern, nil)
			return Request{
				Commands: []client.Command{first},
				Carry: func(ctx context.Context, a *cli.App, s *client.Session) error {
					return explain.DescribeScan(first, scan(ctx, a, s, pattern, limit))
				},
			}, nil
		},
	}
}

// scan prints the keys, each page as it arrives. A limit of -1 is no limit.
func scan(ctx context.Context, a *cli.App, s *client.Session, pattern string, limit int) error {
	n := 0
	for page, err := range s.Scan(ctx, pattern) {
		if err != nil {
			return err
		}
		for _, key := range page.Keys {
			n++
			if err := a.Queue(format.Key{Key: key}); err != nil {
				return err
			}
			if n == limit {
				break
			}
		}
		if err := a.Flush(); err != nil {
			return err
		}
		if n == limit {
			return nil
		}
	}
	if n == 0 {
		a.Inform("no key matches " + format.Brief(pattern))
	}
	return nil
}
