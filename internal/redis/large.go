package redis

import (
	"bytes"
	"errors"
	"slices"

	"github.com/sscli/sscli/internal/chunk"
)

// Large values are copied without the Local's lock, so that other clients can use the Local meanwhile.
// A value to store is copied before the command stores it. A value in a reply is copied while the
// reply is sent. Only a transaction copies the values to store while it keeps the Local locked.

// A room is memory for a value that a command is going to store; see Op.Room.
type room struct{ value, memory []byte }

// A largeReply is a large value in the reply of the running command.
type largeReply struct {
	at    int // offset in conn.w
	value []byte
}

// errChanged means that the command must run again, because the key changed while build was making the
// key's new value.
var errChanged = errors.New("the key has changed")

// isLarge reports whether a value of size bytes is copied without the Local's lock.
func (c *conn) isLarge(size int) bool { return size >= LargeValue && c.s.local != nil }

// isLargeCopy reports whether a value of size bytes is copied without the Local's lock before a command
// stores it. A transaction copies the values to store while it keeps the Local locked.
func (c *conn) isLargeCopy(size int) bool { return c.isLarge(size) && !c.executing }

// lockLarge unlocks the Local and locks Server.large, so that only one command at a time copies large
// values.
func (c *conn) lockLarge() {
	c.unlock()
	if !c.hasLarge {
		c.hasLarge = true
		c.s.large.Lock()
	}
}

// unlockLarge unlocks Server.large, so that another command can copy large values.
func (c *conn) unlockLarge() {
	if c.hasLarge {
		c.hasLarge, c.rooms = false, nil
		c.s.large.Unlock()
	}
}

// copyLarge copies the large arguments into c.rooms if the command may store them.
func (c *conn) copyLarge(cmd *command, args [][]byte) {
	if cmd.flags&denyOOM == 0 || !slices.ContainsFunc(args, func(a []byte) bool { return c.isLargeCopy(len(a)) }) {
		return
	}
	c.lockLarge()
	for i, a := range args[1:] {
		if c.isLargeCopy(len(a)) {
			memory := c.s.opts.Room(max(len(args[1]), len(args[i])), len(a)) // in MSET, the key precedes the value
			chunk.Copy(memory[len(memory)-len(a):], a)
			c.rooms = append(c.rooms, room{a, memory})
		}
	}
}

// takeRoom removes the memory for a value from c.rooms and returns it. It returns nil if there is none.
func (c *conn) takeRoom(value []byte) []byte {
	for i, r := range c.rooms {
		if len(r.value) == len(value) && &r.value[0] == &value[0] {
			c.rooms[i].value = nil
			return r.memory
		}
	}
	return nil
}

// build returns a new value of size bytes for key. The function fill computes it from the value in old,
// which is the result of a lookup. If the new value is large, build unlocks the Local while fill runs, and
// returns errChanged if the key in old has changed meanwhile.
func (c *conn) build(old *Op, key []byte, size int, fill func(value, old []byte)) ([]byte, error) {
	if !c.isLargeCopy(size) {
		value := make([]byte, size)
		fill(value, old.Entry.Value)
		return value, nil
	}
	from, version := old.Entry.Value, bytes.Clone(old.Entry.Version)
	if len(from) < LargeValue {
		from = bytes.Clone(from)
	}
	c.lockLarge()
	memory := c.s.opts.Room(len(key), size)
	value := memory[len(memory)-size:]
	fill(value, from)
	c.rooms = append(c.rooms, room{value, memory})
	c.lock()
	now, err := c.lookup(old.Key)
	if err != nil {
		return nil, err
	}
	if now.Yes != old.Yes || !bytes.Equal(now.Entry.Version, version) {
		return nil, errChanged
	}
	*old = now
	return value, nil
}

// compare compares a large value with the value of a key, and unlocks the Local meanwhile. It returns
// nil if the lookup of the key fails or the lengths of the values differ.
func (c *conn) compare(key, value []byte) *chunk.Comparison {
	now, err := c.lookup(key)
	if err != nil || len(now.Entry.Value) != len(value) {
		return nil
	}
	c.lockLarge()
	compared := chunk.Compare(now.Entry.Value, value)
	c.lock()
	return compared
}

// sizeOfLarge returns the total size of large values in bytes. Values in the same memory count once.
func sizeOfLarge(parts []largeReply) (size int) {
	counted := make(map[*byte]bool)
	for _, part := range parts {
		if first := &part.value[0]; !counted[first] {
			counted[first] = true
			size += len(part.value)
		}
	}
	return size
}

// sendLarge sends a reply that contains large values, as fast as the client reads it. It unlocks the
// Local and does not lock it again. It returns false if the connection is closed.
func (c *conn) sendLarge() bool {
	w, parts, sent := c.w, c.large, 0
	c.w, c.large = nil, nil
	if c.sentHead == nil {
		c.sentHead = bytes.Clone(w[c.mark:min(c.mark+maxHead, len(w))])
	}
	defer c.out.keep(0)
	if !c.out.keep(sizeOfLarge(parts)) {
		c.out.mu.Lock()
		c.drop("closing a client because the memory for clients is exhausted")
		c.out.mu.Unlock()
		c.unlock()
		return false
	}
	for _, part := range parts {
		c.w = append(c.w, w[sent:part.at]...)
		sent = part.at
		c.unlock()
		for some := range slices.Chunk(part.value, fullOutput) {
			c.w = append(c.w, some...)
			if !c.flush() {
				return false
			}
		}
	}
	c.w = append(c.w, w[sent:]...)
	return true
}
