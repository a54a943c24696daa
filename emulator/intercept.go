package emulator

import (
	"slices"
	"time"
)

// An Action specifies what the server does with one request; see [Server.Intercept]. With the zero
// Action, the server answers the request normally.
type Action struct {
	// What to do instead of processing the request.
	Drop       bool   // acknowledge the request, then discard it
	Refuse     byte   // send PUBACK with this reason code, 0x80 or more, or 0x10: no matching subscribers
	Disconnect byte   // send DISCONNECT with this reason code
	Cut        bool   // close the connection, without PUBACK
	Error      string // answer with an error of the store that has this text

	// What to do after processing the request.
	CutAfter  bool // close the connection, without PUBACK or reply
	DropReply bool // send no reply

	CutBytes int           // close the connection when this many more bytes were sent to the client; 0 = do not
	Stall    time.Duration // read nothing more from the client for this time, on the store's clock

	// Delays on the store's clock, in addition to Options.Latency.
	Delay      time.Duration // before processing
	DelayReply time.Duration // between processing and the reply

	// Changes to the PUBACK and the reply.
	NoPuback   bool          // never send PUBACK
	PubackLast bool          // send PUBACK after the reply, not before processing
	Duplicate  bool          // send the reply twice
	Rewrite    func(*Answer) // changes the reply; must not call the server; nil = no change
}

// A Notification is a notification of a change to one watcher; see [Server.InterceptNotifications].
type Notification struct {
	ClientID string // the watcher
	Key      string
	Payload  []byte // RESP3
}

// A NotificationAction specifies what the server does with one notification. With the zero value, the server
// sends it.
type NotificationAction struct {
	Drop      bool          // do not send it
	Delay     time.Duration // send it later, on the store's clock, unless the watcher has disconnected
	Duplicate bool          // send it twice
	Reorder   bool          // send it after the watcher's next notification; without a next one, it is lost
}

// An Answer is a reply that [Action].Rewrite may change.
type Answer struct {
	Topic           string
	CorrelationData []byte
	ContentType     string
	Properties      []Property
	Payload         []byte
}

// Set sets the value of the first user property with this name. If there is none, Set adds the property at
// the end.
func (a *Answer) Set(name, value string) {
	if i := slices.IndexFunc(a.Properties, func(p Property) bool { return p.Name == name }); i >= 0 {
		a.Properties[i].Value = value
		return
	}
	a.Properties = append(a.Properties, Property{Name: name, Value: value})
}

// Delete removes all user properties with this name.
func (a *Answer) Delete(name string) {
	a.Properties = slices.DeleteFunc(a.Properties, func(p Property) bool { return p.Name == name })
}
