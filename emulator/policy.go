package emulator

import (
	"crypto/tls"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/sscli/sscli/internal/broker"
	"github.com/sscli/sscli/internal/policy"
	"github.com/sscli/sscli/internal/wire"
)

// A Policy is the rules of a BrokerAuthorization: see [ParsePolicy].
type Policy = policy.Policy

// A Rule is a rule in the short form USER:METHOD:KEYS: see [ParseRule].
type Rule = policy.Short

// ParsePolicy parses a BrokerAuthorization, YAML or JSON, as kubectl, az, the REST API or the portal
// show it. file is its name in errors and in the log. Policy.Check returns mistakes.
func ParsePolicy(file string, text []byte) (*Policy, error) { return policy.Parse(file, text) }

// ParseRule parses USER:METHOD:KEYS, where METHOD is Read, Write or ReadWrite. USER may contain
// colons, as the names of service accounts do, and so may KEYS.
func ParseRule(text string) (Rule, error) { return policy.ParseShort(text) }

// A RuleError reports a rule that is invalid or can never apply.
type RuleError struct {
	Rule Rule
	Err  error
}

func (e *RuleError) Error() string { return fmt.Sprintf("rule %q: %v", e.Rule, e.Err) }
func (e *RuleError) Unwrap() error { return e.Err }

// takesCertificates reports whether clients can log in with a certificate.
func (o *Options) takesCertificates() bool {
	return o.TLS != nil && o.TLS.ClientAuth >= tls.VerifyClientCertIfGiven
}

// checkProvable returns an error if a rule can never apply, because no client can log in with the user
// name that the rule requires.
func (o *Options) checkProvable(r Rule) error {
	_, known := o.Users[r.User]
	switch {
	case o.CheckToken != nil, r.User == policy.Anybody && !strings.Contains(r.Keys, "{"):
		return nil
	case o.Users != nil: // then a certificate alone is not enough to log in
		if r.User != policy.Anybody && !known {
			return fmt.Errorf("user %q can never log in: not in the list of users", r.User)
		}
		return nil
	case o.takesCertificates(), o.CheckLogin != nil:
		return nil
	case r.User == policy.Anybody:
		return errors.New("the braces need a user name, and no login with user names is configured")
	}
	return fmt.Errorf("user %q can never log in: no login with user names is configured", r.User)
}

// policy returns the rules that apply, or nil if all clients may do everything. As on the broker,
// Policy applies only if there is a login.
func (o *Options) policy() *Policy {
	switch {
	case len(o.Rules) > 0:
		return policy.FromShort(o.Rules)
	case o.CheckLogin != nil || o.CheckToken != nil || o.takesCertificates():
		return o.Policy
	}
	return nil
}

// A member is what the server knows of a client, for its rules. The broker's lock guards it.
type member struct {
	expires time.Time     // when the client's token expires; zero = never
	cut     *broker.Timer // closes the connection then; nil = never
	who     policy.Principal

	of       *Policy // the policy that the fields below are from
	admitted *Policy // the policy that allowed Connect
	grant    *policy.Client
	requests bool   // the client may send requests to the store
	reply    string // the last response topic
	replies  bool   // the store may reply to it
}

// member returns what the server knows of a client.
func (s *Server) member(c *broker.Client) *member {
	m, ok := c.Value.(*member)
	if !ok {
		m = &member{who: policy.Principal{ClientID: c.ID, Username: c.Username}}
		c.Value = m
	}
	if m.of != s.policy || m.grant == nil && s.policy != nil {
		m.of, m.grant, m.reply = s.policy, s.policy.For(m.who), ""
		m.requests = m.grant.Allowed(policy.Action{Method: policy.Publish, On: wire.RequestTopic}) != nil
	}
	return m
}

// authorizeLogin decides whether a client that has logged in may connect. It runs without the broker's lock.
func (s *Server) authorizeLogin(l *broker.Login, v broker.Verdict) broker.Verdict {
	var subjects []string
	if l.TLS != nil && len(l.TLS.VerifiedChains) > 0 {
		for _, certificate := range l.TLS.VerifiedChains[0] {
			subjects = append(subjects, certificate.Subject.String())
		}
	}
	who := s.principal(l.ClientID, v.Username, subjects)
	s.broker.Lock()
	defer s.broker.Unlock()
	if s.policy == nil {
		return v
	}
	connect := policy.Action{Method: policy.Connect}
	if s.policy.For(who).Allowed(connect) == nil {
		s.logRefusal(who, connect)
		return broker.Verdict{Code: broker.NotAuthorized, Text: "not authorized"}
	}
	m, ok := l.Client.Value.(*member)
	if !ok {
		m = &member{}
		l.Client.Value = m
	}
	m.who, m.of, m.admitted, m.grant = who, nil, s.policy, nil
	return v
}

