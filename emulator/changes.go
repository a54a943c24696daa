package emulator

import (
	"bytes"
	"encoding/json"
	"slices"
	"time"
	"unicode/utf8"

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

type plainChange Change

// changeJSON is a change as JSON.
type changeJSON struct {
	plainChange
	Key64 []byte `json:"Key_b64,omitempty"` // in place of Key if it is not UTF-8
}

// MarshalJSON returns an object with the fields of the change. A Key that is not UTF-8 is the member Key_b64, in Base64.
func (c Change) MarshalJSON() ([]byte, error) {
	j := changeJSON{plainChange: plainChange(c)}
	if !utf8.ValidString(c.Key) {
		j.Key, j.Key64 = "", []byte(c.Key)
	}
	return json.Marshal(j)
}

// UnmarshalJSON is the inverse of MarshalJSON.
func (c *Change) UnmarshalJSON(data []byte) error {
	j := changeJSON{plainChange: plainChange(*c)}
	if err := json.Unmarshal(data, &j); err != nil {
		return err
	}
	*c = Change(j.plainChange)
	if j.Key64 != nil {
		c.Key = string(j.Key64)
	}
	return nil
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
		Key: string(c.Entry.Key()), Cause: Cause(c.Cause), ClientID: c.ClientID,
		Value: append([]byte{}, c.Entry.Value()...), Version: version(c.Version), Time: c.Time,
	})
}

// Changes returns the last 1024 changes of the store, oldest first. It returns none unless
// Options.Changes is set. The caller may modify the result.
func (s *Server) Changes() []Change {
	s.lock()
	changes := slices.Clone(s.changes)
	s.broker.Unlock()
	for i := range changes {
		changes[i].Value = bytes.Clone(changes[i].Value) // not locked: the server never modifies a value
	}
	return changes
}
