package emulator

import (
	"slices"
	"time"
)

// An Action is what happens to one request, see [Server.Intercept]. The zero Action answers it
// normally.
type Action struct {
	// Instead of processing the request:
	Drop       bool // it is acknowledged and lost
	Refuse     byte // PUBACK with this reason code, 0x80 or more
	Disconnect byte // DISCONNECT with this reason code
	Cut        bool // the connection breaks before the request is processed

	// After processing it:
	CutAfter  bool // the connection breaks, without PUBACK or reply
	DropReply bool // no reply

	// Time, by the store's clock; the server's latency comes on top.
	Delay      time.Duration // before processing
	DelayReply time.Duration // between processing and the reply

	// Form.
	NoPuback   bool          // the request is never acknowledged
	PubackLast bool          // PUBACK after the reply, not before processing
	Duplicate  bool          // the reply is sent twice
	Rewrite    func(*Answer) // changes the reply; it must not call the server
}

// An Answer is a reply about to be sent, see [Action].
type Answer struct {
	Topic           string
	CorrelationData []byte
	ContentType     string
	Properties      []Property
	Payload         []byte
}

// Set sets the value of a user property, or adds the property at the end.
func (a *Answer) Set(name, value string) {
	if i := slices.IndexFunc(a.Properties, func(p Property) bool { return p.Name == name }); i >= 0 {
		a.Properties[i].Value = value
		return
	}
	a.Properties = append(a.Properties, Property{name, value})
}

// Delete removes a user property.
func (a *Answer) Delete(name string) {
	a.Properties = slices.DeleteFunc(a.Properties, func(p Property) bool { return p.Name == name })
}
