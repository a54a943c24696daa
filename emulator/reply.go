package emulator

import (
	"time"

	"github.com/sscli/sscli/internal/mqtt"
	"github.com/sscli/sscli/internal/observe"
	"github.com/sscli/sscli/internal/store"
	"github.com/sscli/sscli/internal/wire"
)

// Aliases for types of other packages.
type (
	// A Property is an MQTT user property: a Name and a Value.
	Property = mqtt.Property

	// An Event is a request, an expired key or a change of a connection, for Options.Observe. Its fields are Op, Time,
	// Port, Client, User and Minor; of a request Verb, Keys, Access, Value, Options, Fence, Clock, Topic, Took, Sent,
	// Received and the Rule that decided; how it ended: Outcome, Result, Cause, Version and the ids of the clients
	// Notified; of a connection Remote, Protocol and Reason. Clone copies it.
	Event = observe.Event

	// A TraceEvent is an MQTT packet that was sent or received, as in package client.
	TraceEvent = mqtt.Event

	// A Message is the content of a PUBLISH in a TraceEvent, as in package client.
	Message = mqtt.Message

	// An Op is the kind of an [Event].
	Op = observe.Op

	// A KeyUse is what a request of an [Event] does with a key, in its field Access: "read", "write" or "read+write".
	KeyUse = observe.Access

	// An Outcome is how a request of an [Event] ended.
	Outcome = observe.Outcome

	// A Version is a reading of a hybrid logical clock, as in package client.
	Version = wire.Version

	// Variants selects alternative behavior where the protocol is ambiguous. The comment of the package has its fields.
	Variants = store.Variants
)

// The kinds of events.
const (
	OpRequest    = observe.Request // a request to the store, or a Redis command
	OpApply      = observe.Apply   // a write of a Redis command
	OpExpire     = observe.Expire  // a key expired
	OpConnect    = observe.Connect
	OpRefuse     = observe.Refuse // a client could not connect
	OpDisconnect = observe.Disconnect
)

// The outcomes of requests.
const (
	OutcomeOK      = observe.OK
	OutcomeNo      = observe.No      // a condition was not met, or the key does not exist
	OutcomeRefused = observe.Refused // the reply is an error
	OutcomeIgnored = observe.Ignored // there is no reply
)

// A Cause is why a key changed.
type Cause string

// The causes of changes.
const (
	CauseSet     Cause = "set"
	CauseSetPX   Cause = "set px" // with an expiry
	CauseDel     Cause = "del"
	CauseVDel    Cause = "vdel"
	CauseExpired Cause = "expired"
)

// A Response is the answer to a request.
type Response struct {
	Payload    []byte
	Version    Version    // value of `__ts`; zero = there is no `__ts`
	Properties []Property // the user properties, in order
}

// cloneProperties converts properties of package store. The result does not share memory with them.
func cloneProperties(of []store.Property) []Property {
	properties := make([]Property, len(of))
	for i, p := range of {
		properties[i] = Property{Name: p.Name, Value: string(p.Value)}
	}
	return properties
}

// version parses a version. It returns the zero Version if the text is not a version.
func version(text []byte) Version {
	v, err := wire.ParseVersion(string(text))
	if err != nil {
		return Version{}
	}
	return v
}

// An Entry is the state of a key. Clients cannot read the fence.
type Entry struct {
	Value   []byte
	Version Version
	Fence   Version   // zero = not fenced
	Persist bool      // the last write asked to keep the key on disk
	Expires time.Time // zero = never
}

func newEntry(e store.Entry) Entry {
	return Entry{
		Value: append([]byte{}, e.Value()...), Version: version(e.Version()), Fence: version(e.Fence()),
		Persist: e.Persist(), Expires: e.Expires(),
	}
}
