package store

import (
	"time"

	"github.com/sscli/sscli/client/wire"
)

// Cause is why a key changed. A notification does not tell (protocol.md 2.6).
type Cause string

// The causes of changes that a request can make. Callers of [Store.Apply] may have others.
const (
	CauseSet     Cause = "set"
	CauseSetPX   Cause = "set px" // with an expiry
	CauseDel     Cause = "del"
	CauseVDel    Cause = "vdel"
	CauseExpired Cause = "expired"
)

// A Change is one modification of the store.
type Change struct {
	Entry    *Entry // the key's new state, or its last one when it was deleted
	Deleted  bool
	Cause    Cause
	ClientID string // who asked; "" for an expiry
	Version  []byte // of the new value, or of the deletion
	Time     time.Time
}

// A Write is a change of a key that no request to the store can express, see [Store.Apply].
type Write struct {
	ClientID, Username string
	Cause              Cause

	Key     []byte
	Value   []byte
	Expires time.Time // rounded up to the microsecond; zero: never
	Persist bool
	Delete  bool // removes the key; Value, Expires and Persist do not matter
}

// Apply changes a key, if the rules that hold for requests allow it, and queues the
// notifications. It returns the text of the refusal: the key is empty, the client is not
// authorized, the key is fenced, or the quota is used up. To delete a key that is not there
// is no change and no refusal.
func (s *Store) Apply(w Write) (refusal string) {
	s.Expire()
	e := s.index.find(w.Key)
	switch {
	case len(w.Key) == 0:
		return wire.TextEmptyKey
	case !s.allowed(w.ClientID, w.Username, w.Key, true):
		return wire.TextNotAuthorized
	case e != nil && e.fenceLen > 0:
		return wire.TextFenceRequired
	case e == nil && w.Delete:
		return ""
	case e == nil && s.full():
		return wire.TextQuota
	case w.Delete:
		s.remove(e, w.Cause, w.ClientID, stamp{})
		return ""
	}
	e = s.put(e, update{key: w.Key, value: w.Value, deadline: deadline(w.Expires), persist: w.Persist, cause: w.Cause, clientID: w.ClientID})
	s.notifySet(e)
	return ""
}

// update is what becomes of a key.
type update struct {
	key, value []byte
	fence      []byte // empty: the key keeps the one it has
	deadline   int64  // see Entry
	persist    bool
	cause      Cause
	clientID   string
	seen       stamp // the version will be greater
}

// full tells whether the quota allows no further key.
func (s *Store) full() bool { return s.opts.MaxKeys > 0 && s.index.len() >= s.opts.MaxKeys }

// put gives a key a new state, and a new version. e is its entry, nil if there is none yet.
func (s *Store) put(e *Entry, u update) *Entry {
	version := s.nextVersion(u.seen)
	if e == nil {
		e = &Entry{}
		s.write(e, u.key, version, u.fence, u.value)
		s.index.add(e)
	} else {
		if len(u.fence) == 0 {
			u.fence = e.Fence()
		}
		s.write(e, e.Key(), version, u.fence, u.value)
	}
	s.expireAt(e, u.deadline)
	e.persist = u.persist
	s.changed(Change{Entry: e, Cause: u.cause, ClientID: u.clientID, Version: e.Version()})
	return e
}

// remove removes a key, tells its watchers, and returns the version of the deletion: that of
// the value that was deleted (protocol.md 1.8, 3.6), or with a variant a new one.
func (s *Store) remove(e *Entry, cause Cause, clientID string, seen stamp) []byte {
	version := e.Version()
	if s.opts.Variants.DeleteNewVersion {
		version = s.nextVersion(seen)
	}
	if e.deadline != 0 {
		s.expiries.Delete(e)
	}
	s.index.remove(e)
	s.changed(Change{Entry: e, Deleted: true, Cause: cause, ClientID: clientID, Version: version})
	s.notifyDelete(e, cause, version)
	return version
}

func (s *Store) changed(c Change) {
	if s.opts.Changed != nil {
		c.Time = s.now
		s.opts.Changed(c)
	}
}

// nextVersion returns the store's next version as text, greater than all it gave before and
// than seen (protocol.md 3.2, 3.4).
func (s *Store) nextVersion(seen stamp) []byte {
	s.clock.next(s.now.UnixMilli(), seen)
	s.version = s.clock.appendText(s.version[:0], s.opts.Node, s.opts.Variants.PaddedVersions)
	return s.version
}
