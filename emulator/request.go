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
	ClientID   string
	Username   string // as the client logged in; for the authorization rules
	Payload    []byte // RESP3
	Properties []Property

	ResponseTopic   string
	CorrelationData []byte
}

// NewRequest returns the request of a PUBLISH with this payload and these user
// properties.
func NewRequest(clientID string, payload []byte, properties ...Property) Request {
	return Request{ClientID: clientID, Payload: payload, Properties: properties}
}

// Verb returns the first word of the request in upper case, or "" if the
// payload is not a request.
func (r Request) Verb() string { return strings.ToUpper(word(r.Payload, 0)) }

// Key returns the second word of the request, for SCAN the pattern, or "" if there is none.
func (r Request) Key() string { return word(r.Payload, 1) }

// word returns the i-th word of a request, or "".
func word(payload []byte, i int) string {
	words, err := wire.ParseRequest(payload)
	if err != nil || len(words) <= i {
		return ""
	}
	return string(words[i])
}

// Property returns the value of the first user property with that name, and whether there is
// one. The store's own are `__ts`, the timestamp, `__ft`, the fencing token, and
// `aio-persistence`.
func (r Request) Property(name string) (value string, ok bool) {
	for _, p := range r.Properties {
		if p.Name == name {
			return p.Value, true
		}
	}
	return "", false
}

// forStore converts the request for package store.
func (r Request) forStore() *store.Request {
	q := &store.Request{ClientID: r.ClientID, Username: r.Username, Payload: r.Payload}
	for _, p := range r.Properties {
		q.SetProperty([]byte(p.Name), []byte(p.Value))
	}
	return q
}
