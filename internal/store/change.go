package store

import (
	"bytes"
	"time"

	"github.com/sscli/sscli/internal/observe"
	"github.com/sscli/sscli/internal/wire"
)

// A Cause is the reason for a change. Notifications do not include the cause (protocol.md 2.6).
type Cause string

// The causes of changes by requests and by expiry. Callers of [Store.Apply] may define other causes.
const (
	CauseSet     Cause = "set"
	CauseSetPX   Cause = "set px" // with an expiry
	CauseDel     Cause = "del"
	CauseVDel    Cause = "vdel"
	CauseExpired Cause = "expired"
)

// A Change is one modification of the store.
type Change struct {
	Entry    Entry // the key's new state; for a deletion, its last state
	Deleted  bool
	New      bool // the key did not exist before
	Cause    Cause
	ClientID string // the client that made the change; "" for an expiry
	Version  []byte // version of the new value or of the deletion
	Time     time.Time

	Kept    bool  // what Options.Keep returned for the new state
	WasKept bool  // what Options.Keep returned for the previous state
	Clock   int64 // wall clock of the store's HLC, in milliseconds; no version so far has a later wall clock
}

// A Write changes a key without a request, see [Store.Apply].
type Write struct {
	ClientID, Username string
	Cause              Cause

	Key     []byte
	Value   []byte
	Expires time.Time // rounded up to the microsecond; zero = never
	Persist bool
	Mark    byte // 0 to 3; the store keeps it in memory with the key and does not interpret it
	Delete  bool // remove the key; Value, Expires, Persist and Mark are ignored
}

// Apply changes a key under the same rules as a request, and queues the notifications. It keeps a large
// Value, as [Store.Do] does. It returns "", or the text of the refusal if the key is empty, too long or
// fenced, if the client is not authorized, or if a quota would be exceeded. Deleting a missing key succeeds and changes nothing.
func (s *Store) Apply(w Write) (refusal string) {
	s.ExpireSome()
	r, text := s.checkWrite(&w)
	if text != "" {
		return text
	}
	var version []byte
	n := len(s.queued(0))
	switch {
	case w.Delete && r == 0:
		return ""
	case w.Delete:
		version = s.remove(r, w.Cause, w.ClientID, hlc{})
	case s.full(growth{}, s.index.arena.size(r), len(w.Key)+len(w.Value)):
		return wire.TextQuota
	default:
		e := s.put(r, w, nil, hlc{})
		s.notifySet(e)
		version = e.Version()
	}
	s.observeChange(observe.Apply, w.ClientID, w.Username, w.Key, version, n)
	return ""
}

// Clear deletes all keys in byte order, whatever the rules and fences say, and queues the notifications.
func (s *Store) Clear() {
	s.Expire()
	for s.index.len() > 0 {
		first, _ := s.index.ordered.Min()
		s.remove(first, CauseDel, "", hlc{})
	}
}

// Reset deletes all keys as [Store.Clear] does, and forgets the versions so far: later ones may be lower, if the caller
// has set its clock back.
func (s *Store) Reset() {
	s.Clear()
	s.clock = clock{}
}

// checkWrite performs all checks of a write except those of the quotas. It returns the key's record (0 if the key is
// missing) and the text of the refusal, or "".
func (s *Store) checkWrite(w *Write) (r ref, refusal string) {
	switch {
	case len(w.Key) == 0:
		return 0, wire.TextEmptyKey
	case len(w.Key) > maxKey:
		return 0, textLongKey
	case len(w.Value) > maxValue:
		return 0, textLongValue
	case !s.Allowed(w.ClientID, w.Username, w.Key, true):
		return 0, wire.TextNotAuthorized
	}
	r = s.find(w.Key)
	return r, s.checkFence(hlc{}, r)
}

// recordOverhead is the estimated memory that a new key needs in addition to its name and value, in bytes: in
// its record and in the index.
const recordOverhead = 128

// full reports whether there is no room for a key and value of size bytes in total, once the store has grown. old
// is the size of the key's present record, or 0 for a new key. A write that does not grow an existing record
// never exceeds the quota of bytes. full removes expired keys if that makes room.
func (s *Store) full(grown growth, old, size int) bool {
	for s.exceeds(grown, old, size) {
		before := s.index.len()
		if s.ExpireSome(); s.index.len() == before {
			return true
		}
	}
	return false
}

