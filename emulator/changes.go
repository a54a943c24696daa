package emulator

import (
	"time"

	"github.com/sscli/sscli/client/wire"
	"github.com/sscli/sscli/emulator/store"
)

// A Change is one modification of the store. Unlike a notification (protocol.md 2.6), it includes
// the cause.
type Change struct {
	Key      string
	Cause    Cause
	ClientID string // the client that made the change; "" for an expiry
	Value    []byte // the new value; for a deletion, the deleted value
	Version  wire.Version
	Time     time.Time // on the store's clock
}

// changeLog is a ring buffer of the last maxChanges changes. Its slots reuse their memory.
type changeLog struct {
	slots []loggedChange
	next  int // index of the slot to write next; if the ring is full, it holds the oldest change
}

type loggedChange struct {
	cause        Cause
	clientID     string
	time         time.Time
	data         []byte // key, version and value
	key, version int    // lengths in data
}

const (
	maxChanges    = 1024
	maxSlotMemory = 1024 // in bytes: a slot with more memory does not reuse it
)

func (l *changeLog) add(c *store.Change) {
	if len(l.slots) < maxChanges {
		l.slots = append(l.slots, loggedChange{})
	}
	slot := &l.slots[l.next]
	l.next = (l.next + 1) % maxChanges
	if cap(slot.data) > maxSlotMemory {
		slot.data = nil
	}
	key, value := c.Entry.Key(), c.Entry.Value()
	slot.data = append(append(append(slot.data[:0], key...), c.Version...), value...)
	slot.key, slot.version = len(key), len(c.Version)
	slot.cause, slot.clientID, slot.time = c.Cause, c.ClientID, c.Time
}

// all returns copies of the changes, oldest first.
func (l *changeLog) all() []Change {
	changes := make([]Change, 0, len(l.slots))
	for i := range l.slots {
		p := &l.slots[(l.next+i)%len(l.slots)]
		text, value := p.data[p.key:p.key+p.version], p.data[p.key+p.version:]
		changes = append(changes, Change{
			Key: string(p.data[:p.key]), Cause: p.cause, ClientID: p.clientID,
			Value: append([]byte{}, value...), Version: version(text), Time: p.time,
		})
	}
	return changes
}
