package client

import (
	"context"
	"crypto/sha256"
	"errors"

	"github.com/sscli/sscli/internal/mqtt"
	"github.com/sscli/sscli/internal/wire"
)

// dial connects and logs in with the current password or token, which it also returns. If early is
// not nil and s.awaitConnack is false, dial sends the early request in the same write as SUBSCRIBE.
// The caller holds s.dialing.
func (s *Session) dial(ctx context.Context, filters []string, early *earlyRequest) (conn *mqtt.Conn, secret []byte, err error) {
	s.mu.Lock()
	s.connSeq++
	r := &receiver{s: s, connSeq: s.connSeq}
	s.mu.Unlock()
	o := mqtt.Options{
		Address:   s.o.Address,
		TLS:       s.o.TLS,
		WebSocket: s.o.WebSocket,
		Proxy:     s.o.Proxy,
		ProxyTLS:  s.o.ProxyTLS,
		Dial:      s.o.Dial,
		ClientID:  s.o.ClientID,
		Username:  s.o.Username,
		KeepAlive: s.o.KeepAlive,
		User:      []mqtt.Property{{Name: wire.PropMetricCategory, Value: s.o.MetricCategory}},
		Subscribe: filters,
		Tap:       s.o.Trace,

		OnPublication: r.message,
		OnDrained:     r.drained,

		AwaitConnack: s.o.NoPipelining || s.awaitConnack,
	}
	if early != nil {
		early.r = nil
		if !o.AwaitConnack {
			o.Early = func() mqtt.EarlyMessage { return early.message(s) }
		}
	}
	tokenCtx := ctx
	if s.o.hasToken() {
		o.Auth = mqtt.Auth{Method: methodSAT, Data: func() ([]byte, error) {
			token, err := s.o.Token(tokenCtx)
			secret = token
			return token, err
		}}
	} else {
		if secret, err = s.secret(ctx); err != nil {
			return nil, nil, &mqtt.DialError{Stage: mqtt.StageConnect, Address: s.o.Address, Err: err}
		}
		o.Password = secret
	}
	conn, err = mqtt.Dial(ctx, o)
	tokenCtx = s.ctx // for later calls to Data by keepToken
	s.noteAbandonedConnect(err)
	if err == nil || isLoginRefusal(err) {
		s.setTried(secret)
	}
	// Return the value that secret has now: when keepToken later calls Data, Data changes the variable.
	return conn, secret, s.explainLogin(err, secret)
}

func (s *Session) secret(ctx context.Context) ([]byte, error) {
	switch {
	case s.o.hasToken():
		return s.o.Token(ctx)
	case s.o.Password != nil:
		return s.o.Password()
	default:
		return nil, nil
	}
}

// setTried records the password or token that the broker last accepted or refused.
func (s *Session) setTried(secret []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tried = sha256.Sum256(secret)
}

// hasNewSecret reports whether err is a refused login, and the password or token has changed
// since then (protocol.md 8.2).
func (s *Session) hasNewSecret(err error) bool {
	if !isLoginRefusal(err) {
		return false
	}
	secret, err := s.secret(s.ctx)
	if err != nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return sha256.Sum256(secret) != s.tried
}

func isLoginRefusal(err error) bool {
	refused, ok := errors.AsType[*mqtt.ReasonError](err)
	return ok && (refused.Packet == "CONNACK" || refused.Packet == "DISCONNECT") &&
		(refused.Code == mqtt.ReasonBadLogin || refused.Code == mqtt.ReasonNotAuthorized)
}
