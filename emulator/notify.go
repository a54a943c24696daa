package emulator

import (
	"bytes"
	"time"

	"github.com/sscli/sscli/internal/broker"
	"github.com/sscli/sscli/internal/store"
)

// A backlog holds the notifications of changes with many watchers, while they are sent in steps on a goroutine of their
// own. Meanwhile other clients use the store. A later notification or reply to a client that still has notifications in
// the backlog is sent after them, from the backlog. So each client gets its messages in the order of the changes, and
// clients that watch something else do not wait.
type backlog struct {
	queue  []*unsent      // in order; not empty while sendBacklog runs
	behind map[string]int // number of notifications and other messages in queue, by client id
	bytes  int            // estimated memory of queue
}

// unsent is what a request adds to the backlog: notifications, or another message to a client.
type unsent struct {
	notes    []note
	clientID string
	send     func() // nil = there are only notes
	bytes    int    // estimated memory
	after    *group // changes that must be in the data file first; nil = none
	done     bool   // everything was sent
}

// A note is a notification to the connection that a client had at the time of the change.
type note struct {
	store.Notification
	client *broker.Client
}

const (
	// A change is notified without the backlog if sending takes some 50 µs at most: if the notifications have
	// maxNotifyStep bytes, or there is one. A step on the backlog has about as many bytes.
	maxNotifyStep = 64 << 10
	notifyCost    = 1000 // fixed cost of one notification, added to its size in bytes

	// maxBacklog is the size of the backlog, in bytes, at which requests that would add to it must wait.
	maxBacklog = 16 << 20
	noteMemory = 256 // estimated memory of a notification in the backlog, besides its payload
)

// costOf returns the estimated work of sending a notification, in bytes that are copied.
func costOf(n *store.Notification) int { return notifyCost + 2*len(n.Key) + len(n.Payload) }

// notify sends the store's pending notifications directly to the watchers, or adds them to the backlog. A watcher gets
// each notification once, whether or not it has a subscription (protocol.md 1.2).
func (s *Server) notify() {
	notes := s.store.TakeNotifications()
	if len(notes) == 0 {
		return
	}
	work := 0
	for i := range notes {
		work += costOf(&notes[i])
	}
	short := work <= maxNotifyStep || len(notes) == 1
	if !short || len(s.backlog.queue) > 0 || s.journal.pending() {
		s.store.GiveNotifications()
	}
	var late unsent
	for i := range notes {
		n := note{notes[i], s.broker.Client(notes[i].ClientID)}
		notes[i].Value = nil // the store keeps its notifications for reuse
		switch {
		case n.client == nil: // Do has registered a client that is not connected
			continue
		case short && s.backlog.behind[n.ClientID] == 0:
			s.send(&n, s.journal.pending())
			continue
		}
		late.bytes += noteMemory
		if last := len(late.notes) - 1; last < 0 || &late.notes[last].Payload[0] != &n.Payload[0] {
			late.bytes += len(n.Payload) + len(n.Value) + len(n.Key)
		}
		late.notes = append(late.notes, n)
	}
	if len(late.notes) > 0 {
		u := late // only this copy is allocated on the heap
		s.postpone(&u)
	}
}

// send sends a notification, unless the client has disconnected since the change. With hold set, the notification
// waits for the data file; it must be valid for ever, see [store.Store.GiveNotifications].
func (s *Server) send(n *note, hold bool) {
	c := n.client
	if !c.Connected() {
		return
	}
	s.properties = appendProperties(s.properties[:0], s.contentType(), nil, n.Properties)
	m := newMessage(nil, n.Payload, n.Value, s.properties)
	switch {
	case (s.onNotify != nil || len(s.faults) > 0) && s.divert(n, m):
		return
	case !hold:
		s.sendNotification(c, n.Topic(), m.Message)
	default:
		m.Properties = bytes.Clone(m.Properties)
		topic := n.Topic()
		s.journal.hold(len(topic)+len(m.Payload)+len(m.Value), func() { s.sendNotification(c, topic, m.Message) })
	}
}

// sendInOrder calls send, which sends a message of the given size to a client, once earlier notifications to the client
// have been sent and all changes so far are in the data file.
func (s *Server) sendInOrder(clientID string, bytes int, send func()) {
	switch {
	case s.backlog.behind[clientID] > 0:
		s.postpone(&unsent{clientID: clientID, send: send, bytes: bytes})
	case s.journal.pending():
		s.journal.hold(bytes, send)
	default:
		send()
	}
}

// postpone adds notifications or another message to the backlog.
func (s *Server) postpone(u *unsent) {
	l := &s.backlog
	if len(l.queue) == 0 {
		l.behind = make(map[string]int)
		s.sending.Go(s.sendBacklog)
	}
	if s.journal.pending() {
		u.after = s.journal.last()
	}
	l.queue = append(l.queue, u)
	l.bytes += u.bytes
	for i := range u.notes {
		l.behind[u.notes[i].ClientID]++
	}
	if u.send != nil {
		l.behind[u.clientID]++
	}
}

// sendBacklog sends the backlog, and unlocks the broker between steps. It does not stand in the broker's line, because
// those in the line may wait for it in awaitRoom.
func (s *Server) sendBacklog() {
	s.broker.Lock()
	defer s.broker.Unlock()
	l := &s.backlog
	locked, work := time.Now(), 0
	worked := func(cost int) {
		if work += cost; work > maxNotifyStep && s.broker.PauseAfter(&locked) {
			work = 0
		}
	}
	for len(l.queue) > 0 {
		u := l.queue[0]
		stored := s.journal.await(u.after)
		for i := range u.notes {
			n := &u.notes[i]
			if s.passed(n.ClientID); stored {
				s.send(n, false)
			}
			worked(costOf(&n.Notification))
		}
		if u.send != nil {
			if s.passed(u.clientID); stored {
				u.send()
			}
			worked(notifyCost + u.bytes)
		}
		l.queue[0] = nil // for the garbage collector
		l.queue = l.queue[1:]
		l.bytes -= u.bytes
		u.done = true
		s.notified.Broadcast()
	}
	*l = backlog{}
}

// passed counts a notification or another message in the backlog as sent.
func (s *Server) passed(clientID string) {
	if s.backlog.behind[clientID]--; s.backlog.behind[clientID] == 0 {
		delete(s.backlog.behind, clientID)
	}
}

// awaitRoom waits until the backlog has room, as long as wanted returns true. It unlocks the broker while it waits.
func (s *Server) awaitRoom(wanted func() bool) {
	for s.backlog.bytes > maxBacklog && wanted() {
		s.notified.Wait()
	}
}

// always is the condition of awaitRoom for a change that may add to the backlog.
func always() bool { return true }

// awaitNotify waits until all notifications of changes so far have been sent. It unlocks the broker while it waits.
func (s *Server) awaitNotify() {
	queue := s.backlog.queue
	if len(queue) == 0 {
		return
	}
	for last := queue[len(queue)-1]; !last.done; {
		s.notified.Wait()
	}
}
