package main

import (
	"strings"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/client/wire"
)

// newKeyNotify is for looking at the protocol; what it asks for ends with the
// connection.
func newKeyNotify() verb {
	return verb{
		use:    "keynotify KEY [STOP]",
		short:  "Send KEYNOTIFY as it stands",
		hidden: true,
		parse: func(args []string, _ stdin) (request, error) {
			if len(args) == 0 || len(args) > 2 || (len(args) == 2 && !strings.EqualFold(args[1], wire.OptionStop)) {
				return request{}, usage("want keynotify KEY [STOP]")
			}
			words := []string{wire.VerbKeyNotify, unprotect(args[0])}
			if len(args) == 2 {
				words = append(words, wire.OptionStop)
			}
			return anyRequest(words, client.WriteOptions{}), nil
		},
	}
}
