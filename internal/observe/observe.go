// Package observe defines the events that a server reports to its log. One type covers the requests
// and connections of MQTT clients, the commands of Redis clients, and changes without a request.
package observe

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
	"time"
)

// An Event is something that a server reports to a callback. Its slices are valid only until the
// callback returns; see [Event.Clone].
type Event struct {
	Op           Op
	Time         time.Time // on the server's clock
	Port         string    // redis, or empty for MQTT
	Client, User string    // empty for an expiry
	Minor        bool      // does not concern stored data; only for detailed logs

	// Set for a request. Apply and Expire also set Keys, Outcome, Version and Notified.
	Verb     string   // in lower case; empty = the request could not be read
	Keys     []string // the keys among the arguments
	Access   []Access // what the request does with each of Keys
	Value    []byte   // the argument to set or compare; nil = none
	Options  [][]byte // the other arguments
	Fence    string   // the fencing token as received; empty = none
	Clock    string   // the request's `__ts`; empty = none
	Outcome  Outcome
	Result   string   // the reply in a few words, if Outcome is OK
	Cause    string   // the reason for Outcome; may be empty
	Version  string   // the version in the reply or of the change; empty = none
	Notified []string // ids of the notified clients

	Rule string // the authorization rule that decided, or came nearest; empty = none

	Topic    string        // the reply's topic; empty = none or unknown
	Took     time.Duration // time from the request's arrival to the reply; 0 = unknown
	Sent     int           // request size in bytes; 0 = unknown
	Received int           // reply size in bytes

	// Set when a client connects, is refused or disconnects.
	Remote   string // the client's address
	Protocol string // such as MQTT 5; empty = unknown
	Reason   string
}

// Clone returns a copy that shares no memory with e.
func (e Event) Clone() Event {
	e.Keys, e.Access, e.Notified = slices.Clone(e.Keys), slices.Clone(e.Access), slices.Clone(e.Notified)
	e.Value, e.Options = bytes.Clone(e.Value), slices.Clone(e.Options)
	for _, texts := range [][]string{e.Keys, e.Notified} {
		for i, text := range texts {
			texts[i] = strings.Clone(text)
		}
	}
	for i, word := range e.Options {
		e.Options[i] = bytes.Clone(word)
	}
	return e
}

// Op is the kind of an [Event].
type Op string

// The values of Op.
const (
	Request    Op = "request" // a state store request or a Redis command
	Apply      Op = "apply"   // a write that did not come from a state store request
	Expire     Op = "expire"  // a key expired
	Connect    Op = "connect"
	Refuse     Op = "refuse" // a client's connection attempt was refused
	Disconnect Op = "disconnect"
)

// Access is what a request does with a key: the rights that it needs.
type Access string

// The values of Access.
const (
	Reads     Access = "read"
	Writes    Access = "write"
	ReadWrite Access = "read+write" // writes it, and tells the client what it held
)

// Outcome is the result of a request.
type Outcome string

// The values of Outcome.
const (
	OK      Outcome = "ok"      // the store executed the request
	No      Outcome = "no"      // a condition was not met or the key does not exist
	Refused Outcome = "refused" // the reply is an error
	Ignored Outcome = "ignored" // no reply is sent
)

// Count formats a number and a noun for Event.Result, such as "3 bytes". It adds an s to the noun
// unless n is 1.
func Count(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return strconv.Itoa(n) + " " + what
}
