package redis

import (
	"bytes"
	"fmt"
	"net"
	"reflect"
	"strings"
	"testing"

	"github.com/sscli/sscli/internal/testkit/memtest"
)

// TestCosts compares what a client is charged for each kind of object, at its largest and in large numbers, with
// the memory of the objects.
func TestCosts(t *testing.T) {
	if !memtest.Alone(t) {
		return
	}
	name := func(i, n int) []byte { return fmt.Appendf(nil, "%06d%s", i, strings.Repeat("x", n-6)) }
	subscribe := func(k kind, n int) func(*Server, *conn, int) {
		return func(s *Server, c *conn, i int) { s.subscribe(c, k, name(i, n)) }
	}
	queue := func(args ...[]byte) func(*Server, *conn, int) {
		return func(s *Server, c *conn, _ int) {
			if err := c.enqueue(s.table.byName["ping"], args); err != nil {
				t.Fatal(err)
			}
		}
	}
	distinct := func(n int) func(*Server, *conn, int) { // patterns whose bytes all differ, as far as possible
		return func(s *Server, c *conn, i int) {
			text := fmt.Appendf(nil, "*%d", i)
			for j := len(text); j < n; j++ {
				text = append(text, byte(128+j))
			}
			s.subscribe(c, ofPatterns, text)
		}
	}
	nothing := make([][]byte, 50_000)
	for _, test := range []struct {
		object string
		number int
		create func(s *Server, c *conn, i int)
	}{
		{"connection with the buffers that it has for free", 200, func(s *Server, _ *conn, _ int) {
			client, server := net.Pipe()
			c := newConn(s, server)
			s.conns[c] = struct{}{}
			c.in.buf, c.out.pending.last = make([]byte, freeInput), make([]byte, freeOutput)
			s.opts.Reserve(connectionCost)
			_ = client
		}},
		{"name and library", 1, func(_ *Server, c *conn, i int) {
			c.setName(name(i, 1<<20))
			c.library = [2]string{string(name(i, 1<<20)), string(name(i, 1<<20))}
		}},
		{"queued command", 50_000, queue([]byte("PING"))},
		{"queued command of many arguments", 8, queue(nothing...)},
		{"queued command of a long argument", 20, queue(make([]byte, 1<<20))},
		{"subscription", 10_000, subscribe(ofChannels, 10)},
		{"subscription to a long channel", 100, subscribe(ofChannels, 100_000)},
		{"subscription to a shard channel", 10_000, subscribe(ofShards, 10)},
		{"subscription to a pattern", 10_000, subscribe(ofPatterns, 10)},
		{"subscription to a pattern of distinct bytes", 5_000, distinct(64)},
		{"subscription to a long pattern", 500, subscribe(ofPatterns, maxPattern)},
		{"subscription to a long pattern of distinct bytes", 500, distinct(maxPattern)},
		{"watched key", 10_000, func(_ *Server, c *conn, i int) { c.watch(string(name(i, 10))) }},
		{"long watched key", 500, func(_ *Server, c *conn, i int) { c.watch(string(name(i, 60_000))) }},
		{"unread output", 20, func(_ *Server, c *conn, i int) {
			c.w = append(c.w, make([]byte, 1<<20)...)
			c.commit()
		}},
		{"message that follows an incomplete reply", 20, func(_ *Server, c *conn, i int) {
			c.out.partial = true
			c.send(make([]byte, 1<<20), nil)
		}},
		{"large message that follows an incomplete reply", 10, func(_ *Server, c *conn, i int) {
			c.out.partial = true
			c.send(make([]byte, 1<<20), [][]byte{make([]byte, 1<<20)})
		}},
		{"request of many arguments, half of which are here", 1, func(_ *Server, c *conn, _ int) {
			const args = 500_000
			all := bytes.NewReader(fmt.Appendf(nil, "*%d\r\n%s", 2*args, strings.Repeat("$0\r\n\r\n", args)))
			for {
				if _, err := c.in.next(); err != errIncomplete {
					t.Fatal(err)
				}
				if all.Len() == 0 {
					return
				}
				if err := c.in.fill(all); err != nil {
					t.Fatal(err)
				}
			}
		}},
		{"command in a pipeline", 1, func(_ *Server, c *conn, _ int) {
			args := [][]byte{[]byte("MGET")}
			for i := range fullOutput / 6 {
				args = append(args, name(i, 6))
			}
			task := newTask(c.s.table.byName["mget"], args)
			c.pipeline.add(task)
		}},
	} {
		t.Run(test.object, func(t *testing.T) {
			kept := 0
			s, err := New(Options{Reserve: func(n int) bool {
				kept += n
				return true
			}})
			if err != nil {
				t.Fatal(err)
			}
			client, server := net.Pipe()
			defer client.Close()
			c := newConn(s, server)
			c.authenticated = true
			charged := func() int {
				if !c.chargeInput(len(c.in.buf)) {
					t.Error("the charge was refused")
				}
				return kept
			}
			memtest.Compare(t, test.number, charged, func(i int) { test.create(s, c, i) })
			if err := s.Close(); err != nil {
				t.Error(err)
			}
			c.close()
		})
	}
}

