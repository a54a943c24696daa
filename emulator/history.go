package emulator

import (
	"time"

	"github.com/sscli/sscli/client/wire"
	"github.com/sscli/sscli/emulator/store"
)

// A Change is one modification of the store. The notification does not tell
// causes apart (protocol.md 2.6); the server remembers them.
type Change struct {
	Key      string
	Cause    Cause
	ClientID string // who asked; "" for an expiry
	Value    []byte // what was set, or what was deleted
	Version  wire.Version
	Time     time.Time // on the store's clock
}

// history holds the last changes. A slot is used again with its memory: a server
// remembers whether anybody asks or not.
type history struct {
	slots []pastChange
	next  int // the slot to be used, and the oldest when all are
}

type pastChange struct {
	cause        Cause
	clientID     string
	time         time.Time
	data         []byte // key, version and value, one after the other
	key, version int    // their lengths
}

const (
	// maxChanges and roomyChange bound the memory of the history: how many changes it holds, and
	// how many bytes of memory a change may leave to the next one in its slot.
	maxChanges  = 1024
	roomyChange = 1024
)

// add remembers a change.
func (h *history) add(c *store.Change) {
	if len(h.slots) < maxChanges {
		h.slots = append(h.slots, pastChange{})
	}
	slot := &h.slots[h.next]
	h.next = (h.next + 1) % maxChanges
	key, value := c.Entry.Key(), c.Entry.Value()
	if cap(slot.data) > roomyChange {
		slot.data = nil
	}
	slot.data = append(append(append(slot.data[:0], key...), c.Version...), value...)
	slot.key, slot.version = len(key), len(c.Version)
	slot.cause, slot.clientID, slot.time = c.Cause, c.ClientID, c.Time
}

// all returns the changes, the oldest first.
func (h *history) all() []Change {
	changes := make([]Change, 0, len(h.slots))
	for i := range h.slots {
		p := &h.slots[(h.next+i)%len(h.slots)]
		text, value := p.data[p.key:p.key+p.version], p.data[p.key+p.version:]
		changes = append(changes, Change{
			Key: string(p.data[:p.key]), Cause: p.cause, ClientID: p.clientID,
			Value: append([]byte{}, value...), Version: version(text), Time: p.time,
		})
	}
	return changes
}
