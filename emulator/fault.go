package emulator

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/sscli/sscli/internal/broker"
	"github.com/sscli/sscli/internal/glob"
	"github.com/sscli/sscli/internal/redis"
	"github.com/sscli/sscli/internal/wire"
)

// A Fault lets something go wrong, once or several times: see [Server.AddFault]. It is a declarative [Server.Intercept],
// which also reaches Redis clients and counts how often it happened.
type Fault struct {
	// What it happens to; an empty field fits all. Verb is a verb of the store or the name of a Redis command; without
	// one, Redis commands that do not use keys are left alone. Key is a pattern, as in SCAN. Client is an MQTT client id,
	// or the name that a Redis client has set, or its id, such as redis-7.
	Verb, Key, Client string

	Count int // how often; 0 = once; negative = until it is removed

	// What happens. Exactly one of these is not zero.
	Request      Action             // happens to requests and, as far as they know it, to Redis commands
	Notification NotificationAction // happens to notifications by MQTT; Verb must be empty
	Connack      byte               // refuses MQTT clients with this reason code, 0x80 or more; Verb and Key must be empty
}

// A FaultState is a fault that was added to a server.
type FaultState struct {
	Fault
	ID      int      // from 1, in the order in which the faults were added
	Fired   int      // how often it happened
	Reaches []string // the kinds of clients to which it can happen: mqtt, redis
}

// Over reports whether the fault will not happen again.
func (f *FaultState) Over() bool { return f.Count >= 0 && f.Fired >= max(1, f.Count) }

const (
	// MaxFaults is the maximum number of faults that a server remembers. A new one replaces the oldest that is over.
	MaxFaults = 1000

	maxFaultKey = 1024 // bytes, as in SCAN: each request of a client is matched

	reachesMQTT, reachesRedis = "mqtt", "redis"
)

// A fault is a FaultState with its parsed Key.
type fault struct {
	FaultState
	pattern *glob.Pattern
}

// AddFault adds a fault, and returns its ID. If several faults fit a request, the first that was added happens, and no
// function of [Server.Intercept] is called. The error says which field is invalid.
func (s *Server) AddFault(of Fault) (id int, err error) {
	f := &fault{FaultState: FaultState{Fault: of}}
	if err := f.check(s.opts.Redis != ""); err != nil {
		return 0, err
	}
	s.update(func() {
		if len(s.faults) >= MaxFaults {
			oldest := slices.IndexFunc(s.faults, func(f *fault) bool { return f.Over() })
			if oldest < 0 {
				err = fmt.Errorf("%d faults are waiting: remove them first", MaxFaults)
				return
			}
			s.faults = slices.Delete(s.faults, oldest, oldest+1)
		}
		s.added++
		f.ID = s.added
		s.faults = append(s.faults, f)
		if s.port != nil {
			s.port.server.Intercept(s.redisFault)
		}
	})
	return f.ID, err
}

