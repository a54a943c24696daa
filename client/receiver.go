package client

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"slices"
	"time"

	"github.com/sscli/sscli/internal/mqtt"
	"github.com/sscli/sscli/internal/wire"
)

// A receiver handles the messages of one connection. It wakes the goroutines that wait for them
// once per network read, not once per message.
type receiver struct {
	s       *Session
	connSeq uint64
	key     []byte // the key of the current notification; memory is reused

	// State of the current read.
	at       time.Time // when its first message was handled; zero = none yet
	info     ReplyInfo // about the current reply
	seen     Version   // the greatest version in a reply, which the clock must pass; zero = none
	answered []*request
	notified []*Watch
}

// message handles a message. It drops a late or duplicate reply, for which no request is outstanding.
// The connection acknowledges such a reply too.
func (r *receiver) message(m *mqtt.Publication) {
	if r.at.IsZero() {
		r.at = time.Now()
	}
	if string(m.Topic) == r.s.o.ResponseTopic {
		r.reply(m)
		return
	}
	// Notifications may come without a subscription (protocol.md 1.2).
	key, ok := r.s.notifiedKey(r.key[:0], m.Topic)
	if r.key = key; ok {
		r.notification(string(key), m)
	}
}

func (r *receiver) reply(m *mqtt.Publication) {
	id := m.Correlation
	if len(id) != 16 || string(id[8:]) != string(r.s.nonce[:]) {
		return
	}
	request := r.s.remove(binary.LittleEndian.Uint64(id))
	if request == nil {
		return
	}
	r.info = ReplyInfo{RTT: r.at.Sub(request.sent)}
	result, err := newResult(&request.command, m, &r.info, r.at)
	if err != nil {
		request.err = request.badReply(err)
	} else {
		request.result = result
		if v := r.info.Version; v.Compare(r.seen) > 0 && isNear(v, r.at) {
			r.seen = v
		}
	}
	r.answered = append(r.answered, request)
}

// isNear reports whether the session's clock may follow a version. A version too far ahead of
// the wall clock does not move the session's clock; the result carries a warning instead.
func isNear(v Version, now time.Time) bool {
	wall := now.UnixMilli()
	return v.Wall <= wall || uint64(v.Wall)-uint64(wall) <= uint64(wire.MaxDrift.Milliseconds())
}

// notifiedKey appends to dst the key that a notification topic names. ok is false if topic is
// not a notification topic of this client.
func (s *Session) notifiedKey(dst, topic []byte) (key []byte, ok bool) {
	digits, ok := bytes.CutPrefix(topic, s.notifyTopic)
	if !ok {
		// Compare the decoded id, because the broker may write its hexadecimal digits in either case.
		id, key, ok := wire.ParseNotifyTopic(string(topic))
		return append(dst, key...), ok && id == s.o.ClientID
	}
	key, err := hex.AppendDecode(dst, digits)
	return key, err == nil
}

// notification passes a notification on to the watches of its key.
func (r *receiver) notification(key string, m *mqtt.Publication) {
	if m.Retained {
		return // not from the store, which never retains notifications
	}
	r.s.mu.Lock()
	g := r.s.routes[key]
	var watches []*Watch
	if g != nil {
		watches = g.watches
	}
	r.s.mu.Unlock()
	if len(watches) > 0 {
		r.deliver(watches, newEvent(key, m, r.at)) // not g.key: the event of a key that was let go keeps no registration
	}
}

// deliver passes an event on to the watches of its key, to each with a value of its own.
func (r *receiver) deliver(watches []*Watch, e Event) {
	for i, w := range watches {
		if i > 0 {
			e.Value = bytes.Clone(e.Value)
		}
		w.mu.Lock()
		if k := w.keys[e.Key]; k != nil && w.connSeq == r.connSeq {
			w.advance(e.changed())
			w.notify(k, e)
		}
		w.mu.Unlock()
		if !slices.Contains(r.notified, w) {
			r.notified = append(r.notified, w)
		}
	}
}

// newEvent converts a notification to an event. The event shares no memory with m.
func newEvent(key string, m *mqtt.Publication, at time.Time) Event {
	e := Event{Kind: EventOther, Key: key, Time: at}
	if text, ok := m.Property(wire.PropTimestamp); ok {
		e.Version, _ = ParseVersion(string(text)) // on an error the version is zero, and the event still counts
	}
	n, err := wire.ParseNotification(m.Payload)
	switch {
	case err != nil:
		e.Word = string(m.Payload)
	case n.Op == wire.OpSet:
		e.Kind = EventSet
	case n.Op == wire.OpDelete:
		e.Kind = EventDelete
	default:
		e.Word = string(n.Op)
	}
	if e.Kind != EventDelete && n.HasValue {
		e.Value, e.HasValue = append([]byte{}, n.Value...), true
	}
	return e
}

// drained is called after all messages of one network read were handled. It first moves the clock
// past the greatest version in the replies. Then it wakes the goroutines that wait for the messages,
// so that the next request of each goroutine has a later timestamp. idle reports that nothing more is
// expected from the broker.
func (r *receiver) drained() (idle bool) {
	r.at = time.Time{}
	if !r.seen.IsZero() {
		_ = r.s.clock.Observe(r.seen) // no error is possible, because the version is near
		r.seen = Version{}
	}
	for _, request := range r.answered {
		request.end()
	}
	for _, w := range r.notified {
		w.wakeUp()
	}
	clear(r.answered)
	clear(r.notified)
	r.answered, r.notified = r.answered[:0], r.notified[:0]
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	return r.s.outstanding.Len() == 0 && len(r.s.routes) == 0
}
