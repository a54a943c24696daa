package emulator

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sscli/sscli/internal/broker"
	"github.com/sscli/sscli/internal/glob"
	"github.com/sscli/sscli/internal/redis"
	"github.com/sscli/sscli/internal/wire"
)

// A Fault lets something go wrong, once or several times: see [Server.AddFault]. It is a [Server.Intercept] without a
// function, which also reaches Redis clients and counts how often it happened. All fields are texts, as in the JSON of
// the control port (sscli serve --control): durations such as 5s, on the store's clock, and reason codes such as 0x97.
//
// Those of requests may be combined: each says whether it reaches Redis clients.
type Fault struct {
	// What it happens to; an empty field fits all. Verb is a verb of the store or the name of a Redis command; without
	// one, Redis commands that do not use keys are left alone. Key is a pattern, as in SCAN. Client is an MQTT client id,
	// or the name that a Redis client has set, or its id, such as redis-7.
	Verb   string `json:"verb,omitempty"`
	Key    string `json:"key,omitempty"`
	Client string `json:"client,omitempty"`
	Count  int    `json:"count"` // how often; 0 = until it is removed

	Drop    string `json:"drop,omitempty"`    // lost: the "request", the "reply" (both reach Redis) or the "notification"
	Repeat  string `json:"repeat,omitempty"`  // sent twice: the "reply" (reaches Redis) or the "notification"
	Reorder string `json:"reorder,omitempty"` // sent after the watcher's next one: the "notification"

	Error      string `json:"error,omitempty"`     // the store's answer: a text, or a kind such as quota, see client.ErrorKind; reaches Redis
	Cut        string `json:"cut,omitempty"`       // the connection ends "before" or "after" the request is processed; reaches Redis
	CutBytes   int    `json:"cut_bytes,omitempty"` // the connection ends when so many more bytes were sent; reaches Redis
	Puback     string `json:"puback,omitempty"`
	Disconnect string `json:"disconnect,omitempty"`
	Connack    string `json:"connack,omitempty"` // refuses connections; not with other fields but Client and Count

	Delay             string `json:"delay,omitempty"`       // before the request is processed; reaches Redis
	DelayReply        string `json:"delay_reply,omitempty"` // reaches Redis
	DelayNotification string `json:"delay_notification,omitempty"`
	Stall             string `json:"stall,omitempty"` // the server reads nothing more from the client; reaches Redis
}

// A FaultState is a fault that was added to a server.
type FaultState struct {
	ID int `json:"id"` // from 1, in the order in which the faults were added
	Fault
	Fired   int      `json:"fired"`   // how often it happened
	Over    bool     `json:"over"`    // it will not happen again
	Reaches []string `json:"reaches"` // the kinds of clients to which it can happen: mqtt, redis
}

// MaxFaults is the maximum number of faults of a server, including those that are over.
const MaxFaults = 1000

const (
	maxFaultKey   = 1024                      // bytes, as in SCAN: each request of a client is matched
	maxFaultDelay = 10 * 365 * 24 * time.Hour // a Duration holds 292 years

	reachesMQTT, reachesRedis = "mqtt", "redis"
)

// A fault is a FaultState with what it does. Only one of request, notification and connack is set.
type fault struct {
	FaultState
	pattern      *glob.Pattern
	isRequest    bool
	request      Action
	notification NotificationAction
	connack      byte
}

// AddFault adds a fault. If several faults fit a request, the first that was added happens, and no function of
// [Server.Intercept] is called. The error names the field that is invalid, as JSON does.
func (s *Server) AddFault(of Fault) (FaultState, error) {
	of.Verb = strings.ToUpper(of.Verb)
	f := &fault{FaultState: FaultState{Fault: of}}
	err := f.parse()
	if err == nil {
		err = f.check(s.opts.Redis != "")
	}
	if err != nil {
		return FaultState{}, err
	}
	s.lock()
	defer s.broker.Unlock()
	if len(s.faults) >= MaxFaults {
		return FaultState{}, fmt.Errorf("there are %d faults: remove them first", MaxFaults)
	}
	s.faults = append(s.faults, f)
	f.ID = len(s.faults)
	if s.port != nil {
		s.port.server.Intercept(s.redisFault)
	}
	return f.FaultState, nil
}