func (s *Server) principal(clientID, username string, subjects []string) policy.Principal {
	who := policy.Principal{ClientID: clientID, Username: username}
	if s.opts.Attributes != nil {
		who.Attributes = s.opts.Attributes(username, subjects)
	}
	return who
}

// grant returns what a client may do. A client that is not connected to the broker, such as a Redis client, has
// the attributes of its user.
func (s *Server) grant(clientID, username string) (policy.Principal, *policy.Client) {
	if c := s.broker.Client(clientID); c != nil && c.Username == username {
		m := s.member(c)
		return m.who, m.grant
	}
	const most = 4096
	id := [2]string{clientID, username}
	m := s.others[id]
	if m == nil {
		if len(s.others) >= most {
			clear(s.others)
		}
		m = &member{who: s.principal(clientID, username, nil)}
		m.grant = s.policy.For(m.who)
		s.others[id] = m
	}
	return m.who, m.grant
}

func keyAction(key string, write bool) policy.Action {
	if write {
		return policy.Action{Method: policy.Write, On: key}
	}
	return policy.Action{Method: policy.Read, On: key}
}

// mayUseKey reports whether a client may read a key or, if write is set, may write it.
func (s *Server) mayUseKey(clientID, username, key string, write bool) bool {
	if s.loading {
		return true
	}
	if s.policy != nil {
		if _, grant := s.grant(clientID, username); grant.Allowed(keyAction(key, write)) == nil {
			return false
		}
	}
	return s.opts.Authorize == nil || s.opts.Authorize(clientID, username, key, write)
}

// mayUseAll reports whether a client may use all keys.
func (s *Server) mayUseAll(clientID, username string) bool {
	if s.policy == nil {
		return true
	}
	_, grant := s.grant(clientID, username)
	return grant.AllowsAll()
}

// mayUse reports whether a client may publish to a topic or, if write is false, subscribe to a filter.
func (s *Server) mayUse(c *broker.Client, topic string, write bool) bool {
	if s.policy != nil {
		m, a := s.member(c), policy.Action{Method: policy.Subscribe, On: topic}
		if write {
			a.Method = policy.Publish
		}
		if allowed := write && topic == wire.RequestTopic && m.requests || m.grant.Allowed(a) != nil; !allowed {
			s.logRefusal(m.who, a)
			return false
		}
	}
	return s.opts.AuthorizeTopic == nil || s.opts.AuthorizeTopic(c.ID, c.Username, topic, write)
}

// mayReplyTo reports whether the store may publish a client's replies to a topic. Topics that begin
// with $ are refused. If there are rules, so are topics that the client may not subscribe to: otherwise a
// client could make the store publish to topics that the client may not use.
func (s *Server) mayReplyTo(c *broker.Client, topic []byte) bool {
	if len(topic) == 0 || topic[0] == '$' || s.policy == nil {
		return len(topic) == 0 || topic[0] != '$'
	}
	m := s.member(c)
	if m.reply != string(topic) {
		m.reply = string(topic)
		m.replies = m.grant.Allowed(policy.Action{Method: policy.Subscribe, On: m.reply}) != nil
	}
	return m.replies
}

// logRefusal logs which rule came nearest to allowing an action, if requests are logged.
func (s *Server) logRefusal(who policy.Principal, a policy.Action) {
	if s.opts.Observe != nil && s.opts.Policy != nil {
		s.opts.Log.Info("not authorized", "client", who.ClientID, "action", strings.TrimSpace(a.Method.String()+" "+a.On), "rule", s.rule(who, a))
	}
}

// rule returns which rule decides about an action, or comes nearest, as text.
func (s *Server) rule(who policy.Principal, a policy.Action) string {
	switch d := s.policy.Decide(who, a); {
	case d.Allowed:
		return s.policy.Where(d.Entry) + ": " + d.Entry.String()
	case d.Entry != nil:
		return "nearest: " + s.policy.Where(d.Entry) + ": " + d.Lacks
	case d.Rule != nil:
		return "nearest: " + s.policy.WhereRule(d.Rule) + ": " + d.Lacks
	default:
		return d.Lacks
	}
}

// SetPolicy replaces Options.Policy and, as the broker does, disconnects all MQTT clients. It has no effect
// if the server has no login.
func (s *Server) SetPolicy(p *Policy) {
	s.update(func() {
		if s.policy == nil || p == nil {
			return
		}
		s.policy = p
		clear(s.others)
		s.broker.Clients(func(c *broker.Client) { c.Disconnect(broker.AdministrativeAction) })
	})
}