// TestEmptied: what clients have filled and emptied gives its memory back.
func TestEmptied(t *testing.T) {
	const names = 50_000
	s, err := New(Options{})
	if err != nil {
		t.Fatal(err)
	}
	client, server := net.Pipe()
	defer client.Close()
	c := newConn(s, server)
	before := memtest.Heap()
	for i := range names {
		name := fmt.Appendf(nil, "%06d", i)
		for k := range kinds {
			s.subscribe(c, k, name)
		}
		c.watch(string(name))
	}
	for name := range c.watched {
		delete(s.watched.M[name], c)
		s.watched.Delete(name)
	}
	c.watched = nil
	s.endSubscriptions(c)
	c.close()
	if left := memtest.Heap() - before; left > 10*names {
		t.Errorf("%d names left %d bytes", names, left)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// TestFields: each field of the objects that clients fill is charged or bounded.
func TestFields(t *testing.T) {
	const (
		fixed   = "connectionCost"
		input   = "chargeInput; TestCosts"
		outputs = "output.charge; TestCosts"
		names   = "nameBytes; TestCosts"
		caller  = "given by the caller, or one for a server"
		running = "of one command; bounded by the limits on requests and replies"
	)
	memtest.Fields(t, map[string]string{
		"conn.s": caller, "conn.nc": fixed, "conn.socket": fixed, "conn.who": "what a login proved; Caller.Memory",
		"conn.in": input, "conn.parsed": input, "conn.sizes": "at most maxHolding", "conn.out": outputs,
		"conn.certified": "of a verified certificate", "conn.onlyUser": "of a verified certificate",
		"conn.name": input, "conn.library": input,
		"conn.w": "committed to output after each command, or in parts of fullOutput; maxPending", "conn.large": "sendLarge, until it is sent", "conn.sentHead": "at most maxHead", "conn.later": "maxPending",
		"conn.pipeline": input, "conn.window": fixed, "conn.turn": "of task",
		"conn.queue": input, "conn.watched": names, "conn.op": running, "conn.version": running, "conn.unmet": "a constant", "conn.cancelEnd": fixed, "conn.ticket": fixed,
		"conn.input": fixed, "conn.subs": names, "conn.lastCommand": "a row of the table",

		"charge.reserve": caller,
		"output.pending": outputs, "output.spare": outputs, "output.held": outputs, "sequence.parts": outputs, "sequence.last": outputs, "output.charged": fixed,
		"requestReader.buf": input, "requestReader.spans": input, "requestReader.args": input,
		"queued.cmd": "a row of the table", "queued.args": "queueCost; TestCosts",
		"pipeline.tasks": "task.cost; TestCosts", "pipeline.latest": "task.cost; TestCosts",
		"task.args": "task.cost; TestCosts", "task.keys": "task.cost; TestCosts", "task.done": "task.cost", "task.sent": "task.cost",

		"subscribed.Map":     names,
		"roster.subscribers": "roster.cost; TestCosts", "roster.parsed": "roster.cost; TestCosts",
		"pattern.Pattern": "roster.cost; TestCosts", "pattern.text": "roster.cost; TestCosts",
		"hub.rosters": "roster.cost; TestCosts", "hub.watching": "of running commands", "hub.message": "at most maxSpare is kept", "hub.channel": "at most the longest channel of an event", "hub.eventName": "a few bytes",
		"cursors.tokens": "at most maxCursors and maxCursorBytes", "cursors.oldest": "at most maxCursors",

		"Server.opts": caller, "Server.intercept": caller, "Server.log": caller, "Server.local": caller, "Server.table": caller, "Server.ctx": caller, "Server.cancel": caller, "Server.runID": caller,
		"Server.active": caller, "Server.watched": names, "Server.hub": "roster.cost; TestCosts", "Server.conns": fixed, "Server.listeners": caller,
		"Server.cursors": "at most maxCursors and maxCursorBytes", "Server.gate": "package admission", "Server.logins": "package admission",
	}, reflect.TypeFor[conn](), reflect.TypeFor[charge](), reflect.TypeFor[output](), reflect.TypeFor[sequence](), reflect.TypeFor[requestReader](), reflect.TypeFor[queued](), reflect.TypeFor[pipeline](),
		reflect.TypeFor[task](), reflect.TypeFor[subscribed](), reflect.TypeFor[subscription](), reflect.TypeFor[roster](), reflect.TypeFor[pattern](), reflect.TypeFor[hub](),
		reflect.TypeFor[cursors](), reflect.TypeFor[Server]())
}
