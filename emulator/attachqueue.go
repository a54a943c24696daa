package emulator

import (
	"bytes"
	"unsafe"

	"github.com/sscli/sscli/internal/mqtt"
	"github.com/sscli/sscli/internal/store"
	"github.com/sscli/sscli/internal/wire"
)

// putBack returns unsent messages to the front of the queue, for the next connection.
func (a *Attached) putBack(unsent []mqtt.Message) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.queue = append(unsent, a.queue...)
	for i := range unsent {
		a.queued += memoryOf(&unsent[i])
	}
	a.signal()
}

// notify queues the store's pending notifications. It requires a.mu.
func (a *Attached) notify() {
	var payload, kept []byte // the notifications of a change share one copy of the payload
	notes := a.engine.TakeNotifications()
	for i := range notes {
		n := &notes[i]
		if len(payload) == 0 || &payload[0] != &n.Payload[0] {
			payload, kept = n.Payload, bytes.Clone(store.Whole(n.Payload, n.Value))
		}
		n.Value = nil // the store keeps its notifications for reuse
		a.enqueue(a.message(n.Topic(), nil, kept, n.Properties))
	}
}

// reserve adds n, which may be negative, to the estimated memory of the KEYNOTIFY registrations. If the
// sum would exceed maxWatched, it adds nothing and returns false. It requires a.mu.
func (a *Attached) reserve(n int) bool {
	if n > 0 && a.watched+n > maxWatched {
		return false
	}
	a.watched += n
	return true
}

// enqueue queues a message, but not before all changes made so far are in the data file. It requires
// a.mu.
func (a *Attached) enqueue(m mqtt.Message) {
	if a.journal.pending() {
		a.journal.hold(memoryOf(&m), func() { a.enqueueNow(m) })
		return
	}
	a.enqueueNow(m)
}

func (a *Attached) enqueueNow(m mqtt.Message) {
	a.queue = append(a.queue, m)
	a.queued += memoryOf(&m)
	a.signal()
}

// memoryOf returns the estimated memory of a message, in bytes. The client that sent the request chooses the topic and the
// correlation data of the reply.
func memoryOf(m *mqtt.Message) int {
	n := int(unsafe.Sizeof(*m)) + len(m.Topic) + len(m.Payload) + len(m.Correlation)
	for _, p := range m.User {
		n += int(unsafe.Sizeof(p)) + len(p.Value)
	}
	return n
}

func (a *Attached) signal() {
	select {
	case a.wake <- struct{}{}:
	default:
	}
}

func (a *Attached) message(topic string, correlation, payload []byte, properties []store.Property) mqtt.Message {
	m := mqtt.Message{Topic: topic, Payload: payload, Correlation: correlation, ContentType: wire.ContentType, User: cloneProperties(properties)}
	if a.opts.Variants.NoContentType {
		m.ContentType = ""
	}
	return m
}
