package verb

import (
	"fmt"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/client/wire"
	"github.com/sscli/sscli/format"
)

// Writes says in a few words what a request changes: `set "a" and 2 more`. It is empty if the
// request only reads.
func (r Request) Writes() string {
	text, more := "", 0
	for _, c := range r.Commands {
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

// changes reports whether a command may change the store. An unknown verb may.
func changes(c client.Command) bool { return changesVerb(c.Verb()) }

// changesVerb is changes for a verb.
func changesVerb(verb string) bool {
	switch verb {
	case wire.VerbGet, wire.VerbKeyNotify, wire.VerbScan:
		return false
	}
	return true
}
