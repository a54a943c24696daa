package client

import (
	"github.com/sscli/sscli/client/mqtt"
	"github.com/sscli/sscli/client/wire"
)

// A Version is a reading of a hybrid logical clock: the version of a key or, for a lock's key,
// the fencing token. The zero Version means no version; IsZero reports it. Compare versions
// with Compare and Equal, not with ==. String returns the text that the store uses.
// `go doc wire.Version` lists the methods.
type Version = wire.Version

// ParseVersion parses a version in the form that String returns and the store sends. To check a
// fencing token that a user typed, use [wire.ParseToken].
func ParseVersion(text string) (Version, error) { return wire.ParseVersion(text) }

// A TraceEvent is an MQTT packet that was sent or received; see Options.Trace.
type TraceEvent = mqtt.Event

// Reasons why a connection ended or could not be made, for errors.Is.
var (
	ErrClosed       = mqtt.ErrClosed       // closed by Session.Close; from Watch.Next, also by Watch.Close
	ErrBrokerClosed = mqtt.ErrBrokerClosed // the broker closed the connection without a reason
	ErrKeepAlive    = mqtt.ErrKeepAlive    // the broker sent nothing for one and a half keep-alive intervals
	ErrSilent       = mqtt.ErrSilent       // the broker sent nothing until a request timed out
	ErrAuthLater    = mqtt.ErrAuthLater    // the broker cannot verify the login now; try again later
)

// ErrForbiddenResponseTopic is the cause of an [InvalidError]: the broker disconnects a client
// that asks for replies on this topic.
var ErrForbiddenResponseTopic = wire.ErrForbiddenResponseTopic

// ErrClockDrift means that a request could not get a timestamp: the local clock was set back, and
// is now more than a minute behind the newest timestamp that the session has used or seen.
var ErrClockDrift = wire.ErrDrift

type (
	// A DialError means that a connection could not be made. Stage is the step that failed,
	// Address the address dialed, and Err the cause. If the broker refused the login or the
	// subscription, the DialError wraps a *ReasonError.
	DialError = mqtt.DialError

	// A Stage is a step of making a connection: one of the Stage constants.
	Stage = mqtt.Stage

	// A LostError means that a connection ended although the client did not close it. Err is
	// the cause.
	LostError = mqtt.LostError

	// A ReasonError means that the broker refused something. Packet names the packet that said
	// so, such as "PUBACK" or "DISCONNECT". Code is the MQTT 5 reason code, such as 0x86 (bad
	// user name or password) or 0x87 (not authorized); package mqtt names the codes. Text is
	// the broker's own text, and Topic the refused topic.
	ReasonError = mqtt.ReasonError

	// A ReauthError means that the broker refused a new service-account token on a
	// connection and ended it.
	ReauthError = mqtt.ReauthError

	// A TooLargeError means that a request was not sent because it is larger than the broker
	// accepts. Size and Max are in bytes.
	TooLargeError = mqtt.TooLargeError

	// A MalformedError means that the broker sent bytes that are not valid MQTT 5.
	MalformedError = mqtt.MalformedError

	// A ClientCertificateError means that the broker asked for a client certificate and refused
	// it, or got none. Given says whether the client sent one.
	ClientCertificateError = mqtt.ClientCertificateError

	// A ProxyError means that a proxy could not be reached or did not connect.
	ProxyError = mqtt.ProxyError

	// An UpgradeError means that a server did not open a WebSocket. Status is the HTTP status
	// code of its answer.
	UpgradeError = mqtt.UpgradeError
)

// The stages of making a connection, in order.
const (
	StageLookup    = mqtt.StageLookup
	StageTCP       = mqtt.StageTCP
	StageProxy     = mqtt.StageProxy // replaces StageLookup and StageTCP when a proxy is used
	StageTLS       = mqtt.StageTLS
	StageWebSocket = mqtt.StageWebSocket
	StageConnect   = mqtt.StageConnect
	StageSubscribe = mqtt.StageSubscribe
)

// A StoreError is an error reply from the store. Text is the store's message; Kind returns
// which of the known errors it is. A client without access to a key gets the kind
// ErrorNotAuthorized; a client that may not connect, publish or subscribe at all gets a
// *[ReasonError].
type StoreError = wire.StoreError

// An ErrorKind classifies a [StoreError].
type ErrorKind = wire.ErrorKind

// The kinds of a [StoreError].
const (
	ErrorClockAhead         = wire.ErrorClockAhead         // the local clock is over a minute ahead of the store's
	ErrorFenceRequired      = wire.ErrorFenceRequired      // the key was written with a token and the request had none
	ErrorFenceAhead         = wire.ErrorFenceAhead         // the token is over a minute ahead of the store's clock
	ErrorFenceLower         = wire.ErrorFenceLower         // the key was written with a newer token
	ErrorQuota              = wire.ErrorQuota              // the store holds its maximum number of keys
	ErrorSyntax             = wire.ErrorSyntax             // the store did not understand the request
	ErrorNotAuthorized      = wire.ErrorNotAuthorized      // the broker's rules forbid access to the key
	ErrorUnknownCommand     = wire.ErrorUnknownCommand     // the store does not know the verb
	ErrorWrongArguments     = wire.ErrorWrongArguments     // wrong number of arguments for the verb
	ErrorMissingTimestamp   = wire.ErrorMissingTimestamp   // the request had no timestamp
	ErrorMalformedTimestamp = wire.ErrorMalformedTimestamp // the store cannot parse the timestamp or the token
	ErrorEmptyKey           = wire.ErrorEmptyKey           // the key is empty
	ErrorUnknown            = wire.ErrorUnknown            // any other error
)
