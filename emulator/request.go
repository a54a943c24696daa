package emulator

import (
	"bytes"
	"strings"

	"github.com/sscli/sscli/internal/store"
	"github.com/sscli/sscli/internal/wire"
)

// A Request is one request to the store. It has the contents of a PUBLISH to the request topic.
type Request struct {
	ClientID   string
	Username   string // the authenticated user; for the authorization rules
	Payload    []byte // RESP3
	Properties []Property

	ResponseTopic   string
	CorrelationData []byte
}

// NewRequest returns a request with a payload and user properties, but without a user name, a
// response topic or correlation data.
func NewRequest(clientID string, payload []byte, properties ...Property) Request {
	return Request{ClientID: clientID, Payload: payload, Properties: properties}
}

// Verb returns the first word of the request in upper case, or "" if the payload is not valid RESP3.
func (r Request) Verb() string { return strings.ToUpper(word(r.Payload, 0)) }

// Key returns the second word of the request: the key or, for SCAN, the pattern. It returns "" if there
// is no second word.
func (r Request) Key() string { return word(r.Payload, 1) }

// word returns word i of a request, counted from 0, or "" if the request has no such word.
func word(payload []byte, i int) string {
	words, err := wire.ParseRequest(payload)
	if err != nil || len(words) <= i {
		return ""
	}
	return string(words[i])
}

// Property returns the value of the first user property with this name, and whether there is one. The
// store uses the properties `__ts` (timestamp), `__ft` (fencing token) and `aio-persistence`.
func (r Request) Property(name string) (value string, ok bool) {
	for _, p := range r.Properties {
		if p.Name == name {
			return p.Value, true
		}
	}
	return "", false
}

// forStore converts the request to the type in package store. It copies a large payload, which the store may keep.
func (r Request) forStore() *store.Request {
	q := &store.Request{ClientID: r.ClientID, Username: r.Username, Payload: r.Payload}
	if len(r.Payload) >= store.Large {
		q.Payload = bytes.Clone(r.Payload)
	}
	for _, p := range r.Properties {
		q.SetProperty([]byte(p.Name), []byte(p.Value))
	}
	return q
}
