package emulator

import (
	"context"
	"crypto/tls"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unsafe"

	"github.com/sscli/sscli/internal/broker"
	"github.com/sscli/sscli/internal/policy"
	"github.com/sscli/sscli/internal/redis"
	"github.com/sscli/sscli/internal/wire"
)

// A Policy says what clients may do. [ParsePolicy], [ParseRules] and [PolicyFunc] return one; the zero Policy allows
// nothing.
type Policy struct {
	// Attributes are those of the clients, for rules that depend on them; nil = none.
	Attributes Attributes

	rules policy.Policy
}

// Attributes are the attributes of clients: the values by name, by subject. A subject is a user name, or the subject of
// the client's certificate or of one that issued it.
type Attributes map[string]map[string]string

// ParsePolicy parses a BrokerAuthorization, YAML or JSON, as kubectl, az, the REST API or the portal
// show it. file is its name in errors and in the log. Policy.Check returns mistakes. As on the broker, the
// policy applies only to a server with a login. Set Policy.Attributes if rules depend on attributes of clients.
func ParsePolicy(file string, text []byte) (*Policy, error) {
	rules, err := policy.Parse(file, text)
	if err != nil {
		return nil, err
	}
	return &Policy{rules: *rules}, nil
}

// MergePolicies returns a policy that allows what one of several allows. It has no Attributes.
func MergePolicies(all ...*Policy) *Policy {
	var rules []*policy.Policy
	for _, p := range all {
		rules = append(rules, &p.rules)
	}
	return &Policy{rules: *policy.Merge(rules...)}
}

// Check returns what does not work in the policy, or works differently from what it seems, each with its file and line.
// It may take seconds for many rules; ctx ends it.
func (p *Policy) Check(ctx context.Context) (mistakes []error) {
	for _, f := range p.rules.Check(ctx, policy.Warning) {
		mistakes = append(mistakes, fmt.Errorf("%s:%d: %s (%s)", f.File, f.Line, f.Message, f.ID))
	}
	return mistakes
}

// AllowsKey reports whether a client may read a key or, if write is set, may write it. With a nil Policy it may.
func (p *Policy) AllowsKey(clientID, username, key string, write bool) bool {
	return p == nil || p.engine().AllowsKey(clientID, username, key, write)
}

// engine returns the policy that decides, with the attributes; nil if p is nil.
func (p *Policy) engine() *policy.Policy {
	if p == nil {
		return nil
	}
	rules := p.rules
	rules.Attributes = policy.Attributes(p.Attributes)
	return &rules
}

// ParseAttributes parses the attributes of clients for Policy.Attributes, YAML or JSON: a mapping of each
// subject to its attributes, annotated ServiceAccounts or a BrokerAuthentication. file is the name in errors.
func ParseAttributes(file string, text []byte) (Attributes, error) {
	attributes, err := policy.ParseAttributes(file, text)
	return Attributes(attributes), err
}

// ParseRules returns the policy of rules in the short form USER:METHOD:KEYS, where METHOD is Read, Write or
// ReadWrite, and USER may be * for every client. USER and KEYS may contain colons, as the names of service
// accounts do. Everybody may connect and use the topics of applications. An error is a *[RuleError].
func ParseRules(rules ...string) (*Policy, error) {
	var all []policy.Short
	for _, text := range rules {
		r, err := policy.ParseShort(text)
		if err != nil {
			return nil, &RuleError{text, err}
		}
		all = append(all, r)
	}
	return &Policy{rules: *policy.FromShort(all)}, nil
}

// An Access is something that a client wants to do.
type Access struct {
	ClientID, Username string
	Method             Method // Read, Write, Publish or Subscribe
	On                 string // the key, the topic or, with Subscribe, the filter
}

// A Method is a kind of access.
type Method string

// The methods of an [Access].
const (
	Read      Method = "Read"
	Write     Method = "Write"
	Publish   Method = "Publish"
	Subscribe Method = "Subscribe"
)

// PolicyFunc returns a policy that asks a function. All clients may connect. The function must not call the
// server. The server asks for each access to a key, but may remember answers about topics.
func PolicyFunc(allow func(Access) bool) *Policy {
	return &Policy{rules: *policy.FromFunc(func(who policy.Principal, a policy.Action) bool {
		return allow(Access{who.ClientID, who.Username, Method(a.Method.String()), a.On})
	})}
}

