package verbs

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/cmd/sscli/internal/app"
	"github.com/sscli/sscli/cmd/sscli/internal/fault"
	"github.com/sscli/sscli/cmd/sscli/internal/verb"
	"github.com/sscli/sscli/format"
)

// A matcher deletes the keys that match a pattern.
type matcher struct {
	pattern string
	dryRun  bool
	options client.WriteOptions
}

// run finds the matching keys. With m.dryRun it prints them; otherwise it asks the user, and deletes
// them.
func (m matcher) run(ctx context.Context, a *app.App, s *client.Session) error {
	var keys []string
	for page, err := range s.Scan(ctx, m.pattern) {
		if err != nil {
			return fault.DescribeScan(client.Scan(m.pattern, nil), err)
		}
		keys = append(keys, page.Keys...)
	}
	slices.Sort(keys)
	keys = slices.Compact(keys)
	if len(keys) == 0 {
		a.Inform("no key matches " + format.Brief(m.pattern))
		return nil
	}
	if m.dryRun {
		for _, key := range keys {
			if err := a.Queue(format.Key{Key: key}); err != nil {
				return err
			}
		}
		return a.Flush()
	}
	req := delRequest(keys, m.options, true)
	if err := req.Check(a.Output); err != nil {
		return err
	}
	what := fmt.Sprintf("del %s, the only match of %s", format.Brief(keys[0]), format.Brief(m.pattern))
	if n := len(keys); n > 1 {
		what = fmt.Sprintf("del %d keys that match %s, %s to %s", n, format.Brief(m.pattern), format.Brief(keys[0]), format.Brief(keys[n-1]))
	}
	if err := a.ConfirmAlways(ctx, what); err != nil {
		return err
	}
	a.Signals.Arm()
	result := req.Result
	req.Result = func(c *client.Command, r client.Result) (format.Result, bool, error) {
		shown, _, err := result(c, r)
		return shown, true, err // the exit code is 0 even if another client has deleted the key first
	}
	return verb.DoOver(ctx, a, s, req, cmp.Or(a.Settings.Timeout, client.DefaultTimeout))
}
