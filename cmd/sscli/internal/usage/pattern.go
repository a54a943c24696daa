package usage

import (
	"github.com/sscli/sscli/cmd/sscli/internal/fault"
	"github.com/sscli/sscli/internal/glob"
)

// Pattern parses a pattern of keys, the value of a flag, in the syntax of `sscli scan`. The error is a
// *fault.UsageError.
func Pattern(flag, text string) (*glob.Pattern, error) {
	p, ok := glob.Parse(text)
	if !ok {
		return nil, fault.Usagef("%s %.64q: not a pattern: a [ needs a ], and ** is a whole level, as in a/** or a/**/b", flag, text)
	}
	return p, nil
}
