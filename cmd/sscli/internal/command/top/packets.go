package top

import (
	"strings"
	"sync"
	"time"

	"github.com/sscli/sscli/client/mqtt"
	"github.com/sscli/sscli/client/wire"
	"github.com/sscli/sscli/cmd/sscli/internal/trace"
)

// A packet is one line of a trace, and the key that it is about.
type packet struct{ key, text string }

// A tap collects the packets of a connection that are about a key.
type tap struct {
	start time.Time

	mu    sync.Mutex
	asked map[string]string // key by correlation data, of requests without a reply
	seen  []packet
}

// maxAsked bounds the requests that are remembered: those whose replies are lost stay.
const maxAsked = 4096

// maxSeen bounds the packets that wait to be taken.
const maxSeen = 4096

func newTap() *tap { return &tap{start: time.Now(), asked: make(map[string]string)} }

// packet takes a packet. It may be called concurrently.
func (t *tap) packet(e mqtt.Event) {
	if e.Message == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	key, ok := t.key(e)
	if !ok || len(t.seen) >= maxSeen {
		return
	}
	t.seen = append(t.seen, packet{key, strings.TrimSpace(trace.Line(e, e.Time.Sub(t.start)))})
}

// key returns the key that a PUBLISH is about.
func (t *tap) key(e mqtt.Event) (key string, ok bool) {
	m := e.Message
	if _, key, ok = wire.ParseNotifyTopic(m.Topic); ok {
		return key, true
	}
	id := string(m.Correlation)
	if !e.Sent {
		key, ok = t.asked[id]
		delete(t.asked, id)
		return key, ok
	}
	words, err := wire.ParseRequest(m.Payload)
	if err != nil || len(words) < 2 || string(words[0]) == wire.VerbScan {
		return "", false
	}
	if len(t.asked) >= maxAsked {
		clear(t.asked)
	}
	t.asked[id] = string(words[1])
	return string(words[1]), true
}

// take returns the packets since the last call.
func (t *tap) take() []packet {
	t.mu.Lock()
	defer t.mu.Unlock()
	seen := t.seen
	t.seen = nil
	return seen
}
