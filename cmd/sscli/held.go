package main

import (
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/client/mqtt"
	"github.com/sscli/sscli/client/wire"
	"github.com/sscli/sscli/cmd/sscli/internal/config"
)

// A held is the connection that a shell holds for its lines, with the settings that
// they begin with. Lines run one after the other.
type held struct {
	settings config.Settings
	options  client.Options
	session  *client.Session // nil before there was a connection
	tap      tap
	keys     keyMemory
	noScan   bool // the store has refused to list keys
}

// connect makes a session if there is none, or if the one that there is may not
// connect again by itself: what was fatal for it is not for a user who tries again.
func (h *held) connect(ctx context.Context) error {
	if h.session != nil && client.IsPermanent(h.session.Err()) {
		// How it ended was told.
		_ = h.session.Close()
		h.session = nil
	}
	if h.session != nil {
		return nil
	}
	s, err := client.Dial(ctx, h.options)
	if err != nil {
		return err
	}
	h.session = s
	return nil
}

// up tells whether there is a connection, as far as is known.
func (h *held) up() bool { return h.session != nil && h.session.Err() == nil }

// Broker returns the shell's options, with the line's timeout and the line's trace.
func (h *held) Broker(a *app) (client.Options, func() error, error) {
	if a.connectionFlag != "" {
		return client.Options{}, nil, &usageError{
			err:  usage("%s on a line: a shell keeps the connection that it began with", a.connectionFlag),
			hint: "leave the shell, and sscli " + a.connectionFlag + " ... shell",
		}
	}
	file := a.settings.TraceFile
	if file == h.settings.TraceFile {
		file = "" // it has all of the shell already
	}
	print, end, err := a.tracer(a.settings.Trace, file)
	if err != nil {
		return client.Options{}, nil, err
	}
	h.tap.set(print)
	o := h.options
	o.ClientID = "" // for a connection besides the shell's
	if a.settings.Timeout > 0 {
		o.Timeout = a.settings.Timeout
	}
	return o, func() error {
		h.tap.set(nil)
		return end()
	}, nil
}

// A tap lets the trace of a connection be turned on and off.
type tap struct {
	always func(mqtt.Event) // may be nil

	mu   sync.Mutex
	line func(mqtt.Event)
}

func (t *tap) set(print func(mqtt.Event)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.line = print
}

func (t *tap) print(e mqtt.Event) {
	if t.always != nil {
		t.always(e)
	}
	t.mu.Lock()
	line := t.line
	t.mu.Unlock()
	if line != nil {
		line(e)
	}
}

// A keyMemory is the keys that were named or seen in a shell, for completion.
type keyMemory struct{ keys map[string]bool }

const maxRemembered = 10_000

func (m *keyMemory) add(key string) {
	if m.keys == nil {
		m.keys = make(map[string]bool)
	}
	if len(m.keys) < maxRemembered && len(key) <= maxKept {
		m.keys[key] = true
	}
}

// Settings returns the settings that every line begins with.
func (h *held) Settings() config.Settings { return h.settings }

// Session returns the shell's connection, and makes it if there is none.
func (h *held) Session(ctx context.Context) (*client.Session, error) {
	if err := h.connect(ctx); err != nil {
		return nil, err
	}
	return h.session, nil
}

// Saw remembers keys for completion.
func (h *held) Saw(keys ...string) {
	for _, key := range keys {
		if key != "" {
			h.keys.add(key)
		}
	}
}

// KeysWith returns the keys that begin with prefix: those that were seen, and those
// that the store lists at once, if it can.
func (h *held) KeysWith(prefix string) []string {
	found := make(map[string]bool)
	for key := range h.keys.keys {
		if strings.HasPrefix(key, prefix) {
			found[key] = true
		}
	}
	for _, key := range h.scan(prefix) {
		if strings.HasPrefix(key, prefix) {
			found[key] = true
		}
	}
	keys := make([]string, 0, len(found))
	for key := range found {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

// scan asks for one page of keys (protocol.md 9). Whatever is wrong, there are none:
// completion is no place for errors.
func (h *held) scan(prefix string) []string {
	if h.noScan || !h.up() {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), completionTime)
	defer cancel()
	if i := strings.IndexAny(prefix, `*?[\`); i >= 0 {
		prefix = prefix[:i]
	}
	r, err := h.session.Do(ctx, client.Scan(prefix+"*", nil))
	if isA[*wire.StoreError](err) {
		h.noScan = true
	}
	if err != nil {
		return nil
	}
	return r.(client.ScanResult).Keys
}
