package store_test

import (
	"runtime"
	"strings"
	"testing"
	"weak"

	"github.com/sscli/sscli/internal/store"
)

// TestLargeValues: the store neither copies nor changes a large value, in whatever way the key changes.
func TestLargeValues(t *testing.T) {
	l := newLab(store.Options{})
	l.do(step{do: "KEYNOTIFY k"})
	before := l.Bytes()
	first, second := strings.Repeat("1", store.Large), strings.Repeat("2", store.Large)
	set := func(value string) []byte {
		t.Helper()
		payload := request("SET", "k", value)
		resp := l.Do(&store.Request{ClientID: "c", Payload: payload, Timestamp: []byte("1696374425000:0:c")}, nil)
		if string(resp.Payload) != "+OK\r\n" {
			t.Fatalf("%q", resp.Payload)
		}
		if got := string(l.entry(t, []byte("k")).Value()); got != value {
			t.Errorf("the value is %d bytes %.10q", len(got), got)
		}
		notes := l.TakeNotifications()
		want := string(request("NOTIFY", "SET", "VALUE", value))
		if len(notes) != 1 || string(store.Whole(notes[0].Payload, notes[0].Value)) != want {
			t.Errorf("%d notifications", len(notes))
		}
		return payload
	}
	get := func() []byte {
		t.Helper()
		resp := l.Do(&store.Request{ClientID: "c", Payload: request("GET", "k")}, []byte("before "))
		if want := "before $1048576\r\n"; string(resp.Payload) != want || resp.Value == nil {
			t.Errorf("GET: %.30q, want %q and a value", resp.Payload, want)
		}
		return resp.Value
	}
	payload := set(first)
	one := get()
	if &one[0] != &payload[len(payload)-2-len(first)] {
		t.Error("the value was copied")
	}
	set(second)
	two := get()
	set(first[1:])
	set(first)
	set("small")
	if size := l.Bytes(); size > before+1000 {
		t.Errorf("a small value takes %d bytes", size-before)
	}
	set(second)
	l.do(step{do: "DEL k"})
	if size := l.Bytes(); size != before {
		t.Errorf("%d bytes are charged for nothing", size-before)
	}
	if string(one) != first || string(two) != second {
		t.Error("a value has changed after the store replaced it")
	}
	l.Restore([]byte("k"), one, []byte("1:0:n"), nil, 0, false)
	if restored := get(); &restored[0] == &one[0] {
		t.Error("Restore keeps the caller's memory")
	}
	resp := l.Do(&store.Request{ClientID: "c", Payload: request("SET", "k", first, "PX", strings.Repeat("0", 100)+"1"), Timestamp: []byte("1696374425000:0:c")}, nil)
	if !strings.HasPrefix(string(resp.Payload), "-ERR") {
		t.Errorf("a number of 101 digits, which would stay in memory with the value: %q", resp.Payload)
	}
}

// TestReleasedValues: a large value is not kept in memory after its key was deleted, whatever requests had read it.
func TestReleasedValues(t *testing.T) {
	t.Parallel()
	s := store.New(store.Options{})
	do := func(payload []byte) {
		t.Helper()
		s.IsCostly(store.AppendWords(nil, payload))
		if r := s.Do(&store.Request{ClientID: "c", Payload: payload, Timestamp: []byte("1696374425000:0:c")}, nil); r.Payload[0] == '-' {
			t.Errorf("%.30q", r.Payload)
		}
	}
	set := func() weak.Pointer[byte] {
		payload := request("SET", "k", strings.Repeat("v", store.Large))
		do(payload)
		return weak.Make(&payload[0])
	}
	released := func(after string, p weak.Pointer[byte]) {
		t.Helper()
		if runtime.GC(); p.Value() != nil {
			t.Errorf("after %s, the value is still in memory", after)
		}
	}
	value := set()
	do(request("SCAN", "*"))
	do(request("DEL", "k"))
	released("SCAN", value)
	refused := func() weak.Pointer[byte] {
		payload := request("SET", "k", strings.Repeat("v", store.Large), "PX", "1000")
		s.IsCostly(store.AppendWords(nil, payload)) // the request is then refused for another reason
		return weak.Make(&payload[0])
	}()
	do(request("GET", "k"))
	released("IsCostly", refused)
	runtime.KeepAlive(s)
}