// A RuleError reports a rule of [ParseRules] that is invalid or can never apply.
type RuleError struct {
	Rule string
	Err  error
}

func (e *RuleError) Error() string { return fmt.Sprintf("rule %q: %v", e.Rule, e.Err) }
func (e *RuleError) Unwrap() error { return e.Err }

// hasLogin reports whether clients have to log in, or can log in with a certificate.
func (o *Options) hasLogin() bool {
	return o.CheckLogin != nil || o.CheckToken != nil || o.TLS != nil && o.TLS.ClientAuth >= tls.VerifyClientCertIfGiven
}

// checkProvable returns an error if a rule in the short form can never apply, because no client can log in
// with the user name that the rule requires.
func (o *Options) checkProvable() error {
	if o.Policy == nil || o.Policy.rules.FromResources() || o.hasLogin() {
		return nil
	}
	for _, r := range o.Policy.rules.Rules {
		if len(r.Usernames) > 0 {
			return &RuleError{r.Name, fmt.Errorf("user %q can never log in: no login with user names is configured", r.Usernames[0])}
		}
		if slices.ContainsFunc(r.Entries, func(e *policy.Entry) bool { return strings.Contains(e.Text, "{") }) {
			return &RuleError{r.Name, errors.New("the braces need a user name, and no login with user names is configured")}
		}
	}
	return nil
}

// policy returns the policy that applies, or nil if all clients may do everything.
func (o *Options) policy() *policy.Policy {
	if o.Policy != nil && o.Policy.rules.FromResources() && !o.hasLogin() {
		return nil
	}
	return o.Policy.engine()
}

// A member is what the server knows of a client, connected or away, for its rules. The broker's lock guards it.
type member struct {
	expires   time.Time     // when the client's token expires; zero = never
	cut       *broker.Timer // closes the connection then; nil = never
	connected bool
	subjects  []string // of its certificate and of the certificate's issuers
	who       policy.Principal

	of       *policy.Policy // the policy that the fields below are from; nil = none
	grant    *policy.Client
	connects bool   // the client may connect; if not, it may do nothing
	requests bool   // the client may send requests to the store
	reply    string // the last response topic, unless it is longer than maxReply
	replies  bool   // the store may reply to it
}

const maxReply = 256

// apply sets the rules for a client, which a policy grants.
func (m *member) apply(p *policy.Policy, grant *policy.Client) {
	m.of, m.grant, m.reply = p, grant, ""
	m.connects = grant.Allowed(policy.Action{Method: policy.Connect}) != nil
	m.requests = grant.Allowed(policy.Action{Method: policy.Publish, On: wire.RequestTopic}) != nil
}

// memory returns the estimated memory of a member, in bytes.
func (m *member) memory() int {
	n := int(unsafe.Sizeof(*m)) + maxReply + m.grant.Memory()
	for _, text := range m.subjects {
		n += int(unsafe.Sizeof(text)) + len(text)
	}
	return n
}

// forget drops the rules of a client that is away, whose memory is not charged.
func (m *member) forget() {
	if m != nil && !m.connected {
		m.of, m.grant = nil, nil
	}
}

// member returns what the server knows of a client, connected or away.
func (s *Server) member(c *broker.Identity) *member {
	m, ok := c.Value.(*member)
	if !ok {
		m = new(member)
		c.Value = m
	}
	if m.of != s.policy {
		m.who = principal(s.policy, c.ID, c.Username, m.subjects)
		m.apply(s.policy, s.policy.For(m.who))
		s.keepAbsent(m)
	}
	return m
}

// keepAbsent keeps the rules of one client that is not connected, until they are needed for another.
func (s *Server) keepAbsent(m *member) {
	if !m.connected && s.absent != m {
		s.absent.forget()
		s.absent = m
	}
}

// authorizeLogin decides whether a client that has logged in may connect. It runs without the broker's lock.
func (s *Server) authorizeLogin(l *broker.Login, v broker.Verdict) broker.Verdict {
	var names []pkix.Name
	if l.TLS != nil && len(l.TLS.VerifiedChains) > 0 {
		for _, certificate := range l.TLS.VerifiedChains[0] {
			names = append(names, certificate.Subject)
		}
	}
	subjects := subjectTexts(names)
	who, p, grant := s.rulesFor(l.ClientID, v.Username, subjects)
	if p == nil {
		return v
	}
	s.broker.Lock()
	defer s.broker.Unlock()
	m, ok := l.Client.Value.(*member)
	if !ok {
		m = new(member)
		l.Client.Value = m
	}
	m.who, m.subjects = who, subjects
	m.apply(p, grant)
	if !m.connects {
		s.logRefusal(l.Client.Identity, m, policy.Action{Method: policy.Connect})
		return broker.Verdict{Code: broker.NotAuthorized, Text: "not authorized"}
	}
	v.Memory = m.memory()
	return v
}

