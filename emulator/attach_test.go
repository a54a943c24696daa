package emulator_test

import (
	"errors"
	"testing"

	"github.com/sscli/sscli/client/mqtt"
	"github.com/sscli/sscli/client/wire"
	"github.com/sscli/sscli/emulator"
	"github.com/sscli/sscli/emulator/mosquitto"
)

// TestAttachedData restarts a store that is attached to a broker and kept in a file, and ends
// one whose disk has an error: it answers nothing more.
func TestAttachedData(t *testing.T) {
	address := mosquitto.Start(t, "set_tcp_nodelay true", mosquitto.Anonymous).Addresses[0]
	var broken stalled
	data := newData(t).Around(broken.commit)
	attach := func() *emulator.Attached {
		t.Helper()
		a, err := emulator.Attach(t.Context(), mqtt.Options{Address: address, ClientID: "store"}, emulator.EngineOptions{}, data)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	store := attach()
	c, err := ask(t.Context(), address, "client")
	if err != nil {
		t.Fatal(err)
	}
	defer c.conn.Close()
	request := func(want string, words ...string) wire.Version {
		t.Helper()
		reply, version, err := c.wait(t.Context(), "", words...)
		if err != nil || reply != want {
			t.Fatalf("%q: %q, %v; want %q", words, reply, err, want)
		}
		return version
	}
	first := request("+OK\r\n", "SET", "k", "1")
	for range 3 {
		if err := store.Close(); err != nil {
			t.Fatal(err)
		}
		store = attach()
		if again := request("$1\r\n1\r\n", "GET", "k"); !again.Equal(first) {
			t.Errorf("the version %v after a restart, want %v", again, first)
		}
	}
	if next := request("+OK\r\n", "SET", "k", "2"); next.Compare(first) <= 0 {
		t.Errorf("the version %v, after %v", next, first)
	}

	broken.mu.Lock()
	broken.err = errors.New("input/output error")
	broken.mu.Unlock()
	answered := false
	if err := c.do(t.Context(), "", []string{"SET", "k", "3"}, func(string, wire.Version) { answered = true }); err != nil {
		t.Fatal(err)
	}
	<-store.Done()
	if err := store.Close(); !errors.Is(err, broken.err) {
		t.Errorf("close: %v", err)
	}
	broken.mu.Lock()
	broken.err = nil
	broken.mu.Unlock()
	store = attach()
	request("$1\r\n2\r\n", "GET", "k")
	if answered {
		t.Error("a write that was not kept was answered")
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
}
