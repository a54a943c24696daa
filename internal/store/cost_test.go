package store

import (
	"bytes"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/sscli/sscli/internal/testkit/memtest"
)

// TestCosts compares what is charged for each kind of object, at its largest and in large numbers, with the
// memory of the objects.
func TestCosts(t *testing.T) {
	if !memtest.Alone(t) {
		return
	}
	name := func(i, n int) []byte { return fmt.Appendf(nil, "%06d%s", i, strings.Repeat("x", n-6)) }
	put := func(key, value int, fence []byte, expires bool) func(*Store, int) {
		return func(s *Store, i int) {
			w := Write{Key: name(i, key), Value: make([]byte, value)}
			if expires {
				w.Expires = time.Now().Add(time.Duration(i) * time.Hour)
			}
			s.put(0, w, fence, hlc{})
		}
	}
	token := bytes.Repeat([]byte("1"), 255)
	watch := func(client func(i int) []byte, key func(i int) []byte) func(*Store, int) {
		return func(s *Store, i int) {
			if !s.watch(string(client(i)), string(key(i))) {
				t.Fatal("refused")
			}
		}
	}
	same := func(n int) func(int) []byte { return func(int) []byte { return name(0, n) } }
	each := func(n int) func(int) []byte { return func(i int) []byte { return name(i, n) } }
	for _, test := range []struct {
		object string
		number int
		create func(s *Store, i int)
	}{
		{"key", 100_000, put(6, 0, nil, false)},
		{"key that expires", 100_000, put(6, 0, nil, true)},
		{"key of ordinary size", 100_000, put(24, 100, nil, false)},
		{"key with a fence that expires", 50_000, put(20, 20, token, true)},
		{"long key", 500, put(maxKey, 0, nil, false)},
		{"long value", 10, put(6, 4<<20, nil, false)},
		{"registration", 20_000, watch(same(20), each(20))},
		{"registration of each client", 20_000, watch(each(20), each(20))},
		{"registration of each client for one key", 20_000, watch(each(20), same(20))},
		{"registration of one client for a long key", 500, watch(same(20), each(60_000))},
		{"registration of a client with a long id", 500, watch(each(60_000), each(20))},
	} {
		t.Run(test.object, func(t *testing.T) {
			reserved := 0
			s := New(Options{Reserve: func(n int) bool {
				reserved += n
				return true
			}})
			memtest.Compare(t, test.number, func() int { return s.Bytes() + reserved }, func(i int) { test.create(s, i) })
			// What ended is no longer in memory, and was charged as it is discharged.
			before := memtest.Heap()
			for id := range s.watching.M {
				for release := s.Disconnect(id); release != nil && release(); {
				}
			}
			s.index.clear()
			if left := memtest.Heap() - before + test.number*s.Bytes(); reserved != 0 || s.Bytes() != 0 || s.Registrations() != 0 || left > 0 {
				t.Errorf("%d and %d bytes are charged for nothing, %d registrations, %d bytes", reserved, s.Bytes(), s.Registrations(), left)
			}
		})
	}
}

// TestFields: each field of the objects that are charged is charged.
func TestFields(t *testing.T) {
	const (
		byRegistration = "registrationCost; TestCosts"
		byBytes        = "Store.Bytes; TestCosts"
		caller         = "given by the caller, one for a store"
		reused         = "reused by each request"
	)
	memtest.Fields(t, map[string]string{
		"Store.opts": caller, "Store.clock": "the last version", "Store.index": byBytes,
		"Store.watchers": byRegistration, "Store.watching": byRegistration,
		"Store.queue": "of one step: at most maxReusedQueue is kept",
		"Store.words": "cleared after a large request", "Store.version": reused, "Store.page": "of one page of SCAN",
		"Store.seal": "one for a store", "Store.change": reused, "Store.bare": "a constant", "Store.versioned": "a constant",

		"watcher.clientID": byRegistration, "watcher.keys": byRegistration,

		"index.hash": "one for a store", "index.arena": byBytes, "index.byHash": byBytes, "index.ordered": byBytes, "index.expiries": byBytes,
		"index.wanted": reused, "index.buffer": "at most maxSlot is kept",

		"arena.blocks": byBytes, "arena.open": byBytes, "arena.unused": byBytes, "block.data": byBytes,
		"block.large":  byBytes + "; it may hold the request of at most 4/3 of its size",
		"Entry.record": "a view of the arena", "Entry.large": "a view of the arena",
	}, reflect.TypeFor[Store](), reflect.TypeFor[watcher](), reflect.TypeFor[index](), reflect.TypeFor[expiry](),
		reflect.TypeFor[arena](), reflect.TypeFor[block](), reflect.TypeFor[Entry]())
}