func (f *fault) parse() (err error) {
	r, n := &f.request, &f.notification
	r.CutBytes, r.Error = f.CutBytes, cmp.Or(wire.ErrorKind(f.Error).Text(), f.Error)
	for _, word := range []struct {
		name, text, expected string
		sets                 map[string]*bool
	}{
		{"drop", f.Drop, "request, reply or notification", map[string]*bool{"request": &r.Drop, "reply": &r.DropReply, "notification": &n.Drop}},
		{"repeat", f.Repeat, "reply or notification", map[string]*bool{"reply": &r.Duplicate, "notification": &n.Duplicate}},
		{"reorder", f.Reorder, "notification", map[string]*bool{"notification": &n.Reorder}},
		{"cut", f.Cut, "before or after", map[string]*bool{"before": &r.Cut, "after": &r.CutAfter}},
	} {
		if at := word.sets[word.text]; at != nil {
			*at = true
		} else if word.text != "" {
			return fmt.Errorf("%s: %.32q: expected %s", word.name, word.text, word.expected)
		}
	}
	for _, d := range []struct {
		name, text string
		into       *time.Duration
	}{{"delay", f.Delay, &r.Delay}, {"delay_reply", f.DelayReply, &r.DelayReply}, {"delay_notification", f.DelayNotification, &n.Delay}, {"stall", f.Stall, &r.Stall}} {
		if d.text == "" {
			continue
		}
		if *d.into, err = time.ParseDuration(d.text); err != nil || *d.into <= 0 || *d.into > maxFaultDelay {
			return fmt.Errorf("%s: %.32q: expected a duration such as 500ms or 5s, of at most 10 years", d.name, d.text)
		}
	}
	for _, c := range []struct {
		name, text string
		into       *byte
	}{{"puback", f.Puback, &r.Refuse}, {"disconnect", f.Disconnect, &r.Disconnect}, {"connack", f.Connack, &f.connack}} {
		if c.text == "" {
			continue
		}
		code, err := strconv.ParseUint(c.text, 0, 8)
		if err != nil || code < uint64(broker.UnspecifiedError) && (c.name != "puback" || code != broker.NoMatchingSubscriber) {
			return fmt.Errorf("%s: %.32q: expected a reason code of 0x80 or more", c.name, c.text)
		}
		*c.into = byte(code)
	}
	return nil
}

// check checks to what a fault happens, and sets whom it reaches.
func (f *fault) check(hasRedis bool) error {
	isMQTT := f.Verb == "" || slices.Contains([]string{wire.VerbGet, wire.VerbSet, wire.VerbDel, wire.VerbVDel, wire.VerbKeyNotify, wire.VerbScan}, f.Verb)
	isRedis := f.Verb == "" || redis.HasCommand(f.Verb)
	onlyMQTT := f.Puback + f.Disconnect
	forRedis := redisAction(f.request) != redis.Fault{}
	isNotification := f.notification != NotificationAction{}
	f.isRequest = forRedis || onlyMQTT != ""
	kinds := 0
	for _, is := range []bool{f.isRequest, isNotification, f.connack != 0} {
		if is {
			kinds++
		}
	}
	var ok bool
	f.pattern, ok = glob.Parse(f.Key)
	switch {
	case f.Count < 0:
		return errors.New("count: must not be negative")
	case f.CutBytes < 0:
		return errors.New("cut_bytes: must not be negative")
	case kinds == 0:
		return errors.New("nothing to do: expected drop, error, cut, delay or another member that says what happens")
	case kinds > 1:
		return errors.New("only one of a fault of requests, of notifications and of connections")
	case !isMQTT && !isRedis:
		return fmt.Errorf("verb: %.32q: neither a verb of the store nor a command for Redis clients", f.Verb)
	case !f.isRequest && f.Verb != "":
		return errors.New("verb: only a fault of requests has one")
	case f.connack != 0 && f.Key != "":
		return errors.New("key: a fault of connections has none")
	case len(f.Key) > maxFaultKey:
		return fmt.Errorf("key: longer than %d bytes", maxFaultKey)
	case !ok:
		return fmt.Errorf("key: %q: not a pattern", f.Key)
	}
	if isMQTT {
		f.Reaches = append(f.Reaches, reachesMQTT)
	}
	if isRedis && hasRedis && forRedis && onlyMQTT == "" {
		f.Reaches = append(f.Reaches, reachesRedis)
	}
	if len(f.Reaches) == 0 {
		return fmt.Errorf("verb: %s: no port here has this fault of this command", f.Verb)
	}
	return nil
}