func (s *Store) exceeds(grown growth, old, size int) bool {
	x := s.index
	if old == 0 && s.opts.MaxKeys > 0 && x.len()+grown.keys >= s.opts.MaxKeys || x.arena.room() <= grown.blocks {
		return true
	}
	if size -= old; old == 0 {
		size += recordOverhead
	}
	return s.opts.MaxBytes > 0 && size > 0 && s.Bytes()+grown.bytes+size > s.opts.MaxBytes
}

// Bytes returns the estimated memory of all keys and values, in bytes, including the records and the index.
func (s *Store) Bytes() int { return s.index.cost() }

// put sets a key's state and gives the key a new version. seen is the request's timestamp; the version
// is greater than seen. r is the key's present record, or 0 for a new key. If fence is empty, the key
// keeps its present fence.
func (s *Store) put(r ref, w Write, fence []byte, seen hlc) Entry {
	version := s.nextVersion(seen)
	flags, wasKept := w.Mark<<markShift, false
	if r != 0 {
		old := s.index.entry(r)
		wasKept = old.kept()
		if len(fence) == 0 {
			fence = old.Fence()
		}
	}
	if w.Persist {
		flags |= flagPersist
	}
	if s.opts.Keep != nil && s.opts.Keep(w.Key, w.Persist) {
		flags |= flagKept
	}
	e := s.index.entry(s.index.put(r, w.Key, version, fence, w.Value, deadline(w.Expires), flags))
	s.changed(Change{Entry: e, New: r == 0, Cause: w.Cause, ClientID: w.ClientID, Version: e.Version(), Kept: e.kept(), WasKept: wasKept})
	return e
}

// remove removes a key, notifies its watchers, and returns the version of the deletion: the
// deleted value's version (protocol.md 1.8, 3.6) or, with Variants.DeleteNewVersion, a new version.
func (s *Store) remove(r ref, cause Cause, clientID string, seen hlc) []byte {
	e := s.index.entry(r)
	version := e.Version()
	if s.opts.Variants.DeleteNewVersion {
		version = s.nextVersion(seen)
	}
	s.changed(Change{Entry: e, Deleted: true, Cause: cause, ClientID: clientID, Version: version, WasKept: e.kept()})
	s.notifyDelete(e, cause, version)
	s.index.remove(r)
	return version
}

func (s *Store) changed(c Change) {
	if s.opts.Changed != nil {
		c.Time, c.Clock = s.now, s.clock.wall
		s.change = c
		s.opts.Changed(&s.change)
		s.change.Entry, s.change.Version = Entry{}, nil // they keep a record in memory
	}
}

// nextVersion returns a new version as text. The version is greater than the timestamp seen and all
// earlier versions of the store (protocol.md 3.2, 3.4).
func (s *Store) nextVersion(seen hlc) []byte {
	s.clock.next(s.millis, seen)
	s.version = s.clock.appendText(s.version[:0], s.opts.Node, s.opts.Variants.PaddedVersions)
	return s.version
}

// Restore sets a key to a state that the caller has saved (see Options.Keep), including its version.
// expires is in microseconds since the Unix epoch; 0 = never. Restore does not notify watchers or call
// Options.Changed. If the key has expired since it was saved, the next call to [Store.Expire] removes it. Every
// new version is greater than version.
func (s *Store) Restore(key, value, version, fence []byte, expires int64, persist bool) {
	flags := byte(flagKept)
	if persist {
		flags |= flagPersist
	}
	if len(value) >= Large {
		value = bytes.Clone(value)
	}
	s.index.put(s.index.find(key), key, version, fence, value, expires, flags)
	if seen, ok := parseHLC(version); ok {
		s.clock.see(seen)
	}
}

// RestoreClock advances the store's clock to wall, in milliseconds since the Unix epoch, so that
// every new version is greater than all versions with an earlier wall clock.
func (s *Store) RestoreClock(wall int64) {
	if wall > s.clock.wall {
		s.clock = clock{wall: wall}
	}
}
