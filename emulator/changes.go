package emulator

import (
	"slices"
	"time"

	"github.com/sscli/sscli/internal/store"
)

// A Change is one modification of the store. Unlike a notification, it includes
// the cause.
type Change struct {
	Key      string
	Cause    Cause
	ClientID string // the client that made the change; "" for an expiry
	Value    []byte // the new value; for a deletion, the deleted value
	Version  Version
	Time     time.Time // on the store's clock
}

// maxChanges is the maximum number of changes that a server keeps for [Server.Changes].
const maxChanges = 1024

// note reports a change of the store to the Redis port. If Options.Changes is set, note also keeps the
// change for [Server.Changes].
func (s *Server) note(c *store.Change) {
	s.port.changed(c)
	if !s.opts.Changes {
		return
	}
	if len(s.changes) == maxChanges {
		s.changes = s.changes[1:]
	}
	s.changes = append(s.changes, Change{
		Key: string(c.Entry.Key()), Cause: c.Cause, ClientID: c.ClientID,
		Value: append([]byte{}, c.Entry.Value()...), Version: version(c.Version), Time: c.Time,
	})
}

// Changes returns the last 1024 changes of the store, oldest first. It returns none unless
// Options.Changes is set.
func (s *Server) Changes() []Change {
	s.broker.Lock()
	defer s.broker.Unlock()
	return slices.Clone(s.changes)
}
