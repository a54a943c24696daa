package main

import (
	"context"
	"errors"

	"github.com/spf13/pflag"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/client/wire"
	"github.com/sscli/sscli/format"
)

func newScan() verb {
	limit := -1
	return verb{
		use:     "scan [PATTERN]",
		aliases: []string{"keys"},
		short:   "List keys",
		long: `List the keys that match a pattern, by default *, all of them, page by page as the
store sends them. * stands for any bytes, ? for one byte, [0-9] and [abc] for one of
those. No key is no error.

SCAN is new: a broker that does not know it gives exit code 5. A key that is written
or deleted meanwhile may be listed or not, the store promises no order, and nothing
says that it lists a key once only. Keys that this client may not read may be left out.
--timeout is for connecting, and then for each page.

The raw form is a line for each key, with C escapes.`,
		example: "  sscli scan\n  sscli scan 'thermostat/*'\n  sscli scan --limit 10 -o json",
		flags: func(fs *pflag.FlagSet) {
			fs.IntVar(&limit, "limit", -1, "end after `N` keys")
			fs.Lookup("limit").DefValue = "0" // no limit, of which help says nothing
		},
		parse: func(args []string, _ stdin) (request, error) {
			pattern := "*"
			if len(args) > 1 {
				return request{}, usage("%d patterns: want scan [PATTERN], in quotes, or a shell takes it for names of files", len(args))
			}
			if len(args) == 1 {
				pattern = unprotect(args[0])
			}
			if limit < -1 || limit == 0 {
				return request{}, usage("--limit %d: want at least 1", limit)
			}
			first := client.Scan(pattern, nil)
			return request{
				commands: []client.Command{first},
				carry: func(ctx context.Context, s *client.Session, p *format.Printer) error {
					return describeScan(first, scan(ctx, s, p, pattern, limit))
				},
			}, nil
		},
	}
}

// scan prints the keys, each page when it comes; limit is -1 for all.
func scan(ctx context.Context, s *client.Session, p *format.Printer, pattern string, limit int) error {
	n := 0
	for page, err := range s.Scan(ctx, pattern) {
		if err != nil {
			return err
		}
		for _, key := range page.Keys {
			n++
			if err := p.Queue(format.Key{N: n, Key: key}); err != nil {
				return &outputError{err: err}
			}
			if n == limit {
				break
			}
		}
		if err := p.Flush(); err != nil {
			return &outputError{err: err}
		}
		if n == limit {
			return nil
		}
	}
	return nil
}

func describeScan(c client.Command, err error) error {
	if err == nil || isA[*outputError](err) {
		return err
	}
	if refused, ok := errors.AsType[*wire.StoreError](err); ok && refused.Kind() == wire.ErrorUnknownCommand {
		err = &noScanError{err}
	}
	return describe(c, err)
}
