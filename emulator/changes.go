package emulator

import (
	"time"

	"github.com/sscli/sscli/client/wire"
	"github.com/sscli/sscli/emulator/store"
)

// A Change is one modification of the store. Unlike a notification (protocol.md 2.6), it
// has the cause.
type Change struct {
	Key      string
	Cause    Cause
	ClientID string // who asked; "" for an expiry
	Value    []byte // what was set, or what was deleted
	Version  wire.Version
	Time     time.Time // on the store's clock
}

// changeLog is a ring of the last changes. Every server has one, so a slot reuses its memory.
type changeLog struct {
	slots []loggedChange
	next  int // the slot to be written next: the oldest change, when the ring is full
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
	maxSlotMemory = 1024 // bytes of memory that a slot keeps for the next change
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

// all returns the changes, the oldest first.
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
