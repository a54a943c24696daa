package emulator

import (
	"time"

	"github.com/sscli/sscli/internal/broker"
	"github.com/sscli/sscli/internal/mqtt"
	"github.com/sscli/sscli/internal/observe"
	"github.com/sscli/sscli/internal/policy"
	"github.com/sscli/sscli/internal/redis"
	"github.com/sscli/sscli/internal/store"
	"github.com/sscli/sscli/internal/wire"
)

// observed passes an event from the store to Options.Observe, unless the event belongs to a running Redis
// command: see collects. The broker must be locked.
func (s *Server) observed(e observe.Event) {
	if s.port.collects(e) {
		return
	}
	if e.Op == observe.Request {
		if e.Topic = string(s.responseTopic); e.Topic != "" && !s.received.IsZero() {
			e.Took = time.Since(s.received)
		}
		e.Rule = s.ruleFor(&e)
	}
	s.opts.Observe(e)
}

// copying returns a function that calls report with a copy of each event; nil if report is nil.
func copying(report func(Event)) func(Event) {
	if report == nil {
		return nil
	}
	return func(e Event) { report(e.Clone()) }
}

// ruleFor returns which rule of a BrokerAuthorization decides about the first key of a request; "" = none does.
func (s *Server) ruleFor(e *observe.Event) string {
	if s.policy == nil || !s.policy.FromResources() || len(e.Keys) == 0 {
		return ""
	}
	return s.rule(s.judged(e.Client, e.User), policy.OnKey(e.Keys[0], e.Access[0] != observe.Reads))
}

// redisRule returns which rule of a BrokerAuthorization decides about the key of a Redis command; "" = none does. A
// command that may write the key, but was refused, may not read it.
func (s *Server) redisRule(c *redis.Caller, e *observe.Event, ran bool) string {
	if !s.policy.FromResources() || !ran || len(e.Keys) != 1 {
		return ""
	}
	m, a := s.redisMember(c), policy.OnKey(e.Keys[0], e.Access[0] != observe.Reads)
	if a.Method == policy.Write && e.Cause == wire.TextNotAuthorized && m.grant.Allowed(a) != nil {
		a.Method = policy.Read
	}
	return s.rule(m, a)
}

func (s *Server) observeIgnored(r store.Request, why string) {
	if s.opts.Observe != nil {
		s.opts.Observe(ignored(r, s.now(), why))
	}
}

// ignored returns the event for a request that does not reach the store.
func ignored(r store.Request, at time.Time, why string) observe.Event {
	e := r.Event(at)
	e.Outcome, e.Cause = observe.Ignored, why
	return e
}

// whyIgnored returns why a message to the request topic is ignored, or "" if the message is valid.
func whyIgnored(qos byte, hasTopic, hasCorrelation bool) string {
	switch {
	case qos != 1:
		return "QoS " + string('0'+qos) + ", not 1"
	case !hasTopic:
		return "no response topic"
	case !hasCorrelation:
		return "no correlation data"
	default:
		return ""
	}
}

func (s *Server) observeConnection(op observe.Op, c *broker.Client, reason string) {
	if s.opts.Observe == nil {
		return
	}
	s.opts.Observe(observe.Event{
		Op: op, Time: s.now(), Client: c.ID, User: c.Username, Minor: op != observe.Refuse,
		Remote: c.Remote(), Protocol: map[byte]string{5: "MQTT 5", 4: "MQTT 3.1.1"}[c.Version], Reason: reason,
	})
}

func whyEnded(e broker.End) string {
	switch {
	case e.Lost && e.Why != "":
		return "connection lost: " + e.Why
	case e.Lost:
		return "cut off"
	case e.Why != "":
		return e.Why
	default:
		return mqtt.ReasonName("DISCONNECT", e.Code)
	}
}

// collects adds a store event to the event of the Redis command that is running. It returns false
// if no command is running.
func (p *redisPort) collects(e observe.Event) bool {
	if p == nil || p.caller == nil {
		return false
	}
	if e.Version != "" {
		p.event.Version = e.Version
	}
	p.event.Notified = append(p.event.Notified, e.Notified...)
	return true
}

// observed reports the event of a Redis command, including the version and the notified clients that
// the store reported for the command. locked reports whether the caller has locked the port.
func (p *redisPort) observed(who *redis.Caller, e observe.Event, ran, locked bool) {
	if !locked {
		p.Lock()
		defer p.Unlock()
	}
	e.Time, e.Version, e.Notified = p.now(), p.event.Version, p.event.Notified
	p.event = observe.Event{}
	if len(e.Keys) == 1 && e.Version == "" {
		if found, ok := p.store.Lookup([]byte(e.Keys[0])); ok {
			e.Version = string(found.Version())
		}
	}
	if p.rule != nil {
		e.Rule = p.rule(who, &e, ran)
	}
	p.observe(e)
}
