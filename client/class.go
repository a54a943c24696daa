package client

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"

	"github.com/sscli/sscli/internal/mqtt"
	"github.com/sscli/sscli/internal/wire"
)

// An ErrorClass says what a program may do about an error. The numbers are the exit codes of the command line sscli, and
// stay as they are; ClassOther is none.
type ErrorClass int

// The classes that [Class] returns.
const (
	ClassOther      ErrorClass = -1  // an error that is not of this package, such as the application's own; no exit code
	ClassOK         ErrorClass = 0   // there is no error
	ClassNo         ErrorClass = 1   // another client holds the lock
	ClassInvalid    ErrorClass = 2   // the request or an option is wrong; nothing was sent
	ClassConnection ErrorClass = 3   // no connection, no store, or a broker that is busy: nothing was applied, try again later
	ClassLogin      ErrorClass = 4   // TLS, a login or a right
	ClassStore      ErrorClass = 5   // the store, or the broker in its place, refused the request
	ClassFencing    ErrorClass = 6   // the fencing token is missing, lower, malformed or from the future
	ClassClock      ErrorClass = 7   // the clocks of the client and the store differ by more than a minute
	ClassLockLost   ErrorClass = 8   // the lock was lost, or is not held
	ClassReply      ErrorClass = 9   // the reply is not what the protocol allows
	ClassContinuity ErrorClass = 10  // a watch ended because its events were not consumed
	ClassUnknown    ErrorClass = 11  // a write or a lock request that may have been applied; see Session.ReadBack
	ClassTimeout    ErrorClass = 124 // no reply in time, and nothing was applied
	ClassCanceled   ErrorClass = 128 // the caller's context was canceled
)

// Class returns the class of an error of this package. An error from elsewhere, such as that of the function given to
// [Session.WithLock], has the class ClassOther.
func Class(err error) ErrorClass {
	store, _ := errors.AsType[*StoreError](err)
	token, _ := errors.AsType[*TokenError](err)
	refused, _ := errors.AsType[*ReasonError](err)
	dial, _ := errors.AsType[*DialError](err)
	switch {
	case err == nil:
		return ClassOK
	case isA[*LostReplyError](err), isA[*LockUnknownError](err):
		return ClassUnknown
	case errors.Is(err, ErrOverflow):
		return ClassContinuity
	case errors.Is(err, ErrLockLost), errors.Is(err, ErrNotHolder):
		return ClassLockLost
	case errors.Is(err, ErrLockBusy):
		return ClassNo
	case isA[*InvalidError](err), isA[*TooLargeError](err):
		return ClassInvalid
	case store != nil:
		return storeClass(store.Kind())
	case errors.Is(err, wire.ErrDrift):
		return ClassClock
	case isA[*StatusError](err):
		return ClassStore
	case isA[*ReplyError](err):
		return ClassReply
	case token != nil && token.Expiry.IsZero():
		return ClassInvalid
	case token != nil, isA[*mqtt.ReauthError](err):
		return ClassLogin
	case refused != nil:
		return reasonClass(refused)
	case isA[*NoStoreError](err):
		return ClassConnection
	case errors.Is(err, context.DeadlineExceeded):
		return ClassTimeout
	case errors.Is(err, context.Canceled):
		return ClassCanceled
	case isLoginFailure(dial, err):
		return ClassLogin
	case dial != nil, isA[*LostError](err), isA[*mqtt.ProxyError](err), errors.Is(err, ErrClosed), errors.Is(err, ErrNoReply),
		errors.Is(err, mqtt.ErrBrokerClosed):
		return ClassConnection
	}
	return ClassOther
}

func storeClass(kind ErrorKind) ErrorClass {
	switch kind {
	case ErrorFenceRequired, ErrorFenceLower, ErrorFenceAhead, ErrorMalformedTimestamp:
		return ClassFencing
	case ErrorClockAhead:
		return ClassClock
	case ErrorNotAuthorized:
		return ClassLogin
	}
	return ClassStore
}

func reasonClass(r *ReasonError) ErrorClass {
	switch r.Code {
	case mqtt.ReasonBadLogin, mqtt.ReasonNotAuthorized, mqtt.ReasonBanned, mqtt.ReasonBadAuthMethod, 0x85: // client identifier not valid
		return ClassLogin
	case mqtt.ReasonTakenOver, mqtt.ReasonQuotaExceeded, mqtt.ReasonServerBusy, 0x9C, 0x9D: // use another server
		return ClassConnection
	case 0x8F, 0x90: // topic filter or topic name invalid
		return ClassInvalid
	}
	if r.Packet == "PUBACK" || r.Code == mqtt.ReasonPacketTooLarge {
		return ClassStore
	}
	return ClassConnection
}

// isLoginFailure reports whether TLS, or the login at a proxy, failed. dial may be nil.
func isLoginFailure(dial *DialError, err error) bool {
	if proxy, ok := errors.AsType[*mqtt.ProxyError](err); ok {
		return proxy.Status == http.StatusProxyAuthRequired
	}
	network, ok := errors.AsType[*net.OpError](err)
	return isA[*mqtt.ClientCertificateError](err) || isA[*tls.CertificateVerificationError](err) || isA[x509.UnknownAuthorityError](err) ||
		isA[tls.RecordHeaderError](err) || dial != nil && dial.Stage == mqtt.StageTLS ||
		ok && (network.Op == "remote error" || network.Op == "local error") // a TLS alert
}
