package client

import (
	"github.com/sscli/sscli/internal/mqtt"
	"github.com/sscli/sscli/internal/wire"
)

// A Version is a reading of a hybrid logical clock: the version of a key or, for a lock's key,
// the fencing token. The fields are Wall, in milliseconds since 1970, Counter and Node. The zero Version
// means no version; IsZero reports it. Compare versions with Compare and Equal, not with ==. Time returns
// Wall as a time.Time, and String the text that the store uses.
type Version = wire.Version

// ParseVersion parses a version in the form that String returns and the store sends.
func ParseVersion(text string) (Version, error) { return wire.ParseVersion(text) }

// A Value is a RESP3 value: the reply to a [Call]. Kind is its type byte, such as '$'; Text is the text of a
// string or an error, Int a number, and Items are the elements of an array. Clone copies it.
type Value = wire.Value

// A Kind is the kind of a [Value], its first byte in RESP3.
type Kind = wire.Kind

// The kinds of values.
const (
	KindSimpleString = wire.SimpleString
	KindSimpleError  = wire.SimpleError
	KindInteger      = wire.Integer
	KindBlob         = wire.Blob
	KindArray        = wire.Array
	KindNull         = wire.Null
)

// A TraceEvent is an MQTT packet that was sent or received; see Options.Trace. Its fields are Time, Sent, Type, the name
// of the packet, ID, Size in bytes, Detail, its main fields as text, ClientID and Username of a CONNECT, Filters of a
// SUBSCRIBE, the Codes of a reply, and Message and Duplicate of a PUBLISH.
type TraceEvent = mqtt.Event

// A Message is the content of a PUBLISH in a [TraceEvent]: Topic, Payload, ResponseTopic, Correlation, ContentType,
// Expiry, User, QoS and Retained. Property looks up a user property. Large and LargeAt are zero in a [TraceEvent].
type Message = mqtt.Message

// A Property is an MQTT user property of a [Message]: a Name and a Value.
type Property = mqtt.Property

// A Stage is the step in which a [DialError] happened.
type Stage = mqtt.Stage

// The stages, in their order.
const (
	StageLookup    = mqtt.StageLookup
	StageTCP       = mqtt.StageTCP
	StageProxy     = mqtt.StageProxy // in place of StageLookup and StageTCP
	StageTLS       = mqtt.StageTLS
	StageWebSocket = mqtt.StageWebSocket
	StageConnect   = mqtt.StageConnect
	StageSubscribe = mqtt.StageSubscribe
)

// Reasons why a connection ended or could not be made, for errors.Is.
var (
	ErrClosed = mqtt.ErrClosed // closed by Session.Close; from Watch.Next, also by Watch.Close
	ErrSilent = mqtt.ErrSilent // the broker sent nothing until a request timed out
)

type (
	// A DialError means that a connection could not be made. Stage is the step that failed,
	// Address the address dialed, and Err the cause. If the broker refused the login or the
	// subscription, the DialError wraps a *ReasonError.
	DialError = mqtt.DialError

	// A LostError means that a connection ended although the client did not close it. Err is
	// the cause.
	LostError = mqtt.LostError

	// A ReasonError means that the broker refused something. Packet is the type of the packet that
	// reported the refusal, such as "PUBACK" or "DISCONNECT". Code is the MQTT 5 reason code, such
	// as 0x86 (bad user name or password) or 0x87 (not authorized).
	// Text is the broker's own text, Topic the refused topic, and Reference the brokers to use instead, if it names any.
	// Permanent reports whether the broker would refuse the same again.
	ReasonError = mqtt.ReasonError

	// A TooLargeError means that a request was not sent because it is larger than the broker
	// accepts. Size and Max are in bytes.
	TooLargeError = mqtt.TooLargeError
)

// A StoreError is an error reply from the store. Text is the store's message; Kind identifies
// the known errors. A client without access to a key gets the kind
// [ErrorNotAuthorized]; a client that may not connect, publish or subscribe at all gets a
// *[ReasonError]. [ErrFenced], [ErrNotAuthorized], [ErrQuota] and [ErrClock] stand for the kinds that a
// program most often handles.
type StoreError = wire.StoreError

// An ErrorKind identifies a kind of [StoreError]. The values are stable. Text returns the store's message.
type ErrorKind = wire.ErrorKind

// The kinds of errors that the store is known to return. ErrorUnknown is any other error.
const (
	ErrorClockAhead         = wire.ErrorClockAhead
	ErrorFenceRequired      = wire.ErrorFenceRequired
	ErrorFenceAhead         = wire.ErrorFenceAhead
	ErrorFenceLower         = wire.ErrorFenceLower
	ErrorQuota              = wire.ErrorQuota
	ErrorSyntax             = wire.ErrorSyntax
	ErrorNotAuthorized      = wire.ErrorNotAuthorized
	ErrorUnknownCommand     = wire.ErrorUnknownCommand
	ErrorWrongArguments     = wire.ErrorWrongArguments
	ErrorMissingTimestamp   = wire.ErrorMissingTimestamp
	ErrorMalformedTimestamp = wire.ErrorMalformedTimestamp
	ErrorEmptyKey           = wire.ErrorEmptyKey
	ErrorUnknown            = wire.ErrorUnknown
)
