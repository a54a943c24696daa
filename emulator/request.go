package emulator

import (
	"strings"

	"github.com/sscli/sscli/client/wire"
	"github.com/sscli/sscli/emulator/store"
)

// A Property is an MQTT user property.
type Property struct {
	Name, Value string
}

// A Request is one request to the store, as it comes out of a PUBLISH to
// wire.RequestTopic.
type Request struct {
	ClientID string
	Username string // as the client logged in; for the authorization rules
	Payload  []byte // RESP3

	Timestamp    string // `__ts`
	HasTimestamp bool
	Fence        string // `__ft`
	HasFence     bool
	Persist      bool // `aio-persistence` is `true`

	// How the request travelled. The store does not look at these.
	ResponseTopic   string
	CorrelationData []byte
	Properties      []Property // every user property, in order
}

// Verb returns the first word of the request in upper case, or "" if the
// payload is not a request.
func (r Request) Verb() string {
	words, err := wire.ParseRequest(r.Payload)
	if err != nil {
		return ""
	}
	return strings.ToUpper(string(words[0]))
}

// Key returns the second word of the request, for SCAN the pattern.
func (r Request) Key() string {
	words, err := wire.ParseRequest(r.Payload)
	if err != nil || len(words) < 2 {
		return ""
	}
	return string(words[1])
}

// setProperties reads what the store wants to know from the user properties. A
// property that comes twice counts the first time (assumed).
func (r *Request) setProperties(properties []Property) {
	r.Properties = properties
	for _, p := range properties {
		switch {
		case p.Name == wire.PropTimestamp && !r.HasTimestamp:
			r.Timestamp, r.HasTimestamp = p.Value, true
		case p.Name == wire.PropFence && !r.HasFence:
			r.Fence, r.HasFence = p.Value, true
		case p.Name == wire.PropPersist:
			r.Persist = p.Value == "true"
		}
	}
}

// NewRequest returns the request of a PUBLISH with this payload and these user
// properties.
func NewRequest(clientID string, payload []byte, properties ...Property) Request {
	r := Request{ClientID: clientID, Payload: payload}
	r.setProperties(properties)
	return r
}

// forStore returns what the store looks at.
func (r Request) forStore() *store.Request {
	q := &store.Request{ClientID: r.ClientID, Username: r.Username, Payload: r.Payload, Persist: r.Persist}
	if r.HasTimestamp {
		q.Timestamp = []byte(r.Timestamp)
	}
	if r.HasFence {
		q.Fence = []byte(r.Fence)
	}
	return q
}