// rulesFor finds the rules for a client that logs in, without the broker's lock: to compile their patterns may take
// long. p is nil if no rules apply.
func (s *Server) rulesFor(clientID, username string, subjects []string) (who policy.Principal, p *policy.Policy, grant *policy.Client) {
	s.broker.Lock()
	p = s.policy
	s.broker.Unlock()
	if p == nil {
		return who, nil, nil
	}
	who = principal(p, clientID, username, subjects)
	return who, p, p.For(who)
}

// principal describes a client. subjects are the subjects of its verified certificate and of the certificate's issuers.
func principal(p *policy.Policy, clientID, username string, subjects []string) policy.Principal {
	return policy.Principal{ClientID: clientID, Username: username, Attributes: p.Attributes.Of(username, subjects)}
}

func subjectTexts(names []pkix.Name) (texts []string) {
	for _, name := range names {
		texts = append(texts, policy.Subject(name))
	}
	return texts
}

// redisLoggedIn finds the rules for a Redis client, and reports whether it may connect.
func (s *Server) redisLoggedIn(c *redis.Caller) bool {
	who, p, grant := s.rulesFor(c.ID, c.User, subjectTexts(c.Subjects))
	if p == nil {
		return true
	}
	m := &member{who: who, connected: true}
	m.apply(p, grant)
	c.Value = m
	c.Memory.Store(int64(m.memory()))
	return m.connects
}

// redisMember returns what the server knows of a Redis client. If the policy has changed since the login, the port
// charges the memory of the new rules after the command.
func (s *Server) redisMember(c *redis.Caller) *member {
	m, ok := c.Value.(*member)
	if !ok || m.of != s.policy {
		m = &member{who: principal(s.policy, c.ID, c.User, subjectTexts(c.Subjects)), connected: true}
		m.apply(s.policy, s.policy.For(m.who))
		c.Value = m
		c.Memory.Store(int64(m.memory()))
	}
	return m
}

// judged returns what the server knows of the client whose access to a key is judged. A client that is not connected
// has the attributes of its user.
func (s *Server) judged(clientID, username string) *member {
	if s.port != nil && s.port.caller != nil {
		return s.redisMember(s.port.caller)
	}
	if c := s.broker.Client(clientID); c != nil && c.Username == username {
		return s.member(c.Identity)
	}
	m := s.absent
	if m == nil || m.of != s.policy || m.who.ClientID != clientID || m.who.Username != username {
		m = &member{who: principal(s.policy, clientID, username, nil)}
		m.apply(s.policy, s.policy.For(m.who))
		s.keepAbsent(m)
	}
	return m
}

// mayUseKey reports whether a client may read a key or, if write is set, may write it.
func (s *Server) mayUseKey(clientID, username, key string, write bool) bool {
	if s.loading {
		return true
	}
	return s.judged(clientID, username).grant.Allowed(policy.OnKey(key, write)) != nil
}

// redisMayUse reports whether a Redis client may read a key or, if write is set, may write it. A nil key stands for
// reading and writing all keys.
func (s *Server) redisMayUse(c *redis.Caller, key []byte, write bool) bool {
	m := s.redisMember(c)
	if key == nil {
		return m.connects && m.grant.AllowsAll()
	}
	return m.connects && m.grant.Allowed(policy.OnKey(string(key), write)) != nil
}

// mayUse reports whether a client, connected or away, may publish to a topic or, if write is false, subscribe to a
// filter. A client that may not connect may do nothing.
func (s *Server) mayUse(c *broker.Identity, topic string, write bool) bool {
	m, a := s.member(c), policy.Action{Method: policy.Subscribe, On: topic}
	if write {
		a.Method = policy.Publish
	}
	allowed := m.connects && (write && topic == wire.RequestTopic && m.requests || m.grant.Allowed(a) != nil)
	if !allowed {
		s.logRefusal(c, m, a)
	}
	return allowed
}

