package check

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"strings"
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
	Since   time.Time   `json:"since,omitzero"`    // since when the check is in this state
	Holder  string      `json:"holder,omitempty"`  // of a lock, escaped; empty = free
	Last    string      `json:"last,omitempty"`    // of a lock: its last holder, escaped
	Held    time.Time   `json:"held,omitzero"`     // since when this holder or version was seen
	After   time.Time   `json:"after,omitzero"`    // when it was another one; zero = not known
	Looked  time.Time   `json:"looked,omitzero"`   // of the last run that read the key
	Version string      `json:"version,omitempty"` // of the key
	Changes []time.Time `json:"changes,omitempty"` // times of runs that found a change, the newest last
}

const maxState = 64 << 20 // size of a state file, in bytes

// readHistory reads a state file. A missing file is an empty history. A file with anything else is an error: it
// would be replaced.
func readHistory(name string) (h history, err error) {
	defer func() {
		if err != nil {
			h = history{}
		}
		if h.Checks == nil {
			h.Checks = make(map[string]past)
		}
	}()
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
func (s *spec) id() string {
	if s.of != nil {
		return s.of.id() + "\x00" + format.Escape(s.target)
	}
	return s.context + "\x00" + s.kind + "\x00" + s.describe()
}

// before adds what earlier runs found to what this run saw of a key.
func (h history) before(s *spec, k *seen, now time.Time) {
	p := h.Checks[s.id()]
	known := !p.Held.IsZero() // an earlier run read the key
	k.changes = p.Changes
	k.since, k.after = p.Held, p.After
	changed := p.Version != k.versionText()
	counts := changed
	if k.last = p.Last; kindOf(s.kind).changesHands {
		changed = p.Holder != k.holderText()
		counts = k.found && p.Last != k.holderText() // a lock changes hands when another takes it
		if k.found {
			k.last = k.holderText()
		}
	}
	if !known || changed {
		k.since, k.after = now, p.Looked
	}
	if known && counts {
		k.changes = append(k.changes, now)
		k.changes = k.changes[max(0, len(k.changes)-maxChanges-1):]
	}
}

// keep records what was seen of a key.
func (h history) keep(s *spec, k *seen, now time.Time) {
	p := h.Checks[s.id()]
	p.Holder, p.Version, p.Held, p.After, p.Looked, p.Changes = "", k.versionText(), k.since, k.after, now, k.changes
	if kindOf(s.kind).changesHands {
		p.Holder, p.Last = k.holderText(), k.last
	}
	h.Checks[s.id()] = p
}

// forget removes the keys that a pattern no longer finds.
func (h history) forget(s *spec, found map[string]*spec) {
	if !s.readsEach() {
		return
	}
	kept := make(map[string]bool)
	for _, one := range found {
		kept[one.id()] = true
	}
	maps.DeleteFunc(h.Checks, func(id string, _ past) bool { return strings.HasPrefix(id, s.id()+"\x00") && !kept[id] })
}

// judged records a verdict, and says since when the check is in its state.
func (h history) judged(v *verdict, now time.Time) {
	p, known := h.Checks[v.spec.id()]
	if !known || p.Since.IsZero() || p.State != v.state {
		p.State, p.Since = v.state, now
	}
	v.since = p.Since
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
