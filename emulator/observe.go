package emulator

import (
	"time"

	"github.com/sscli/sscli/client/mqtt"
	"github.com/sscli/sscli/client/wire"
	"github.com/sscli/sscli/emulator/broker"
	"github.com/sscli/sscli/emulator/store"
	"github.com/sscli/sscli/redis"
)

// An Observation is one event, see [Options.Observe]. Its slices are valid until the function
// returns.
type Observation struct {
	// Kind and Time are always set.
	StoreObservation

	Topic string        // of the reply; empty: there is none, or it is not known
	Took  time.Duration // from the arrival of a request to the store's answer; 0: not known

	Redis *redis.Seen // of ObservedRedis; else nil

	Remote string // address of the client, when it connects
	MQTT   byte   // version, when it connects: 5 or 4
	Reason string // why the client was refused, or disconnected
}

// StoreObservation is the part of an Observation that comes from the store. The Observe of
// [EngineOptions] has nothing else.
type StoreObservation = store.Observation

// ObservationKind is what an [Observation] is about.
type ObservationKind = store.ObservationKind

// The kinds of observations.
const (
	ObservedRequest    = store.Requested
	ObservedExpiry     = store.Expired
	ObservedRedis      = ObservationKind("redis")      // a command of a Redis client
	ObservedConnect    = ObservationKind("connect")    // a client was accepted
	ObservedRefusal    = ObservationKind("refusal")    // a client was refused
	ObservedDisconnect = ObservationKind("disconnect") // a client has disconnected
)

// Outcome is what became of a request.
type Outcome = store.Outcome

// The outcomes of requests.
const (
	OutcomeOK      = store.OutcomeOK
	OutcomeNo      = store.OutcomeNo
	OutcomeRefused = store.OutcomeRefused
	OutcomeIgnored = store.OutcomeIgnored
)

// observed reports an observation of the store. The broker is locked.
func (s *Server) observed(so store.Observation) {
	if s.port.collects(so) {
		return
	}
	o := Observation{StoreObservation: so}
	if so.Kind == ObservedRequest {
		if o.Topic = string(s.responseTopic); o.Topic != "" && !s.received.IsZero() {
			o.Took = time.Since(s.received)
		}
	}
	s.opts.Observe(o)
}

// observeIgnored reports a request that gets no reply.
func (s *Server) observeIgnored(r store.Request, why string) {
	if s.opts.Observe == nil {
		return
	}
	s.opts.Observe(Observation{StoreObservation: ignored(r, s.now(), why)})
}

// ignored returns the observation of a request that does not reach the store.
func ignored(r store.Request, at time.Time, why string) StoreObservation {
	o := StoreObservation{
		Kind: ObservedRequest, Time: at, ClientID: r.ClientID, Username: r.Username, Request: &r, Outcome: OutcomeIgnored, Cause: why,
	}
	if words, err := wire.ParseRequest(r.Payload); err == nil {
		o.Words = words
	}
	return o
}

// whyIgnored says why a message to the request topic gets no reply, or "" if it does.
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

func (s *Server) observeConnection(kind ObservationKind, c *broker.Client, reason string) {
	if s.opts.Observe == nil {
		return
	}
	s.opts.Observe(Observation{
		StoreObservation: store.Observation{Kind: kind, Time: s.now(), ClientID: c.ID, Username: c.Username},
		Remote:           c.Remote(), MQTT: c.Version, Reason: reason,
	})
}

// whyEnded returns in words why a connection ended.
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

// whyRefused returns in words why a client was refused.
func whyRefused(v broker.Verdict) string {
	if v.Text != "" {
		return v.Text
	}
	return mqtt.ReasonName("CONNACK", v.Code)
}

// collects adds what the store reports to the observation of the running command of a Redis
// client. It returns false if no command is running.
func (p *redisPort) collects(o store.Observation) bool {
	if p == nil || !p.running {
		return false
	}
	if len(o.Version) > 0 {
		p.seen.Version = append([]byte{}, o.Version...)
	}
	p.seen.Notified = append(p.seen.Notified, o.Notified...)
	return true
}

// command reports a command of a Redis client.
func (p *redisPort) command(seen redis.Seen) {
	if !seen.Locked {
		p.Lock()
		defer p.Unlock()
	}
	o := p.seen
	p.seen = store.Observation{}
	o.Kind, o.Time, o.ClientID, o.Username = ObservedRedis, p.now(), seen.Who.ID, seen.Who.User
	if len(seen.Keys) == 1 && len(o.Version) == 0 && seen.Store {
		if e, found := p.store.Lookup(seen.Keys[0]); found {
			o.Version = e.Version()
		}
	}
	p.observe(Observation{StoreObservation: o, Redis: &seen, Took: seen.Took})
}
