package main

import (
	"fmt"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/client/wire"
	"github.com/sscli/sscli/format"
)

// writes says in a few words what a request changes; empty if it only reads.
func (r request) writes() string {
	text, more := "", 0
	for _, c := range r.commands {
		switch {
		case !changes(c):
		case text == "":
			text = format.Verb(c.Verb())
			if c.Key() != "" {
				text += " " + format.Brief(c.Key())
			}
		default:
			more++
		}
	}
	if more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// changes tells whether a command may change something in the store. Of a verb that
// nobody here knows, it may.
func changes(c client.Command) bool { return changesVerb(c.Verb()) }

func changesVerb(verb string) bool {
	switch verb {
	case wire.VerbGet, wire.VerbKeyNotify, wire.VerbScan:
		return false
	}
	return true
}
