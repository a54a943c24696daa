package usage

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/sscli/sscli/cmd/sscli/internal/config"
	"github.com/sscli/sscli/cmd/sscli/internal/fault"
	"github.com/sscli/sscli/cmd/sscli/internal/suggest"
)

// The least values of durations that must be greater than 0, and of those that may be negative.
const (
	Positive = time.Nanosecond
	Signed   = time.Duration(math.MinInt64)
)

// A Duration is the value of a duration flag. Without a call of Least it must not be negative.
type Duration struct {
	time.Duration
	text  string
	least time.Duration
}

// Least sets the least duration that the flag accepts, such as [Positive], and returns d.
func (d *Duration) Least(least time.Duration) *Duration {
	d.least = least
	return d
}

// Given reports whether the flag was given, or has a default.
func (d Duration) Given() bool { return d.text != "" }

// Set implements [pflag.Value]. [FlagError] names the flag in the error.
func (d *Duration) Set(text string) (err error) {
	d.text = strings.TrimPrefix(text, mark)
	d.Duration, err = ParseDuration("", d.text, d.least)
	return err
}

// String implements [pflag.Value].
func (d Duration) String() string { return d.text }

// Type implements [pflag.Value].
func (Duration) Type() string { return "string" }

// ParseDuration parses the duration that follows name, a flag or another word. The error is a *[fault.UsageError].
func ParseDuration(name, text string, least time.Duration) (time.Duration, error) {
	d, err := config.ParseDuration(text)
	switch {
	case err != nil:
		wrong := &fault.UsageError{Err: fmt.Errorf("%s: %w", name, err)}
		if meant := config.MeantDuration(text); meant != "" {
			wrong.Hint = suggest.Run(name, meant)
		}
		return 0, wrong
	case d >= least:
		return d, nil
	case d < 0:
		return 0, fault.Usagef("%s %s: must not be negative", name, text)
	case least == Positive:
		return 0, fault.Usagef("%s %s: must be greater than 0", name, text)
	}
	return 0, fault.Usagef("%s %s: must be at least %v", name, text, least)
}
