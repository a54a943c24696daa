package client

import (
	"crypto/tls"
	"errors"
	"net"
	"time"

	"github.com/sscli/sscli/internal/mqtt"
)

// IsPermanent reports whether err keeps a session from going on: the broker's reason, such as no support for QoS 1,
// would also apply to the next connection, or another client with the same client id took over the connection. After a
// refused login, a session goes on once its password or token has changed. The refusal of a request, or of a watch, is
// not permanent: it leaves the session as it was.
func IsPermanent(err error) bool {
	if refused, ok := errors.AsType[*mqtt.ReasonError](err); ok &&
		(refused.Packet == "PUBACK" || refused.Packet == "SUBACK" && !isA[*mqtt.DialError](err)) {
		return false
	}
	return isRefusal(err)
}

// isRefusal reports whether the broker would refuse the same packet again: one that makes a connection, as with
// IsPermanent, or one of a request or a watch.
func isRefusal(err error) bool {
	refused, ok := errors.AsType[*mqtt.ReasonError](err)
	if !ok {
		return errors.Is(err, mqtt.ErrQoS0)
	}
	return !isA[*mqtt.ReauthError](err) && refused.Permanent() // after a ReauthError, a new connection logs in with a new token
}

// isHopeless reports whether the session must not reconnect after err.
func (s *Session) isHopeless(err error) bool {
	return isRefusal(err) && !s.hasNewSecret(err) && !s.isOwnTakeOver(err)
}

// isFinal reports whether another attempt would only fail with the same error.
func (s *Session) isFinal(err error) bool {
	return isA[*tls.CertificateVerificationError](err) || isA[*ReplyError](err) || isA[*StoreError](err) || s.isHopeless(err)
}

// wantsConnectAlone reports whether the broker closed the connection before CONNACK without a
// reason. Some brokers do so if other packets follow CONNECT immediately.
func wantsConnectAlone(err error) bool {
	failed, ok := errors.AsType[*mqtt.DialError](err)
	if !ok || failed.Stage != mqtt.StageConnect || isA[*mqtt.ClientCertificateError](err) {
		return false
	}
	if errors.Is(err, mqtt.ErrBrokerClosed) {
		return true
	}
	network, ok := errors.AsType[*net.OpError](err)
	return ok && !network.Timeout() && (network.Op == "read" || network.Op == "write")
}

// abandonedConnectLife is how long an abandoned CONNECT may still reach the broker.
const abandonedConnectLife = 30 * time.Second

// noteAbandonedConnect records the time if an attempt to connect ended before the broker
// answered: its CONNECT may reach the broker after the next attempt's CONNECT, and take over
// that connection.
func (s *Session) noteAbandonedConnect(err error) {
	dial, ok := errors.AsType[*mqtt.DialError](err)
	if !ok || dial.Stage != mqtt.StageConnect && dial.Stage != mqtt.StageSubscribe || isA[*mqtt.ReasonError](err) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.abandonedConnect = time.Now()
}

// isOwnTakeOver reports whether err is a take-over that may come from an abandoned CONNECT of
// this session.
func (s *Session) isOwnTakeOver(err error) bool {
	if !isTakenOver(err) {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mayTakeOver() || s.ownTakeOver != nil && errors.Is(err, s.ownTakeOver)
}

// mayTakeOver reports whether an abandoned CONNECT may still take over the connection. The caller holds s.mu.
func (s *Session) mayTakeOver() bool {
	return !s.abandonedConnect.IsZero() && time.Since(s.abandonedConnect) < abandonedConnectLife
}

func isTakenOver(err error) bool {
	e, ok := errors.AsType[*mqtt.ReasonError](err)
	return ok && e.Code == mqtt.ReasonTakenOver
}