// Faults returns all faults that were added and not removed, including those that are over, in the order in which they
// were added.
func (s *Server) Faults() []FaultState {
	s.lock()
	defer s.broker.Unlock()
	all := make([]FaultState, len(s.faults))
	for i, f := range s.faults {
		all[i] = f.FaultState
	}
	return all
}

// RemoveFaults removes all faults.
func (s *Server) RemoveFaults() { s.update(s.removeFaults) }

func (s *Server) removeFaults() {
	s.faults = nil
	if s.port != nil {
		s.port.server.Intercept(nil)
	}
}

// takeFault returns the first fault that is not over, reaches these clients, and for which fits returns true, and
// counts that it happens. If there is none, it returns a fault that does nothing, and false. The broker must be locked.
func (s *Server) takeFault(reaches string, clients []string, fits func(*fault) bool) (*fault, bool) {
	for _, f := range s.faults {
		if f.Over || !slices.Contains(f.Reaches, reaches) || f.Client != "" && !slices.Contains(clients, f.Client) || !fits(f) {
			continue
		}
		f.Fired++
		f.Over = f.Fired == f.Count
		return f, true
	}
	return new(fault), false
}

func (s *Server) requestFault(clientID string, payload []byte) (Action, bool) {
	if len(s.faults) == 0 {
		return Action{}, false
	}
	verb, key := word(payload, 0), word(payload, 1)
	f, found := s.takeFault(reachesMQTT, []string{clientID}, func(f *fault) bool {
		return f.isRequest && (f.Verb == "" || strings.EqualFold(f.Verb, verb)) && (f.Key == "" || f.pattern.Match([]byte(key)))
	})
	return f.request, found
}

// notificationFault returns the action of a fault for a notification, or else what the function of
// InterceptNotifications decides.
func (s *Server) notificationFault(n Notification) NotificationAction {
	f, found := s.takeFault(reachesMQTT, []string{n.ClientID}, func(f *fault) bool {
		return !f.isRequest && f.connack == 0 && (f.Key == "" || f.pattern.Match([]byte(n.Key)))
	})
	if !found && s.onNotify != nil {
		return s.onNotify(n)
	}
	return f.notification
}

// connectFault returns the reason code of a fault for a CONNECT, or 0.
func (s *Server) connectFault(clientID string) byte {
	f, _ := s.takeFault(reachesMQTT, []string{clientID}, func(f *fault) bool { return f.connack != 0 })
	return f.connack
}

func (s *Server) redisFault(q redis.Intercepted) redis.Fault {
	s.lock()
	defer s.broker.Unlock()
	f, _ := s.takeFault(reachesRedis, []string{q.Client.ID, q.Name}, func(f *fault) bool {
		if f.Verb == "" && !q.UsesKeys || f.Verb != "" && !strings.EqualFold(f.Verb, q.Verb) {
			return false
		}
		for key := range q.Keys {
			if f.pattern.Match(key) {
				return true
			}
		}
		return f.Key == ""
	})
	return redisAction(f.request)
}

// redisAction returns what a Redis command knows of an Action.
func redisAction(a Action) redis.Fault {
	return redis.Fault{
		Drop: a.Drop, DropReply: a.DropReply, Duplicate: a.Duplicate, Cut: a.Cut, CutAfter: a.CutAfter, CutBytes: a.CutBytes,
		Error: a.Error, Delay: a.Delay, DelayReply: a.DelayReply, Stall: a.Stall,
	}
}
