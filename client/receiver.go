package client

import (
	"encoding/binary"
	"time"

	"github.com/sscli/sscli/client/mqtt"
	"github.com/sscli/sscli/client/wire"
)

// A receiver takes the messages of one connection. What they bring is known at once, and
// who waits for it is woken once for all messages of one read.
type receiver struct {
	s       *Session
	feed    uint64  // the number of the connection
	version Version // the last one that was received
	key     []byte  // of a notification; reused

	// Of the messages of this read.
	at       time.Time // when the first was looked at; zero = there is none yet
	wall     int64     // at, in milliseconds since the Unix epoch
	info     ReplyInfo // of the reply that is being judged
	seen     Version   // the greatest version of a reply that the clock must pass; zero = none
	answered []*pending
	notified []*Watch
}

// message takes a message. A reply that nobody waits for (late or duplicate) is dropped; the
// connection acknowledges it.
func (r *receiver) message(m *mqtt.Publication) {
	if r.at.IsZero() {
		r.at = time.Now()
		r.wall = r.at.UnixMilli()
	}
	if string(m.Topic) == r.s.o.ResponseTopic {
		r.reply(m)
		return
	}
	// Notifications may come without a subscription (protocol.md 1.2).
	key, ok := r.s.notifiedKey(r.key[:0], m.Topic)
	if r.key = key; ok {
		r.notice(key, m)
	}
}

// reply takes the answer to a request.
func (r *receiver) reply(m *mqtt.Publication) {
	id := m.Correlation
	if len(id) != 16 || string(id[8:]) != string(r.s.nonce[:]) {
		return
	}
	if p := r.s.take(binary.LittleEndian.Uint64(id)); p != nil {
		r.judge(p, m)
		r.answered = append(r.answered, p)
	}
}

// judge sets the outcome of a request that was answered.
func (r *receiver) judge(p *pending, m *mqtt.Publication) {
	r.info = ReplyInfo{RTT: r.at.Sub(p.sent)}
	result, err := newResult(&p.command, m, r)
	if err != nil {
		p.err = p.judgeAnswer(err)
		return
	}
	p.result = result
	if v := r.info.Version; v.Compare(r.seen) > 0 && r.isNear(v) {
		r.seen = v
	}
}

// isNear reports whether a version is so near that the clock may follow it. A version too far
// ahead leaves the clock alone; the result warns of it.
func (r *receiver) isNear(v Version) bool {
	return v.Wall <= r.wall || uint64(v.Wall)-uint64(r.wall) <= uint64(wire.MaxDrift.Milliseconds())
}

// parseVersion parses a version of a message.
func (r *receiver) parseVersion(text []byte) (Version, error) {
	v, err := wire.ReadVersion(text, r.version)
	if err == nil {
		r.version = v
	}
	return v, err
}

// drained comes after the messages of one read. The clock passes the greatest of their
// versions, and with it all of them, before anybody who waits for the messages can send
// another request.
func (r *receiver) drained() {
	r.at = time.Time{}
	if !r.seen.IsZero() {
		_ = r.s.clock.Observe(r.seen) // it is near
		r.seen = Version{}
	}
	for i, p := range r.answered {
		r.answered[i] = nil
		p.end()
	}
	for i, w := range r.notified {
		w.wakeUp()
		r.notified[i] = nil
	}
	r.answered, r.notified = r.answered[:0], r.notified[:0]
}