// mayReplyTo reports whether the store may publish a client's replies to a topic. Topics that begin
// with $ are refused. If there are rules, so are topics that the client may not use itself, see
// [policy.Client.MayReplyTo].
func (s *Server) mayReplyTo(c *broker.Client, topic []byte) bool {
	if len(topic) == 0 || topic[0] == '$' || s.policy == nil {
		return len(topic) == 0 || topic[0] != '$'
	}
	m := s.member(c.Identity)
	if m.reply == string(topic) {
		return m.replies
	}
	replies := m.connects && m.grant.MayReplyTo(string(topic))
	if len(topic) <= maxReply {
		m.reply, m.replies = string(topic), replies
	}
	return replies
}

// maxExplaining bounds the time that the server, which is locked meanwhile, spends on explaining refusals, for each second.
const maxExplaining = 50 * time.Millisecond

// explanations limits how many refusals the server explains: with many rules, an explanation takes far longer than a refusal.
type explanations struct {
	second time.Time     // when the current second began
	spent  time.Duration // on explanations in this second
	who    *broker.Identity
	read   time.Time // when the packet of who was read whose refusal was explained last
	more   int       // refusals that were not logged, see logRefusal
}

// logRefusal logs which rule of a BrokerAuthorization came nearest to allowing an action, if requests are logged: for one
// refusal of a packet. The others are counted.
func (s *Server) logRefusal(id *broker.Identity, m *member, a policy.Action) {
	if s.opts.Observe == nil || !s.policy.FromResources() {
		return
	}
	x, read := &s.explained, time.Time{}
	if c := s.broker.Client(id.ID); c != nil && c.Identity == id {
		read = c.LastRead()
	}
	rule := ""
	if x.who != id || !x.read.Equal(read) || read.IsZero() {
		rule = s.rule(m, a)
	}
	if rule == "" {
		if x.more++; x.more == 1 {
			s.broker.At(s.broker.Now().Add(time.Second), func() {
				s.opts.Log.Info("more was not authorized, without explanation", "times", x.more)
				x.more = 0
			})
		}
		return
	}
	x.who, x.read = id, read
	s.opts.Log.Info("not authorized", "client", m.who.ClientID, "action", strings.TrimSpace(a.Method.String()+" "+a.On), "rule", rule)
}

// rule returns which rule decides about an action, or comes nearest, as text. It returns "" if too much was explained in this
// second.
func (s *Server) rule(m *member, a policy.Action) string {
	if entry := m.grant.Allowed(a); entry != nil && m.connects {
		return s.policy.Where(entry) + ": " + entry.String()
	}
	x, began := &s.explained, time.Now()
	if began.Sub(x.second) >= time.Second {
		x.second, x.spent = began, 0
	}
	if x.spent > maxExplaining {
		return ""
	}
	defer func() { x.spent += time.Since(began) }()
	if !m.connects {
		a = policy.Action{Method: policy.Connect}
	}
	switch d := s.policy.Decide(m.who, a); {
	case d.Entry != nil:
		return "nearest: " + s.policy.Where(d.Entry) + ": " + d.Lacks
	case d.Rule != nil:
		return "nearest: " + s.policy.WhereRule(d.Rule) + ": " + d.Lacks
	default:
		return d.Lacks
	}
}

// stillMay reports whether what a client was allowed to do under an earlier policy is still allowed: to send requests
// whose replies go to a topic.
func (s *Server) stillMay(c *broker.Client, earlier *policy.Policy, topic []byte) bool {
	return s.policy == earlier || s.member(c.Identity).requests && s.mayReplyTo(c, topic)
}

// SetPolicy replaces Options.Policy and, as the broker does, disconnects all clients, also those of Redis. What their
// sessions hold is asked of the new policy: subscriptions, queued messages, wills. SetPolicy has no effect
// if p is nil, or if Options.Policy is nil or does not apply. A [PolicyFunc] that always returns true lifts all rules.
func (s *Server) SetPolicy(p *Policy) {
	s.update(func() {
		if s.policy == nil || p == nil {
			return
		}
		s.policy = p.engine()
		s.broker.Reauthorize()
		s.broker.Clients(func(c *broker.Client) { c.Disconnect(broker.AdministrativeAction) })
		if s.port != nil {
			s.port.server.Disconnect()
		}
	})
}
