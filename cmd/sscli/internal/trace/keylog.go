package trace

import (
	"strings"
	"sync"
	"time"

	"github.com/sscli/sscli/internal/mqtt"
	"github.com/sscli/sscli/internal/wire"
)

// A KeyLog collects the packets on a connection that are about a key, as lines of text. Its methods
// may be called concurrently.
type KeyLog struct {
	start time.Time

	mu       sync.Mutex
	requests map[string]string // keys of requests without a reply, by correlation data
	lines    []KeyLine
}

// A KeyLine is a packet about a key, as a line of text.
type KeyLine struct{ Key, Text string }

// maxPending is the maximum number of requests without a reply that a KeyLog remembers, and also of
// lines that it keeps for Drain.
const maxPending = 4096

// NewKeyLog returns an empty KeyLog.
func NewKeyLog() *KeyLog { return &KeyLog{start: time.Now(), requests: make(map[string]string)} }

// Add adds a packet if it is about a key. It drops the packet if maxPending lines are waiting for
// Drain.
func (l *KeyLog) Add(e mqtt.Event) {
	if e.Message == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if key, ok := l.keyOf(e); ok && len(l.lines) < maxPending {
		l.lines = append(l.lines, KeyLine{key, strings.TrimSpace(Line(e, e.Time.Sub(l.start)))})
	}
}

// keyOf returns the key that a PUBLISH is about. To find the key of a reply, it remembers the key of
// the request. l.mu must be held.
func (l *KeyLog) keyOf(e mqtt.Event) (key string, ok bool) {
	m := e.Message
	if _, key, ok = wire.ParseNotifyTopic(m.Topic); ok {
		return key, true
	}
	id := string(m.Correlation)
	if !e.Sent {
		key, ok = l.requests[id]
		delete(l.requests, id)
		return key, ok
	}
	words, err := wire.ParseRequest(m.Payload)
	if err != nil || len(words) < 2 || string(words[0]) == wire.VerbScan {
		return "", false
	}
	if len(l.requests) >= maxPending {
		clear(l.requests)
	}
	l.requests[id] = string(words[1])
	return string(words[1]), true
}

// Drain returns the lines that were added since the last call.
func (l *KeyLog) Drain() []KeyLine {
	l.mu.Lock()
	defer l.mu.Unlock()
	lines := l.lines
	l.lines = nil
	return lines
}
