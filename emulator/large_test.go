package emulator_test

import (
	"strings"
	"testing"

	"github.com/sscli/sscli/emulator"
	"github.com/sscli/sscli/internal/store"
)

// TestLargeValues: large values are the same for MQTT and Redis clients, and in each reply and notification, though
// none of these has a copy. Later requests of the same connections do not change them.
func TestLargeValues(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]emulator.Options{"memory": {}, "file": {Data: emulator.Data{File: t.TempDir() + "/data"}}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, redisClient := startWithRedis(t, o)
			watcher, other := connect(t, s, "watcher"), connect(t, s, "other")
			watcher.do("KEYNOTIFY k", "+OK")
			value := func(letter string) string { return strings.Repeat(letter, store.Large) }
			blob := func(letter string) string { return "$1048576\r\n" + value(letter) }
			other.do("SET k "+value("a"), "+OK")
			watcher.Expect("notify 6B SET VALUE " + value("a"))
			other.do("SET j "+value("b"), "+OK")
			other.ask("GET k")
			other.ask("GET j")
			other.Expect("PUBACK 0x00", "reply "+blob("a"), "PUBACK 0x00", "reply "+blob("b"))
			redisClient.Expect(t, blob("a")+"\r\n", "GET", "k")
			redisClient.Expect(t, "+OK\r\n", "SET", "k", value("c"))
			redisClient.Expect(t, "+OK\r\n", "SET", "i", value("d"))
			watcher.Expect("notify 6B SET VALUE " + value("c"))
			redisClient.Expect(t, ":1048577\r\n", "APPEND", "k", "x")
			watcher.Expect("notify 6B SET VALUE " + value("c") + "x")
			other.do("SET k small", "+OK")
			watcher.Expect("notify 6B SET VALUE small")
			other.do("VDEL i "+value("d"), ":1")
			other.do("GET j", blob("b"))
			if e, _ := s.Get("j"); string(e.Value) != value("b") {
				t.Errorf("%d bytes: %.20q", len(e.Value), e.Value)
			}
		})
	}
}
