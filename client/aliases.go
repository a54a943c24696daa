package client

import (
	"github.com/sscli/sscli/client/mqtt"
	"github.com/sscli/sscli/client/wire"
)

// A Version is a hybrid logical clock reading: the version of a key or, taken from a
// lock's key, a fencing token. The zero Version means no version; IsZero reports it.
// Versions are compared with Compare and Equal, not with ==; String
// returns the text. `go doc wire.Version` lists the methods.
type Version = wire.Version

// ParseVersion parses the text of a version, as String returns it and the store sends
// it. To check a fencing token that a person typed, use [wire.ParseToken].
func ParseVersion(text string) (Version, error) { return wire.ParseVersion(text) }

// A TraceEvent is an MQTT packet that was sent or received, see Options.Trace.
type TraceEvent = mqtt.Event

// Why a connection ended or was not made, for errors.Is.
var (
	ErrClosed       = mqtt.ErrClosed       // by Session.Close or, for Watch.Next, by Watch.Close
	ErrBrokerClosed = mqtt.ErrBrokerClosed // the broker closed it without a reason
	ErrKeepAlive    = mqtt.ErrKeepAlive    // the broker gave no sign of life
	ErrSilent       = mqtt.ErrSilent       // the broker gave no sign of life while a request timed out
	ErrAuthLater    = mqtt.ErrAuthLater    // the broker cannot verify the login now: try again later
)

// ErrForbiddenResponseTopic is the cause of an [InvalidError]: the broker would
// disconnect a client that asks for replies on this topic.
var ErrForbiddenResponseTopic = wire.ErrForbiddenResponseTopic

// ErrClockDrift means that a request could not be stamped: the local clock was set back
// by over a minute, so versions it has seen lie too far ahead of it.
var ErrClockDrift = wire.ErrDrift

type (
	// A DialError is a connection that was not made. Its fields are Stage, how far it
	// got, Address, and Err, the cause. A broker that refuses the login or the
	// subscription is a DialError too, which then wraps a *ReasonError.
	DialError = mqtt.DialError

	// A Stage is a step of making a connection, one of the constants that begin with
	// Stage.
	Stage = mqtt.Stage

	// A LostError is a connection that ended although the client did not close it. Its field
	// Err is the cause.
	LostError = mqtt.LostError

	// A ReasonError is a refusal by the broker. Its fields are Packet, such as
	// "PUBACK" or "DISCONNECT", Code, the reason code of MQTT 5, Text, and Topic. 0x86
	// is a bad user name or password, 0x87 not authorized: package mqtt names the codes.
	ReasonError = mqtt.ReasonError

	// A ReauthError means that the broker refused a new service-account token on a
	// connection and ended it.
	ReauthError = mqtt.ReauthError

	// A TooLargeError is a request that was not sent because it is larger than the
	// broker accepts. Its fields are Size and Max, in bytes.
	TooLargeError = mqtt.TooLargeError

	// A MalformedError means that the broker sent bytes that are not valid MQTT 5.
	MalformedError = mqtt.MalformedError

	// A ClientCertificateError means that the broker asked for a client certificate and
	// refused it, or got none; its field Given says which.
	ClientCertificateError = mqtt.ClientCertificateError

	// A ProxyError is a proxy that could not be reached, or did not connect.
	ProxyError = mqtt.ProxyError

	// An UpgradeError is a server that did not answer with a WebSocket. Its field
	// Status is the HTTP status code.
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

// A StoreError is an error that the store answered with. Its field Text is what the
// store wrote; its method Kind returns which of the known errors it is. A client that
// may not use a key gets the kind ErrorNotAuthorized; one that may not connect, publish or
// subscribe at all gets a *[ReasonError].
type StoreError = wire.StoreError

// An ErrorKind names a rule that the store enforces.
type ErrorKind = wire.ErrorKind

// The kinds of a [StoreError].
const (
	ErrorClockAhead         = wire.ErrorClockAhead         // the local clock is over a minute ahead of the store's
	ErrorFenceRequired      = wire.ErrorFenceRequired      // the key is protected by a token and the request had none
	ErrorFenceAhead         = wire.ErrorFenceAhead         // the token is over a minute ahead of the store's clock
	ErrorFenceLower         = wire.ErrorFenceLower         // a newer token has written the key
	ErrorQuota              = wire.ErrorQuota              // the store holds as many keys as it may
	ErrorSyntax             = wire.ErrorSyntax             // the request was not understood
	ErrorNotAuthorized      = wire.ErrorNotAuthorized      // the broker's rules forbid access to the key
	ErrorUnknownCommand     = wire.ErrorUnknownCommand     // the store does not know the verb
	ErrorWrongArguments     = wire.ErrorWrongArguments     // wrong number of arguments for the verb
	ErrorMissingTimestamp   = wire.ErrorMissingTimestamp   // the request had no timestamp
	ErrorMalformedTimestamp = wire.ErrorMalformedTimestamp // the store cannot read the timestamp or the token
	ErrorEmptyKey           = wire.ErrorEmptyKey           // the key is empty
	ErrorUnknown            = wire.ErrorUnknown            // any other
)
