package redis

import (
	"context"
	"math/big"
	"strings"
	"testing"
)

// A countedBackend holds one value for every key, and counts the operations.
type countedBackend struct {
	Backend
	value []byte
	n     int
}

func (b *countedBackend) Do(_ context.Context, _ *Caller, ops []Op) {
	b.n += len(ops)
	for i := range ops {
		ops[i].Yes, ops[i].Entry.Value = true, b.value
	}
}

// TestWorkBeforeLimits: what EXEC and the line do before a command runs is limited, too, because other clients wait
// meanwhile.
func TestWorkBeforeLimits(t *testing.T) {
	b := &countedBackend{value: make([]byte, 100)}
	s, c, _ := unserved(t, Options{Backend: b})
	exists := s.table.byName["exists"]
	keys := make([][]byte, 1+2*maxLooked)
	var err error
	count := func(do func()) int {
		b.n = 0
		do()
		return b.n
	}
	queue := []queued{{exists, keys}, {exists, keys}}
	c.queue = queue
	if n := count(c.makeRoomForReplies); n > 0 {
		t.Errorf("EXEC without MULTI looks at %d keys", n)
	}
	c.multi, c.abort = true, true
	if n := count(c.makeRoomForReplies); n > 0 {
		t.Errorf("EXEC of a refused transaction looks at %d keys", n)
	}
	c.abort = false
	c.dirty.Store(true)
	if n := count(c.makeRoomForReplies); n > 0 {
		t.Errorf("EXEC after a change of a watched key looks at %d keys", n)
	}
	c.dirty.Store(false)
	if n := count(c.makeRoomForReplies); n != maxLooked {
		t.Errorf("EXEC looks at %d keys, want %d", n, maxLooked)
	}
	b.value = make([]byte, 1<<20)
	if n := count(c.makeRoomForReplies); n > maxReplies>>20 {
		t.Errorf("EXEC looks at %d keys of 1 MiB, though the replies cannot be larger than %d bytes", n, maxReplies)
	}
	if n := count(func() { c.isCostly(exists, keys) }); n > manyArgs {
		t.Errorf("the line looks at %d keys", n)
	}

	c.w, c.executing = make([]byte, 0, 1<<10), true
	if n := allocated(func() { c.bulk(b.value); c.bulk(make([]byte, 2*maxReplies)) }); n > 2*maxReplies+4<<20 {
		t.Errorf("a reply that is dropped is copied: %d bytes allocated", n)
	}
	if !c.dropped || len(c.w) > 0 {
		t.Errorf("dropped %v, %d bytes", c.dropped, len(c.w))
	}

	large := make([]byte, maxWritten)
	c.written = 1
	if n := allocated(func() { err = c.keepValues([][]byte{large}) }); n > 1<<20 || err != nil {
		t.Errorf("a value that must not be written is kept: %d bytes allocated, %v", n, err)
	}
	for _, words := range [][]string{{"SET", "k"}, {"APPEND", "k"}, {"SETRANGE", "k", "1"}, {"SS.SET", "k"}} {
		var args [][]byte
		for _, w := range words {
			args = append(args, []byte(w))
		}
		args = append(args, large)
		c.w, c.mark, c.dropped, c.written = make([]byte, 0, 1<<10), 0, false, 1
		if n := allocated(func() { c.execute(s.table.find(args[0]), args) }); n > 1<<20 {
			t.Errorf("a value that %s must not write is copied: %d bytes allocated, %q", words[0], n, c.w)
		}
		if want := "-" + errManyWritten.Error() + "\r\n"; string(c.w) != want {
			t.Errorf("%s: %q, want %q", words[0], c.w, want)
		}
	}
}

// TestWatchersOnce: only the first change of a key looks at the connections that watch it.
func TestWatchersOnce(t *testing.T) {
	s, c, _ := unserved(t, Options{Backend: &countedBackend{}})
	c.watch("k")
	c.watch("j")
	s.Changed(Change{Key: []byte("k"), Kind: Stored})
	if !c.dirty.Load() || len(s.watched.M["k"]) > 0 || len(s.watched.M["j"]) != 1 {
		t.Errorf("dirty %v, %d connections watch k, %d watch j", c.dirty.Load(), len(s.watched.M["k"]), len(s.watched.M["j"]))
	}
	c.unwatch()
	c.watch("k")
	if len(s.watched.M) != 1 || c.dirty.Load() || c.nameBytes != len("k")+watchedCost {
		t.Errorf("%d keys are watched, dirty %v, %d bytes", len(s.watched.M), c.dirty.Load(), c.nameBytes)
	}
}

// TestFloatWork: INCRBYFLOAT counts the digits of its numbers, and calculates none that Redis does not show.
func TestFloatWork(t *testing.T) {
	b := &countedBackend{value: []byte("0")}
	_, c, _ := unserved(t, Options{Backend: b})
	c.executing = true
	digits := strings.Repeat("7", 4900)
	for _, test := range []struct {
		value, by string
		looked    int
	}{
		{"1.25", "12345678901234567890.5", 0},
		{"0", "1e-4930", 0},
		{"0", "1e4900", 1000},
		{digits, "1", 2000},
		{"1", digits, 2000},
	} {
		b.value, c.looked = []byte(test.value), 0
		if err := runIncrByFloat(c, [][]byte{nil, []byte("k"), []byte(test.by)}); err != nil || c.looked < test.looked || c.looked > 2*test.looked {
			t.Errorf("%.10s + %.10s: looked at %d keys, want %d or more; %v", test.value, test.by, c.looked, test.looked, err)
		}
		c.w = c.w[:0]
		c.looked = maxLooked
		if err := runIncrByFloat(c, [][]byte{nil, []byte("k"), []byte(test.by)}); err != nil != (test.looked > 0) {
			t.Errorf("%.10s + %.10s at the limit: %v", test.value, test.by, err)
		}
	}
	f, _ := parseFloat([]byte("-1e-4930"))
	if n := allocated(func() {
		for range 100 {
			formatFloat(f)
		}
	}); n > 10_000 {
		t.Errorf("formatting -1e-4930 allocates %d bytes", n/100)
	}
	for exp := -70; exp < -50; exp++ {
		f := new(big.Float).SetPrec(mantissaBits).SetMantExp(big.NewFloat(0.99), exp)
		want := strings.TrimSuffix(strings.TrimRight(f.Text('f', 17), "0"), ".")
		if got := string(formatFloat(f)); got != want {
			t.Errorf("%v: %s, want %s", f, got, want)
		}
	}
}
