package usage

import (
	"fmt"
	"time"

	"github.com/sscli/sscli/cmd/sscli/internal/config"
	"github.com/sscli/sscli/cmd/sscli/internal/fault"
	"github.com/sscli/sscli/cmd/sscli/internal/suggest"
)

// Duration parses the value of a duration flag, which may be 0. An empty text is 0. The error is a
// usage error that names the flag.
func Duration(flag string, text config.Text) (time.Duration, error) {
	if text == "" {
		return 0, nil
	}
	d, err := config.ParseDuration(string(text))
	if err != nil {
		wrong := &fault.UsageError{Err: fmt.Errorf("%s: %w", flag, err)}
		if meant := config.MeantDuration(string(text)); meant != "" {
			wrong.Hint = suggest.Run(flag, meant)
		}
		return 0, wrong
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
