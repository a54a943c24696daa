package broker

import (
	"bytes"
	"fmt"
	"net"
	"testing"
)

// writingClient returns a client whose outbox a goroutine writes. b is locked.
func writingClient(t *testing.T, b *Broker) *Client {
	near, far := net.Pipe()
	t.Cleanup(func() { far.Close() })
	c := &Client{b: b, Version: version5, nc: near, raw: near, busy: true}
	c.wake.L = &b.mu
	c.session = b.newSession(&Identity{ID: "c", Username: ""})
	c.session.client = c
	return c
}

// TestTornOutbox: a client that reads too slowly gets DISCONNECT, unless it has got a part of a packet and would take
// DISCONNECT for the rest. Nothing stays charged.
func TestTornOutbox(t *testing.T) {
	value := make([]byte, LargePayload)
	for _, test := range []struct {
		end   string
		taken int // number of parts that are being written or have been written
		torn  bool
	}{{"", 0, false}, {"", 1, true}, {"", 2, false}, {"", 3, false}, {"end", 0, false}, {"end", 1, true}, {"end", 2, true}, {"end", 3, false}} {
		t.Run(fmt.Sprintf("%q %d", test.end, test.taken), func(t *testing.T) {
			b := New(Options{Limits: Limits{OutboxBytes: 1}})
			defer b.Close()
			b.Lock()
			defer b.Unlock()
			before := b.kept.Load()
			c := writingClient(t, b)
			m := message{topic: "t", value: value, end: test.end}
			if !c.appendPublish(&delivery{msg: &m}, 0, false) {
				t.Fatal("not sent")
			}
			want := cap(c.out)
			for _, p := range c.parts {
				want += cap(p.bytes)
			}
			if c.charged != want {
				t.Errorf("%d bytes are charged, want %d", c.charged, want)
			}
			for range test.taken {
				if c.takeOutbox(); c.queued < len(c.writing) {
					t.Errorf("%d bytes are queued, and %d are written", c.queued, len(c.writing))
				}
				c.endWrite()
			}
			c.queued++ // more than OutboxBytes, also if all is written
			if c.ensureRoom(1) {
				t.Error("there is room")
			}
			c.queued--
			if c.closed != test.torn || !test.torn && (len(c.parts) > 0 || len(c.out) == 0 || c.out[0] != typeDisconnect<<4) {
				t.Errorf("closed %t with %d parts and %q, want %t", c.closed, len(c.parts), c.out, test.torn)
			}
			c.chargeBuffers(-c.charged)
			if kept := b.kept.Load(); kept > before {
				t.Errorf("%d bytes stay charged", kept-before)
			}
		})
	}
}

// TestOutboxNeverEmpty: packets that were sent no longer count as waiting, even if the outbox is never empty.
func TestOutboxNeverEmpty(t *testing.T) {
	const limit = 4
	b := New(Options{Limits: Limits{Outbox: limit}})
	defer b.Close()
	b.Lock()
	defer b.Unlock()
	c := writingClient(t, b)
	m := message{topic: "t", value: make([]byte, LargePayload), end: "end"}
	for i := range 3 * limit {
		if !c.ensureRoom(1) {
			t.Fatalf("no room after %d messages", i)
		}
		c.appendPublish(&delivery{msg: &m}, 0, false)
		if c.waiting != min(i+1, 2) {
			t.Errorf("%d packets wait after %d messages", c.waiting, i+1)
		}
		for i > 0 && len(c.parts) > 2 {
			c.takeOutbox()
			c.endWrite()
		}
	}
	for c.toSend() {
		c.takeOutbox()
		c.endWrite()
	}
	if c.waiting != 0 {
		t.Errorf("%d packets wait in an empty outbox", c.waiting)
	}
}

// TestBlocksAreUsedAgain: the blocks of a client that is disconnected because it does not read, or that is cut, serve
// others. Nobody else writes them, and nothing stays charged.
func TestBlocksAreUsedAgain(t *testing.T) {
	for name, end := range map[string]func(*Client){
		"disconnected": func(c *Client) {
			c.b.opts.OutboxBytes = 1
			if c.ensureRoom(1) {
				t.Error("there is room")
			}
			c.chargeBuffers(-c.charged) // of DISCONNECT
		},
		"cut": func(c *Client) {
			c.Cut()
			c.dischargeAll()
		},
	} {
		b := New(Options{})
		b.Lock()
		before := b.kept.Load()
		c := writingClient(t, b)
		m := message{topic: "t", payload: make([]byte, 100<<10)}
		for range 2 * maxSpares {
			c.appendPublish(&delivery{msg: &m}, 0, false)
		}
		c.takeOutbox() // is being written
		end(c)
		if len(b.spares) != maxSpares {
			t.Errorf("%s: %d blocks can be used again", name, len(b.spares))
		}
		for _, spare := range b.spares {
			if spare = spare[:1]; &spare[0] == &c.writing[0] || len(c.out) > 0 && &spare[0] == &c.out[0] {
				t.Errorf("%s: a block that is still to be written", name)
			}
		}
		c.endWrite()
		if s := b.sessions["c"]; s != nil {
			b.removeSession(s)
		}
		if kept := b.kept.Load(); kept > before {
			t.Errorf("%s: %d bytes stay charged", name, kept-before)
		}
		b.Unlock()
		b.Close()
	}
}

// TestSharedMemoryStays: memory that a client shares with others is never used again for an outbox, whatever its size.
func TestSharedMemoryStays(t *testing.T) {
	for _, size := range []int{1, block, block + 1, maxSpare, maxSpare + 1, LargePayload} {
		b := New(Options{})
		b.Lock()
		c := writingClient(t, b)
		value := bytes.Repeat([]byte("v"), size)
		c.appendPublish(&delivery{msg: &message{topic: "t", value: value, end: "end"}}, 0, false)
		for c.toSend() {
			c.takeOutbox()
			c.endWrite()
		}
		for range 2 * maxSpares {
			c.queuePacket(0, make([]byte, block))
		}
		if !bytes.Equal(value, bytes.Repeat([]byte("v"), size)) {
			t.Errorf("a value of %d bytes was overwritten", size)
		}
		b.Unlock()
		b.Close()
	}
}
