package config

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// ParseDuration reads a duration as users write it, for flags, variables, contexts and the words
// of a shell alike: with a unit, as in 500ms, 10s or 1h30m. Only 0 needs none. The error is a
// *[NoUnitError] for a number without a unit.
func ParseDuration(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err == nil {
		return d, nil
	}
	_, asMillis := time.ParseDuration(text + "ms")
	_, asSeconds := time.ParseDuration(text + "s")
	if asMillis == nil && asSeconds == nil {
		return 0, &NoUnitError{text}
	}
	return 0, fmt.Errorf("%.32q: expected a duration such as 500ms, 10s or 2m", text)
}

// A NoUnitError is a number where a duration is wanted. Some users mean milliseconds, as with PX, and
// others seconds, so sscli does not guess.
type NoUnitError struct {
	Text string // the number
}

func (e *NoUnitError) Error() string {
	return fmt.Sprintf("%.32q has no unit: %.32sms or %.32ss?", e.Text, e.Text, e.Text)
}

// MeantDuration returns the likely duration for a text that [ParseDuration] refuses: 10s for 10, 24h
// for 1d. It is empty if there is none.
func MeantDuration(text string) string {
	number := strings.TrimRight(text, "dw")
	n, err := strconv.ParseUint(number, 10, 16)
	switch unit := text[len(number):]; {
	case err != nil:
		return ""
	case unit == "" && n < 1000: // more are probably milliseconds
		return number + "s"
	case unit == "d":
		return fmt.Sprintf("%dh", 24*n)
	case unit == "w":
		return fmt.Sprintf("%dh", 7*24*n)
	}
	return ""
}
