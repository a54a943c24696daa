package store

import (
	"github.com/sscli/sscli/internal/wire"
)

// A Notification is a NOTIFY message for one client.
type Notification struct {
	ClientID   string
	Key        string
	Payload    []byte
	Value      []byte     // a value of Large bytes or more, which follows Payload and precedes ValueEnd; nil = none
	Version    []byte     // value of `__ts`; empty = there is no `__ts`
	Properties []Property // the user properties, in order
}

// Topic returns the topic of the message. It computes the topic on each call: if a key is long and has many
// watchers, storing the topics for all of them would take gigabytes.
func (n *Notification) Topic() string { return wire.NotifyTopic(n.ClientID, n.Key) }

// A queue holds the notifications for TakeNotifications. The memory of the queue is reused.
type queue struct {
	notes      []Notification
	data       []byte // payloads and versions
	properties []Property
	taken      bool // the caller has taken notes; reset empties the queue before another notification is added
}

// maxReusedQueue is the maximum number of notifications, at 256 bytes each, whose memory a queue
// keeps for reuse. A queue grows larger when many keys expire together.
const maxReusedQueue = 1024

// TakeNotifications returns the queued notifications and empties the queue. The caller must deliver
// them in this order, before the responses to the requests that caused them.
func (s *Store) TakeNotifications() []Notification {
	if s.queue.taken {
		return nil
	}
	s.queue.taken = true
	return s.queue.notes
}

// GiveNotifications makes the notifications that the last call to TakeNotifications returned valid for ever. Without
// it, they are valid until the store changes.
func (s *Store) GiveNotifications() { s.queue = queue{taken: true} }

func (q *queue) reset() {
	if !q.taken {
		return
	}
	q.taken = false
	if cap(q.notes) > maxReusedQueue || cap(q.data) > 256*maxReusedQueue {
		*q = queue{}
		return
	}
	q.notes, q.data, q.properties = q.notes[:0], q.data[:0], q.properties[:0]
}

func (s *Store) notifySet(e Entry) {
	if s.registrations == 0 {
		return
	}
	s.notify(e, wire.Notification{Op: wire.OpSet, Value: e.Value(), HasValue: !s.opts.Variants.NotifyNoValue}, e.Version())
}

func (s *Store) notifyDelete(e Entry, cause Cause, version []byte) {
	if s.registrations == 0 {
		return
	}
	n := wire.Notification{Op: wire.OpDelete}
	v := s.opts.Variants
	switch {
	case v.NotifyEXPIRED && cause == CauseExpired:
		n.Op = "EXPIRED"
	case v.NotifyDEL:
		n.Op = "DEL"
	}
	if v.DeleteNoVersion {
		version = nil
	}
	s.notify(e, n, version)
}

// notify queues one notification for each watcher. It copies the entry, except a large value,
// because the entry may change before the caller takes the notifications.
func (s *Store) notify(e Entry, n wire.Notification, version []byte) {
	watchers := s.watchers.M[string(e.Key())]
	if len(watchers) == 0 {
		return
	}
	q := &s.queue
	q.reset()
	begin, note := len(q.data), Notification{}
	if n.HasValue && len(n.Value) >= Large {
		q.data, note.Value = wire.AppendNotificationHead(q.data, n), n.Value
	} else {
		q.data = wire.AppendNotification(q.data, n)
	}
	end := len(q.data)
	note.Payload = q.data[begin:end:end]
	if len(version) > 0 && !s.opts.Variants.NotifyNoVersion {
		q.data = append(q.data, version...)
		note.Version = q.data[end:len(q.data):len(q.data)]
		q.properties = append(q.properties, Property{wire.PropTimestamp, note.Version})
		note.Properties = q.properties[len(q.properties)-1 : len(q.properties) : len(q.properties)]
	}
	note.Key = string(e.Key())
	for _, w := range watchers {
		if !w.ended {
			note.ClientID = w.clientID
			q.notes = append(q.notes, note)
		}
	}
}
