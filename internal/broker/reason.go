package broker

// Reason codes of MQTT 5 (2.4).
const (
	Success              = 0x00
	NoMatchingSubscriber = 0x10
	noSubscription       = 0x11
	ContinueAuth         = 0x18
	reauthenticate       = 0x19
	UnspecifiedError     = 0x80
	MalformedPacket      = 0x81
	ProtocolViolation    = 0x82
	UnsupportedVersion   = 0x84
	InvalidClientID      = 0x85
	BadLogin             = 0x86
	NotAuthorized        = 0x87
	ServerBusy           = 0x89
	ServerShuttingDown   = 0x8B
	BadAuthMethod        = 0x8C
	keepAliveTimeout     = 0x8D
	sessionTakenOver     = 0x8E
	filterInvalid        = 0x8F
	TopicNameInvalid     = 0x90
	packetIDInUse        = 0x91
	packetIDNotFound     = 0x92
	receiveMaxExceeded   = 0x93
	topicAliasInvalid    = 0x94
	packetTooLarge       = 0x95
	QuotaExceeded        = 0x97
	AdministrativeAction = 0x98
)

// An Error is a protocol error by a client. It ends the connection.
type Error struct {
	Code byte   // the reason code
	Why  string // the Reason String
}

func (e *Error) Error() string { return e.Why }

func malformed(why string) *Error { return &Error{MalformedPacket, why} }
func violation(why string) *Error { return &Error{ProtocolViolation, why} }

// connackCode3 returns the return code that CONNACK has in MQTT 3.1.1 (3.2.2.3) for a reason code
// of MQTT 5.
func connackCode3(code byte) byte {
	switch code {
	case Success:
		return 0
	case UnsupportedVersion:
		return 1
	case InvalidClientID:
		return 2
	case BadLogin:
		return 4
	case NotAuthorized, BadAuthMethod:
		return 5
	default:
		return 3 // server unavailable
	}
}
