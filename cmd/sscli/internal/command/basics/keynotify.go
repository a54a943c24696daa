package basics

import (
	"strings"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/cmd/sscli/internal/fault"
	"github.com/sscli/sscli/cmd/sscli/internal/verb"
	"github.com/sscli/sscli/internal/wire"
	"github.com/sscli/sscli/repl"
)

// KeyNotify returns the hidden verb `keynotify`. The store drops the registration when the connection ends.
func KeyNotify(_ verb.Env) verb.Verb {
	return verb.Verb{
		Use:     "keynotify KEY [STOP]",
		Short:   "Send KEYNOTIFY and print the reply",
		Example: "  sscli keynotify setpoint",
		Hidden:  true,
		Parse: func(operands []repl.Word, _ verb.Source) (verb.Request, error) {
			if len(operands) == 0 || len(operands) > 2 || (len(operands) == 2 && !strings.EqualFold(operands[1].Text, wire.OptionStop)) {
				return verb.Request{}, fault.Usagef("expected KEY, or KEY STOP")
			}
			words := []string{wire.VerbKeyNotify, operands[0].Text}
			if len(operands) == 2 {
				words = append(words, wire.OptionStop)
			}
			return callRequest(words, client.WriteOptions{}), nil
		},
	}
}
