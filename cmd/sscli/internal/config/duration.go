package config

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// ParseDuration parses a duration in a flag, a variable, a context or a line of a shell. The duration
// must have a unit, as in 500ms, 10s, 1h30m or 14d, except for 0. Days are a whole number, alone, of 24 hours
// each. For a number without a unit, the error is a *[NoUnitError].
func ParseDuration(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err == nil {
		return d, nil
	}
	if days, ok := strings.CutSuffix(text, "d"); ok {
		if n, err := strconv.ParseUint(days, 10, 16); err == nil {
			return time.Duration(n) * 24 * time.Hour, nil
		}
	}
	_, asMillis := time.ParseDuration(text + "ms")
	_, asSeconds := time.ParseDuration(text + "s")
	if asMillis == nil && asSeconds == nil {
		return 0, &NoUnitError{text}
	}
	return 0, fmt.Errorf("%.32q: expected a duration such as 500ms, 10s or 2m", text)
}

// A NoUnitError means that a duration has no unit. sscli does not guess the unit, because some users
// mean milliseconds, as with PX, and others mean seconds.
type NoUnitError struct {
	Text string // the number
}

func (e *NoUnitError) Error() string {
	return fmt.Sprintf("%.32q has no unit: %.32sms or %.32ss?", e.Text, e.Text, e.Text)
}

// MeantDuration returns the duration that the user probably meant by a text that [ParseDuration]
// refuses: 10s for 10, 168h for 1w. It returns "" if it has no guess.
func MeantDuration(text string) string {
	number := strings.TrimRight(text, "w")
	n, err := strconv.ParseUint(number, 10, 16)
	switch unit := text[len(number):]; {
	case err != nil:
		return ""
	case unit == "" && n < 1000: // larger numbers are probably milliseconds
		return number + "s"
	case unit == "w":
		return fmt.Sprintf("%dh", 7*24*n)
	}
	return ""
}
