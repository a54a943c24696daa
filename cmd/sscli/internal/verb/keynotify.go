package verb

import (
	"strings"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/client/wire"
	"github.com/sscli/sscli/cmd/sscli/internal/app"
	"github.com/sscli/sscli/cmd/sscli/internal/fault"
)

// newKeyNotify returns the hidden verb `keynotify`, for tests of the protocol. The broker
// forgets the registration when the connection ends.
func newKeyNotify() Verb {
	return Verb{
		use:     "keynotify KEY [STOP]",
		short:   "Send KEYNOTIFY and print the reply",
		example: "  sscli keynotify setpoint",
		Hidden:  true,
		Parse: func(args []string, _ app.Source, _ []client.Command) (Request, error) {
			if len(args) == 0 || len(args) > 2 || (len(args) == 2 && !strings.EqualFold(args[1], wire.OptionStop)) {
				return Request{}, fault.Usagef("want KEY, or KEY STOP")
			}
			words := []string{wire.VerbKeyNotify, app.Unprotect(args[0])}
			if len(args) == 2 {
				words = append(words, wire.OptionStop)
			}
			return anyRequest(words, client.WriteOptions{}), nil
		},
	}
}
