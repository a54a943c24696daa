package store

import (
	"cmp"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/sscli/sscli/internal/observe"
	"github.com/sscli/sscli/internal/wire"
)

// Values of observe.Event.Cause that explain the outcomes OK and No of a request.
const (
	causeMissing    = "missing"
	causeExists     = "exists"
	causeOtherValue = "another value"
	causeWasMissing = "was missing"
	causeSameValue  = "same value"
	causeNotWatched = "not watched"
	causeWatched    = "watched already"
)

// queued returns all notifications in the queue except the first n.
func (s *Store) queued(n int) []Notification {
	if s.queue.taken {
		return nil
	}
	return s.queue.notes[n:]
}

// Event returns an event for a request that was received at the given time. The caller adds the outcome.
func (r Request) Event(at time.Time) observe.Event {
	e := observe.Event{
		Op: observe.Request, Time: at, Client: r.ClientID, User: r.Username,
		Fence: string(cut(r.Fence, math.MaxUint16)), Clock: string(cut(r.Timestamp, math.MaxUint16)), Sent: len(r.Payload),
	}
	words := r.Words
	if words == nil && !hasManyWords(r.Payload) {
		words, _ = wire.ParseRequest(r.Payload)
	}
	if len(words) == 0 {
		return e
	}
	e.Verb, e.Options = strings.ToLower(string(cut(words[0], maxVerb))), words[1:]
	if len(e.Options) > 0 && e.Verb != "scan" {
		e.Keys, e.Options, e.Access = []string{string(cut(e.Options[0], maxKey+1))}, e.Options[1:], []observe.Access{observe.Writes}
		if e.Verb == "get" || e.Verb == "keynotify" {
			e.Access[0] = observe.Reads
		}
	}
	if len(e.Options) > 0 && (e.Verb == "set" || e.Verb == "vdel") {
		e.Value, e.Options = e.Options[0], e.Options[1:]
	}
	return e
}

// cut returns at most n bytes of a word, because other clients wait while a word is copied or written to a log.
func cut(word []byte, n int) []byte { return word[:min(len(word), n)] }

func (s *Store) answerObserved(c *call) Response {
	n := len(s.queued(0))
	r := s.answer(c)
	e := c.Event(s.now)
	e.Outcome, e.Cause, e.Version, e.Notified = cmp.Or(c.outcome, observe.OK), c.cause, string(r.Version), s.notified(n)
	reply := r.Payload[len(c.dst):]
	e.Received = len(reply)
	if r.Value != nil {
		e.Received += len(r.Value) + len(ValueEnd)
		e.Result = observe.Count(len(r.Value), "byte")
	} else if e.Outcome == observe.OK {
		e.Result = result(e.Verb, reply)
	}
	s.opts.Observe(e)
	return r
}

// result summarizes the reply to a request in a few words.
func result(verb string, payload []byte) string {
	reply, err := wire.ParseReply(payload)
	if err != nil {
		return ""
	}
	switch v := reply.Value; {
	case v.Kind == wire.Blob:
		return observe.Count(len(v.Text), "byte")
	case v.Kind == wire.Array && len(v.Items) > 0: // SCAN: the page, then the token of the next page, if any
		return observe.Count(len(v.Items[0].Items), "key")
	case v.Kind == wire.Array:
		return "0 keys"
	case v.Kind != wire.Integer:
		return string(v.Text)
	case verb == "del" || verb == "vdel":
		return "deleted"
	case verb == "keynotify":
		return "stopped"
	default:
		return strconv.FormatInt(v.Int, 10)
	}
}

// notified returns the client ids of the queued notifications except the first n.
func (s *Store) notified(n int) (clients []string) {
	for _, note := range s.queued(n) {
		clients = append(clients, note.ClientID)
	}
	return clients
}

// observeChange reports an expiry or a change by Apply. n is the number of notifications that were
// queued before the change.
func (s *Store) observeChange(op observe.Op, clientID, username string, key, version []byte, n int) {
	if s.opts.Observe == nil {
		return
	}
	s.opts.Observe(observe.Event{
		Op: op, Time: s.now, Client: clientID, User: username,
		Keys: []string{string(key)}, Outcome: observe.OK, Version: string(version), Notified: s.notified(n),
	})
}
