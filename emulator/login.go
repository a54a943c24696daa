package emulator

import (
	"cmp"
	"crypto/subtle"
	"errors"
	"time"

	"github.com/sscli/sscli/internal/admission"
	"github.com/sscli/sscli/internal/broker"
	"github.com/sscli/sscli/internal/mqtt"
	"github.com/sscli/sscli/internal/observe"
)

// methodSAT is the authentication method of service-account tokens (protocol.md 7.2).
const methodSAT = "K8S-SAT"

// Passwords returns a function for [Options].CheckLogin that accepts the users with these names and passwords.
func Passwords(byName map[string]string) func(username string, password []byte) bool {
	return func(username string, password []byte) bool {
		want, known := byName[username]
		return subtle.ConstantTimeCompare([]byte(want), password) == 1 && known
	}
}

// login accepts or refuses a CONNECT, or an AUTH from a connected client. It runs on the
// connection's goroutine, without the broker's lock.
func (s *Server) login(l *broker.Login) broker.Verdict {
	v := s.authenticate(l)
	if v.Code == 0 {
		v = s.authorizeLogin(l, v)
	}
	return v
}

func (s *Server) authenticate(l *broker.Login) broker.Verdict {
	if l.Again {
		return s.authenticateAgain(l)
	}
	s.broker.Lock()
	refuse, reason := s.refuse, s.connectFault(l.ClientID)
	s.broker.Unlock()
	if reason != 0 {
		return broker.Verdict{Code: reason, Text: "a fault that was injected"}
	}
	if refuse != nil {
		if reason := refuse(l.ClientID, l.Username); reason >= broker.UnspecifiedError {
			return broker.Verdict{Code: reason, Text: "refused"}
		}
	}
	name := commonName(l)
	var err error
	if check := s.opts.CheckLogin; check != nil && (l.Method == "" || s.opts.CheckToken == nil) {
		matches := func() bool { return check(l.Username, l.Password) }
		switch {
		case l.Username != "" || len(l.Password) > 0:
			err = s.logins.Check(l.Client.Remote(), l.Username, matches)
		case !matches(): // no attempt to guess a password
			err = admission.ErrRefused
		}
	}
	switch {
	case l.Method != "" && l.Method != methodSAT: // MQTT 5, 4.12.0-1
		return broker.Verdict{Code: broker.BadAuthMethod, Text: "the authentication method must be " + methodSAT}
	case s.opts.CheckToken != nil && l.Method != "":
		return s.verify(l)
	case errors.Is(err, admission.ErrBusy):
		return busy()
	case err != nil, s.opts.CheckLogin == nil && s.opts.CheckToken != nil:
		return broker.Verdict{Code: broker.BadLogin, Text: "bad username or password"}
	case name != "" && l.Username != "" && l.Username != name:
		// The certificate decides (assumed): some clients have one configuration for all brokers.
		s.opts.Log.Info("the user name is ignored, the certificate names another", "client", l.ClientID, "sent", l.Username, "user", name)
	case name == "" && s.opts.CheckLogin != nil:
		name = l.Username
	}
	return broker.Verdict{Username: name}
}

// busy returns the verdict on a login from an address with too many failed logins.
func busy() broker.Verdict {
	return broker.Verdict{Code: broker.ServerBusy, Text: admission.ErrBusy.Error()}
}

// commonName returns the common name in the client's verified certificate, which is the user name
// (protocol.md 7.3), or "" without a verified certificate.
func commonName(l *broker.Login) string {
	if l.TLS == nil || len(l.TLS.VerifiedChains) == 0 {
		return ""
	}
	return l.TLS.VerifiedChains[0][0].Subject.CommonName
}

// authenticateAgain accepts or refuses a re-authentication (protocol.md 7.2).
func (s *Server) authenticateAgain(l *broker.Login) broker.Verdict {
	s.broker.Lock()
	decide := s.reauth
	s.broker.Unlock()
	if decide != nil {
		if reason := decide(l.ClientID, l.Data); reason >= broker.ContinueAuth {
			return broker.Verdict{Code: reason}
		}
	}
	if s.opts.CheckToken == nil {
		return broker.Verdict{Username: l.Client.Username}
	}
	return s.verify(l)
}

// verify checks a client's token. The user name in the verdict is the user that the token names or, if the
// token names no user, the common name in the client's certificate.
func (s *Server) verify(l *broker.Login) broker.Verdict {
	var login Login
	var err error
	if throttled := s.logins.Check(l.Client.Remote(), "", func() bool {
		login, err = s.opts.CheckToken(l.Data, s.Now())
		return err == nil
	}); errors.Is(throttled, admission.ErrBusy) {
		return busy()
	} else if throttled != nil {
		s.opts.Log.Info("token refused", "client", l.ClientID, "error", err)
		return broker.Verdict{Code: broker.NotAuthorized, Text: "not authorized"}
	}
	s.update(func() { s.expireLogin(l, login.Expires) })
	if login.User == "" {
		login.User = commonName(l)
	}
	return broker.Verdict{Username: login.User}
}

// expireLogin sets the time when a client's token expires; the zero time means never. expireLogin requires the
// broker's lock.
func (s *Server) expireLogin(l *broker.Login, at time.Time) {
	c := l.Client
	m, known := c.Value.(*member)
	if !known {
		m = new(member)
		c.Value = m
	}
	m.expires = at
	if l.Again && c.Connected() {
		s.cutAtExpiry(c)
	}
}

// cutAtExpiry closes a client's connection without a DISCONNECT when its token expires (protocol.md 7.2). Only
// connected clients may have such a timer: disconnected stops it. cutAtExpiry requires the broker's lock.
func (s *Server) cutAtExpiry(c *broker.Client) {
	s.keepLogin(c)
	if m, ok := c.Value.(*member); ok && !m.expires.IsZero() {
		m.cut = s.broker.At(m.expires, c.Cut)
	}
}

// keepLogin stops the timer that ends a client's connection.
func (s *Server) keepLogin(c *broker.Client) {
	if m, ok := c.Value.(*member); ok {
		s.broker.Cancel(m.cut)
		m.cut = nil
	}
}

func (s *Server) loginEnded(c *broker.Client) bool {
	m, ok := c.Value.(*member)
	return ok && !m.expires.IsZero() && !s.now().Before(m.expires)
}

func (s *Server) refused(c *broker.Client, v broker.Verdict) {
	s.observeConnection(observe.Refuse, c, cmp.Or(v.Text, mqtt.ReasonName("CONNACK", v.Code)))
}

func (s *Server) connected(c *broker.Client) {
	s.observeConnection(observe.Connect, c, "")
	s.cutAtExpiry(c)
	if m, ok := c.Value.(*member); ok {
		m.connected = true
		if s.policy != nil && m.of != s.policy { // the policy changed during the login
			c.Disconnect(broker.AdministrativeAction)
		}
	}
}

// disconnected removes a client's registrations. They end with the connection, even if the session
// continues (protocol.md 2.5).
func (s *Server) disconnected(c *broker.Client) {
	s.observeConnection(observe.Disconnect, c, whyEnded(c.Ended()))
	if release := s.store.Disconnect(c.ID); release != nil {
		s.broker.Later(release)
	}
	delete(s.late, c.ID)
	s.keepLogin(c)
	if m, ok := c.Value.(*member); ok {
		m.connected = false
		s.keepAbsent(m)
	}
}
