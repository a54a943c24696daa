package emulator

import (
	"cmp"
	"errors"
	"time"

	"github.com/sscli/sscli/internal/admission"
	"github.com/sscli/sscli/internal/broker"
	"github.com/sscli/sscli/internal/mqtt"
	"github.com/sscli/sscli/internal/observe"
)

// methodSAT is the authentication method of service-account tokens (protocol.md 7.2).
const methodSAT = "K8S-SAT"

// login accepts or refuses a CONNECT, or an AUTH from a connected client. It runs on the
// connection's goroutine, without the broker's lock.
func (s *Server) login(l *broker.Login) broker.Verdict {
	if l.Again {
		return s.authenticateAgain(l)
	}
	s.broker.Lock()
	refuse := s.refuse
	s.broker.Unlock()
	if refuse != nil {
		if reason := refuse(l.ClientID, l.Username); reason >= broker.UnspecifiedError {
			return broker.Verdict{Code: reason, Text: "refused"}
		}
	}
	name := commonName(l)
	var err error
	if check := s.opts.CheckLogin; check != nil && (l.Method == "" || s.opts.VerifyToken == nil) {
		err = s.logins.Check(l.Client.Remote(), func() bool { return check(l.Username, l.Password) })
	}
	switch {
	case l.Method != "" && l.Method != methodSAT: // MQTT 5, 4.12.0-1
		return broker.Verdict{Code: broker.BadAuthMethod, Text: "the authentication method must be " + methodSAT}
	case s.opts.VerifyToken != nil && l.Method != "":
		return s.verify(l)
	case errors.Is(err, admission.ErrBusy):
		return busy()
	case err != nil, s.opts.CheckLogin == nil && s.opts.VerifyToken != nil:
		return broker.Verdict{Code: broker.BadLogin, Text: "bad username or password"}
	case name != "" && l.Username != "" && l.Username != name:
		return broker.Verdict{Code: broker.BadLogin, Text: "the user name is not the common name of the certificate"}
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
	if s.opts.VerifyToken == nil {
		return broker.Verdict{Username: l.Client.Username}
	}
	return s.verify(l)
}

// verify checks a client's token. The user name in the verdict is the user that the token names or, if the
// token names no user, the common name in the client's certificate.
func (s *Server) verify(l *broker.Login) broker.Verdict {
	var login Login
	var err error
	if throttled := s.logins.Check(l.Client.Remote(), func() bool {
		login, err = s.opts.VerifyToken(l.Data, s.Now())
		return err == nil
	}); errors.Is(throttled, admission.ErrBusy) {
		return busy()
	} else if throttled != nil {
		s.opts.Log.Info("token refused", "client", l.ClientID, "error", err)
		return broker.Verdict{Code: broker.NotAuthorized, Text: "not authorized"}
	}
	s.update(func() { s.expireLogin(l.Client, login.Expires) })
	if login.User == "" {
		login.User = commonName(l)
	}
	return broker.Verdict{Username: login.User}
}

// A loginEnd is the time when a client's token expires, and the timer that then ends the connection. It
// is the Value of the client.
type loginEnd struct {
	at  time.Time
	cut *broker.Timer
}

// expireLogin sets the time when a client's token expires. At that time the server closes the connection
// without a DISCONNECT (protocol.md 7.2). The zero time means never. expireLogin requires the broker's lock.
func (s *Server) expireLogin(c *broker.Client, at time.Time) {
	s.keepLogin(c)
	c.Value = nil
	if !at.IsZero() {
		c.Value = &loginEnd{at, s.broker.At(at, c.Cut)}
	}
}

// keepLogin stops the timer that ends a client's connection.
func (s *Server) keepLogin(c *broker.Client) {
	if end, ok := c.Value.(*loginEnd); ok {
		s.broker.Cancel(end.cut)
	}
}

// loginEnded reports whether a client's token has expired.
func (s *Server) loginEnded(c *broker.Client) bool {
	end, ok := c.Value.(*loginEnd)
	return ok && !s.now().Before(end.at)
}

func (s *Server) refused(c *broker.Client, v broker.Verdict) {
	s.observeConnection(observe.Refuse, c, cmp.Or(v.Text, mqtt.ReasonName("CONNACK", v.Code)))
}

func (s *Server) connected(c *broker.Client) { s.observeConnection(observe.Connect, c, "") }

// disconnected removes a client's registrations. They end with the connection, even if the session
// continues (protocol.md 2.5).
func (s *Server) disconnected(c *broker.Client) {
	s.observeConnection(observe.Disconnect, c, whyEnded(c.Ended()))
	if release := s.store.Disconnect(c.ID); release != nil {
		s.broker.Later(release)
	}
	s.keepLogin(c)
}

// mayReplyTo reports whether the store may publish a client's replies to a topic. Topics that begin
// with $ are refused. If there are rules, the topics of other clients are refused too: otherwise a
// client could make the store publish to topics that the client may not use.
func (s *Server) mayReplyTo(c *broker.Client, topic []byte) bool {
	if len(topic) == 0 {
		return true
	}
	return topic[0] != '$' && (len(s.opts.Rules) == 0 || rules(s.opts.Rules).allowTopic(c.ID, c.Username, string(topic), false))
}

// mayUse reports whether a client may publish to a topic or, if write is false, subscribe to a filter.
func (s *Server) mayUse(c *broker.Client, topic string, write bool) bool {
	return rules(s.opts.Rules).allowTopic(c.ID, c.Username, topic, write) &&
		(s.opts.AuthorizeTopic == nil || s.opts.AuthorizeTopic(c.ID, c.Username, topic, write))
}
