// Package observe has the event that a server reports to its log: one type for the requests of
// MQTT clients, the commands of Redis clients, and the connections of both.
package observe

import (
	"strconv"
	"time"
)

// An Event is what a server reports. Its slices are valid until the function that is called with it
// returns.
type Event struct {
	Op           Op
	Time         time.Time // on the server's clock
	Port         string    // redis; empty: MQTT
	Client, User string    // empty for an expiry
	Minor        bool      // has nothing to do with the data: only for a detailed log

	// Of a request; an expiry has Keys, Version and Notified too.
	Verb     string   // in lower case; empty: the request could not be read
	Keys     []string // the keys among the arguments
	Value    []byte   // the argument that is set or compared; nil: none
	Options  [][]byte // the other arguments
	Fence    string   // the fencing token, as it came; empty: none
	Clock    string   // `__ts` of the request; empty: none came
	Outcome  Outcome
	Result   string   // the reply in a few words, if Outcome is OK
	Cause    string   // why the outcome is this one; may be empty
	Version  string   // of the reply or the change; empty: none
	Notified []string // the ids of the clients that are notified

	Topic    string        // of the reply; empty: none, or not known
	Took     time.Duration // from the arrival to the reply; 0: not known
	Sent     int           // bytes of the request; 0: not known
	Received int           // bytes of the reply

	// Of a client that connected, was refused or disconnected.
	Remote   string // address
	Protocol string // such as MQTT 5; empty: not known
	Reason   string
}

// Op is what an [Event] is about.
type Op string

// The ops.
const (
	Request    Op = "request"
	Apply      Op = "apply"  // a write that was not a request of the store's protocol
	Expire     Op = "expire" // of a key
	Connect    Op = "connect"
	Refuse     Op = "refuse" // of a client that tried to connect
	Disconnect Op = "disconnect"
)

// Outcome is what became of a request.
type Outcome string

// The outcomes.
const (
	OK      Outcome = "ok"      // the store did what was asked for
	No      Outcome = "no"      // a condition was not met, or the key was missing
	Refused Outcome = "refused" // the reply is an error
	Ignored Outcome = "ignored" // no reply
)

// Count returns a number of things for Event.Result, such as 3 bytes.
func Count(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return strconv.Itoa(n) + " " + what
}
