package check

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/sscli/sscli/format"
	"github.com/sscli/sscli/internal/files"
)

// A history is what --state keeps between two runs: the store says neither since when a lock is held, nor how
// often a key changed.
type history struct {
	Checks map[string]past `json:"checks"`
}

// A past is what earlier runs found out about a check.
type past struct {
	State   state       `json:"state"`
	Since   time.Time   `json:"since"`             // since when the check is in this state
	Holder  string      `json:"holder,omitempty"`  // of a lock, escaped; empty = free
	Last    string      `json:"last,omitempty"`    // of a lock: its last holder, escaped
	Held    time.Time   `json:"held,omitzero"`     // since when this holder was seen
	Version string      `json:"version,omitempty"` // of the key
	Changes []time.Time `json:"changes,omitempty"` // times of runs that found a change, the newest last
}

const maxState = 64 << 20 // size of a state file, in bytes

// readHistory reads a state file. A missing file is an empty history. A file with anything else is an error: it
// would be replaced.
func readHistory(name string) (h history, err error) {
	h.Checks = make(map[string]past)
	info, err := os.Stat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return h, nil
	case err != nil:
		return h, err
	case info.Size() > maxState:
		return h, fmt.Errorf("%s: larger than 64 MiB: not a file of --state", name)
	}
	text, err := files.ReadFile(name, maxState)
	if err != nil {
		return h, err
	}
	h.Checks = nil
	in := json.NewDecoder(bytes.NewReader(text))
	in.DisallowUnknownFields()
	err = in.Decode(&h)
	if _, more := in.Token(); err == nil && (h.Checks == nil || more != io.EOF) {
		err = errors.New("expected the one member checks")
	}
	if err != nil {
		return h, fmt.Errorf("%s: not a file of --state: %w", name, err)
	}
	return h, nil
}

// lockHistory lets no other run change a state file until unlock is called.
func lockHistory(ctx context.Context, name string) (unlock func(), err error) {
	target, err := files.Follow(name)
	if err != nil {
		return nil, err
	}
	return files.Lock(ctx, target+".lock")
}

func (h history) write(name string) error {
	text, err := json.Marshal(h)
	if err != nil {
		return err
	}
	return files.Write(name, append(text, '\n'), 0o600)
}

// id returns the name of a check in a history. s.context is that of its view.
func (s *spec) id() string { return s.context + "\x00" + s.kind() + "\x00" + s.describe() }

// before adds what earlier runs found to what this run saw.
func (h history) before(s *spec, k *seen, now time.Time) {
	p := h.Checks[s.id()]
	known := !p.Held.IsZero() // an earlier run read the key
	if k == nil || !k.read || k.err != nil {
		return
	}
	k.changes = p.Changes
	k.since = p.Held
	changed := p.Version != k.versionText()
	counts := changed
	if k.last = p.Last; s.kind() == aLock {
		changed = p.Holder != k.holderText()
		counts = k.found && p.Last != k.holderText() // a lock changes hands when another takes it
		if k.found {
			k.last = k.holderText()
		}
	}
	if !known || changed {
		k.since = now
	}
	if known && counts {
		k.changes = append(k.changes, now)
		k.changes = k.changes[max(0, len(k.changes)-maxChanges-1):]
	}
}

// after records a verdict, and says since when the check is in its state.
func (h history) after(v *verdict, k *seen, now time.Time) {
	p, known := h.Checks[v.spec.id()]
	if !known || p.State != v.state {
		p.State, p.Since = v.state, now
	}
	v.since = p.Since
	if k != nil && k.read && k.err == nil {
		p.Holder, p.Version, p.Held, p.Changes = "", k.versionText(), k.since, k.changes
		if v.spec.kind() == aLock {
			p.Holder, p.Last = k.holderText(), k.last
		}
	}
	h.Checks[v.spec.id()] = p
}

func (k *seen) versionText() string {
	if !k.found {
		return ""
	}
	return k.version.String()
}

// holderText returns the holder as JSON can have it, because a holder need not be UTF-8.
func (k *seen) holderText() string {
	if !k.found {
		return ""
	}
	return format.Escape(k.holder)
}