// check checks a fault and sets its pattern and whom it reaches.
func (f *fault) check(hasRedis bool) error {
	kinds := 0
	for _, kind := range []any{f.Request, f.Notification, f.Connack} {
		if !reflect.ValueOf(kind).IsZero() {
			kinds++
		}
	}
	f.Verb = strings.ToUpper(f.Verb)
	isMQTT := f.Verb == "" || slices.Contains([]string{wire.VerbGet, wire.VerbSet, wire.VerbDel, wire.VerbVDel, wire.VerbKeyNotify, wire.VerbScan}, f.Verb)
	isRedis := f.Verb == "" || redis.HasCommand(f.Verb)
	r := &f.Request
	isRequest := f.Connack == 0 && f.Notification == NotificationAction{}
	var ok bool
	f.pattern, ok = glob.Parse(f.Key)
	switch {
	case kinds == 0:
		return errors.New("nothing to do")
	case kinds > 1:
		return errors.New("only one of a fault of requests, of notifications and of connections")
	case !isMQTT && !isRedis:
		return fmt.Errorf("verb: %.32q: neither a verb of the store nor a command for Redis clients", f.Verb)
	case !isRequest && f.Verb != "":
		return errors.New("verb: only a fault of requests has one")
	case f.Connack != 0 && f.Key != "":
		return errors.New("key: a fault of connections has none")
	case len(f.Key) > maxFaultKey:
		return fmt.Errorf("key: longer than %d bytes", maxFaultKey)
	case !ok:
		return fmt.Errorf("key: %q: not a pattern", f.Key)
	case f.Connack != 0 && f.Connack < broker.UnspecifiedError:
		return fmt.Errorf("connack: 0x%02X: expected a reason code of 0x80 or more", f.Connack)
	case r.Disconnect != 0 && r.Disconnect < broker.UnspecifiedError:
		return fmt.Errorf("disconnect: 0x%02X: expected a reason code of 0x80 or more", r.Disconnect)
	case r.Refuse != 0 && r.Refuse < broker.UnspecifiedError && r.Refuse != broker.NoMatchingSubscriber:
		return fmt.Errorf("puback: 0x%02X: expected 0x10, or a reason code of 0x80 or more", r.Refuse)
	}
	if text := wire.ErrorKind(r.Error).Text(); text != "" {
		r.Error = text
	}
	if isMQTT {
		f.Reaches = append(f.Reaches, reachesMQTT)
	}
	onlyMQTT := r.Refuse != 0 || r.Disconnect != 0 || r.NoPuback || r.PubackLast || r.Rewrite != nil
	if isRequest && isRedis && hasRedis && !onlyMQTT {
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
	s.broker.Lock()
	defer s.broker.Unlock()
	all := make([]FaultState, len(s.faults))
	for i, f := range s.faults {
		all[i] = f.FaultState
	}
	return all
}

// RemoveFault removes a fault, and reports whether there was one with this ID.
func (s *Server) RemoveFault(id int) (found bool) {
	s.update(func() {
		before := len(s.faults)
		s.faults = slices.DeleteFunc(s.faults, func(f *fault) bool { return f.ID == id })
		found = len(s.faults) < before
	})
	return found
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
// counts that it happens. It returns nil if there is none. The broker must be locked.
func (s *Server) takeFault(reaches string, clients []string, fits func(*fault) bool) *Fault {
	for _, f := range s.faults {
		if f.Over() || !slices.Contains(f.Reaches, reaches) || f.Client != "" && !slices.Contains(clients, f.Client) || !fits(f) {
			continue
		}
		f.Fired++
		return &f.Fault
	}
	return nil
}

// requestFault returns the Action of a fault for a request, and whether there is one.
func (s *Server) requestFault(clientID string, payload []byte) (Action, bool) {
	if len(s.faults) == 0 {
		return Action{}, false
	}
	words, err := wire.ParseRequest(payload)
	if err != nil {
		words = nil
	}
	words = append(words, nil, nil)
	f := s.takeFault(reachesMQTT, []string{clientID}, func(f *fault) bool {
		return f.Connack == 0 && f.Notification == NotificationAction{} &&
			(f.Verb == "" || strings.EqualFold(f.Verb, string(words[0]))) && (f.Key == "" || f.pattern.Match(words[1]))
	})
	if f == nil {
		return Action{}, false
	}
	return f.Request, true
}

// notificationFault returns the action of a fault for a notification, or else what the function of
// InterceptNotifications decides.
func (s *Server) notificationFault(n Notification) NotificationAction {
	if f := s.takeFault(reachesMQTT, []string{n.ClientID}, func(f *fault) bool {
		return f.Notification != NotificationAction{} && (f.Key == "" || f.pattern.Match([]byte(n.Key)))
	}); f != nil {
		return f.Notification
	}
	if s.onNotify == nil {
		return NotificationAction{}
	}
	return s.onNotify(n)
}

// connectFault returns the reason code of a fault for a CONNECT, or 0.
func (s *Server) connectFault(clientID string) byte {
	if f := s.takeFault(reachesMQTT, []string{clientID}, func(f *fault) bool { return f.Connack != 0 }); f != nil {
		return f.Connack
	}
	return 0
}

// redisFault returns the fault of a Redis command.
func (s *Server) redisFault(q redis.Intercepted) redis.Fault {
	s.broker.Lock()
	defer s.broker.Unlock()
	f := s.takeFault(reachesRedis, []string{q.Client.ID, q.Name}, func(f *fault) bool {
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
	if f == nil {
		return redis.Fault{}
	}
	r := f.Request
	return redis.Fault{
		Drop: r.Drop, DropReply: r.DropReply, Duplicate: r.Duplicate, Cut: r.Cut, CutAfter: r.CutAfter, CutBytes: r.CutBytes,
		Error: r.Error, Delay: r.Delay, DelayReply: r.DelayReply, Stall: r.Stall,
	}
}

// reorder keeps a notification to a client until another one was sent to it.
func (s *Server) reorder(clientID string, size int, send func()) {
	if s.late == nil {
		s.late = make(map[string]func())
	}
	s.late[clientID] = func() { s.sendInOrder(clientID, size, send) }
}

// sendLate sends the notification that reorder has kept for a client, if there is one.
func (s *Server) sendLate(clientID string) {
	if send := s.late[clientID]; send != nil {
		delete(s.late, clientID)
		send()
	}
}
