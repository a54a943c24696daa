package doctor

import (
	"context"
	"fmt"
	"time"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/cmd/sscli/internal/command/ping"
	"github.com/sscli/sscli/cmd/sscli/internal/fault"
	"github.com/sscli/sscli/format"
	"github.com/sscli/sscli/internal/wire"
)

// clockWarning is the clock difference above which the check warns. The check fails if the local clock is
// more than wire.MaxDrift ahead of the store's, because then the store refuses writes.
const clockWarning = 5 * time.Second

const synchronize = "compare date -u here and on the broker's nodes, and synchronize both"

// clock measures the difference between the local clock and the store's clock, which follows the clocks of
// writers that are up to wire.MaxDrift ahead.
func (c *checkup) clock(ctx context.Context) error {
	key := c.key("clock")
	var best client.Skew
	for i := range 5 {
		skew, err := c.s.MeasureSkew(ctx, key, scratchTTL)
		if err != nil {
			return c.fail(ctx, "clock", fault.Describe(client.Set(key, ""), err))
		}
		if i == 0 || skew.Bound < best.Bound {
			best = skew
		}
	}
	check := format.Check{Name: "clock", Status: format.Pass, Facts: []format.Fact{
		{Name: "ahead", Value: fmt.Sprintf("%.1f ms", ms(best.Ahead))},
		{Name: "bound", Value: fmt.Sprintf("%.1f ms", ms(best.Bound))},
	}}
	ahead := best.Ahead
	side := "ahead of"
	if ahead < 0 {
		ahead, side = -ahead, "behind"
	}
	check.Message = fmt.Sprintf("the local clock is %s %s the store's, give or take %s", rounded(ahead), side, rounded(best.Bound))
	if best.Ahead <= wire.MaxDrift {
		check.Message += "; up to a minute further ahead if a client with a fast clock wrote in the last minute" // wire.MaxDrift
	}
	if best.Ahead > 0 {
		check.Message += fmt.Sprintf("; the store refuses writes that are over %v ahead", wire.MaxDrift)
	}
	switch {
	case best.Ahead > wire.MaxDrift:
		check.Status, check.Hint = format.Fail, synchronize
		if err := c.print(check); err != nil {
			return err
		}
		return &fault.ExitError{Code: fault.CodeClock}
	case ahead > clockWarning:
		check.Status, check.Hint = format.Warn, synchronize
	}
	return c.print(check)
}

// maxVersions is the number of keys that clockBound reads at most.
const maxVersions = 16

// clockBound compares the local clock with versions of keys, without a write. The newest version limits how
// far the local clock is ahead: the store's clock has passed it, or is behind it by at most wire.MaxDrift if
// the clock of its writer was ahead.
func (c *checkup) clockBound(ctx context.Context) error {
	limited, cancel := context.WithTimeout(ctx, c.o.Timeout)
	defer cancel()
	var keys []string
	for page, err := range c.s.Scan(limited, "*") {
		if err != nil || len(keys) >= maxVersions {
			break // without SCAN, only ping.Key is read
		}
		keys = append(keys, page.Keys...)
	}
	keys = append([]string{ping.Key}, keys[:min(len(keys), maxVersions)]...)
	var ahead time.Duration // at most, by the newest version
	n := 0
	for _, key := range keys {
		got, err := c.s.Get(limited, key)
		if err != nil || got.Version.IsZero() {
			continue // not allowed, or deleted meanwhile
		}
		if age := time.Since(got.Version.Time()); n == 0 || age < ahead {
			ahead = age
		}
		n++
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	check := format.Check{Name: "clock", Status: format.Skip}
	switch {
	case n == 0:
		check.Message = "not compared: no key with a version could be read"
	case ahead < -clockWarning:
		check.Status, check.Hint = format.Warn, synchronize
		check.Message = fmt.Sprintf("the local clock is at least %s behind the store's, or a writer's clock was ahead, by %s read", rounded(-ahead), format.Count(n, "version"))
	default:
		if ahead <= wire.MaxDrift {
			check.Status = format.Pass
		}
		check.Message = fmt.Sprintf("the local clock is at most %s ahead of the store's, or up to a minute more if a writer's clock was ahead, by %s read", format.Span(max(ahead, 0)), format.Count(n, "version"))
	}
	if check.Status != format.Warn {
		check.Message += "; --write measures the difference"
	}
	return c.print(check)
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// rounded formats a duration, in milliseconds if it is less than a second.
func rounded(d time.Duration) string {
	if d < time.Second {
		return fmt.Sprintf("%.1f ms", ms(d))
	}
	return d.Round(time.Millisecond).String()
}
