package usage

import (
	"time"

	"github.com/sscli/sscli/cmd/sscli/internal/config"
	"github.com/sscli/sscli/cmd/sscli/internal/fault"
)

// Duration parses the value of a duration flag, which may be 0. An empty text is 0. The error is a
// usage error that names the flag.
func Duration(flag string, text config.Text) (time.Duration, error) {
	if text == "" {
		return 0, nil
	}
	d, err := config.ParseDuration(string(text))
	if err != nil {
		return 0, fault.Usagef("%s: %w", flag, err)
	}
	if d < 0 {
		return 0, fault.Usagef("%s %s: must not be negative", flag, text)
	}
	return d, nil
}

// PositiveDuration is like [Duration], but 0 is an error. An empty text is 0 without an error.
func PositiveDuration(flag string, text config.Text) (time.Duration, error) {
	d, err := Duration(flag, text)
	if err == nil && d == 0 && text != "" {
		err = fault.Usagef("%s %s: must be greater than 0", flag, text)
	}
	return d, err
}
