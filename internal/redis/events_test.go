package redis_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/sscli/sscli/emulator"
	"github.com/sscli/sscli/internal/testkit/redistest"
)

// eventRows has rows for all events of strings: commands that prepare the keys, one command, and the events
// that it causes, in order. ' stands for a space in a word.
var eventRows = []struct{ scene, command, events string }{
	{"", "SET k v", "new k, set k"},
	{"SET k v", "SET k v", "set k"},
	{"", "SET k v EX 100", "new k, set k, expire k"},
	{"", "SET k v PXAT 9000000000000", "new k, set k, expire k"},
	{"SET k v EX 100", "SET k w KEEPTTL", "set k"},
	{"SET k v", "SET k w NX", ""},
	{"", "SET k w XX", ""},
	{"", "SET k v GET", "keymiss k, new k, set k"},
	{"SET k v", "SET k v NX GET", ""},
	{"", "SETEX k 100 v", "new k, set k, expire k"},
	{"", "PSETEX k 100000 v", "new k, set k, expire k"},
	{"", "SETNX k v", "new k, set k"},
	{"SET k v", "SETNX k v", ""},
	{"", "GETSET k v", "keymiss k, new k, set k"},
	{"SET k v", "GETSET k v", "set k"},
	{"SET k v", "GETDEL k", "del k"},
	{"", "GETDEL k", "keymiss k"},
	{"SET k v", "GETEX k", ""},
	{"SET k v", "GETEX k EX 100", "expire k"},
	{"SET k v", "GETEX k PXAT 1", "del k"},
	{"SET k v EX 100", "GETEX k PERSIST", "persist k"},
	{"SET k v", "GETEX k PERSIST", ""},
	{"", "GET k", "keymiss k"},
	{"SET a v", "MGET a b c", "keymiss b, keymiss c"},
	{"", "EXISTS k", "keymiss k"},
	{"", "STRLEN k", "keymiss k"},
	{"", "GETRANGE k 0 1", "keymiss k"},
	{"", "TYPE k", "keymiss k"},
	{"", "TTL k", "keymiss k"},
	{"", "PEXPIRETIME k", "keymiss k"},
	{"", "MSET a 1 b 2 a 3", "new a, set a, new b, set b, set a"},
	{"", "MSETNX a 1 b 2", "new a, set a, new b, set b"},
	{"SET b 1", "MSETNX a 1 b 2", ""},
	{"SET a 1, SET c 1", "DEL a b c", "del a, del c"},
	{"SET a 1", "UNLINK a", "del a"},
	{"", "DEL a", ""},
	{"", "INCR k", "new k, incrby k"},
	{"SET k 5", "DECR k", "incrby k"},
	{"SET k 5", "INCRBY k 5", "incrby k"},
	{"SET k 5", "DECRBY k 5", "incrby k"},
	{"SET k x", "INCR k", ""},
	{"SET k 5", "INCRBYFLOAT k 0.5", "incrbyfloat k"},
	{"SET k 5", "APPEND k 0", "append k"},
	{"", "APPEND k 0", "new k, append k"},
	{"SET k 5", "SETRANGE k 2 0", "setrange k"},
	{"", "SETRANGE k 2 0", "new k, setrange k"},
	{"SET k 5", "SETBIT k 7 0", "setbit k"},
	{"SET k 5", "SETBIT k 7 1", ""},
	{"", "SETBIT k 7 0", "new k, setbit k"},
	{"", "GETBIT k 7", "keymiss k"},
	{"SET a 1", "TOUCH a b", "keymiss b"},
	{"", "OBJECT ENCODING k", ""},
	{"", "MEMORY USAGE k", ""},
	{"SET a 1", "RENAME a b", "new b, rename_from a, rename_to b"},
	{"SET a 1, SET b 1", "RENAME a b", "new b, rename_from a, rename_to b"},
	{"SET a 1", "RENAME a a", ""},
	{"SET a 1", "RENAMENX a b", "new b, rename_from a, rename_to b"},
	{"SET a 1, SET b 1", "RENAMENX a b", ""},
	{"SET a 1", "COPY a b", "new b, copy_to b"},
	{"SET a 1, SET b 1", "COPY a b REPLACE", "new b, copy_to b"},
	{"SET a 1, SET b 1", "COPY a b", ""},
	{"", "COPY a b", "keymiss a"},
	{"SET k v", "EXPIRE k 100", "expire k"},
	{"SET k v", "PEXPIREAT k 9000000000000", "expire k"},
	{"SET k v", "EXPIRE k 100 XX", ""},
	{"SET k v", "EXPIRE k -1", "del k"},
	{"SET k v", "PEXPIREAT k 1", "del k"},
	{"", "EXPIRE k 100", ""},
	{"SET k v EX 100", "PERSIST k", "persist k"},
	{"SET k v", "PERSIST k", ""},
	{"SET k v", "FLUSHALL", ""},
	{"SET k v", "KEYS *", ""},
	{"SET k v", "RANDOMKEY", ""},
	{"", "SET 2: v", "new 2:, set 2:"},
}

// TestEvents checks the events of each row, in order and on both channels: those of the emulator, and those of
// a redis-server.
func TestEvents(t *testing.T) {
	t.Parallel()
	t.Run("emulator", func(t *testing.T) {
		s := emulator.Start(t, emulator.Options{Redis: "127.0.0.1:0", RedisNotify: "KEAmn"})
		checkEvents(t, "tcp", redistest.Address(s.RedisURL()))
	})
	t.Run("redis-server", func(t *testing.T) { checkEvents(t, "unix", redistest.StartServer(t)) })
}

func checkEvents(t *testing.T, network, address string) {
	c, sub := redistest.Dial(t, network, address), redistest.Dial(t, network, address)
	c.Expect(t, "+OK\r\n", "CONFIG", "SET", "notify-keyspace-events", "KEAmn")
	sub.Do(t, "PSUBSCRIBE", "__key*__:*")
	heard := func() []string {
		if err := sub.Send("PING", "over"); err != nil {
			t.Fatal(err)
		}
		frames, err := sub.Until("over")
		if err != nil {
			t.Fatal(err)
		}
		var all []string
		for _, f := range frames {
			words := strings.Split(string(f), "\r\n")
			all = append(all, words[6]+" "+words[8])
		}
		return all
	}
	for _, row := range eventRows {
		c.Expect(t, "+OK\r\n", "FLUSHALL")
		for command := range strings.SplitSeq(row.scene, ", ") {
			if command != "" {
				c.Expect(t, "+OK\r\n", strings.Fields(command)...)
			}
		}
		heard()
		c.Do(t, strings.Fields(row.command)...)
		var want []string
		for event := range strings.SplitSeq(row.events, ", ") {
			if name, key, ok := strings.Cut(event, " "); ok {
				want = append(want, "__keyspace@0__:"+key+" "+name, "__keyevent@0__:"+name+" "+key)
			}
		}
		if got := heard(); !slices.Equal(got, want) {
			t.Errorf("after %q, %s tells %q, want %q", row.scene, row.command, got, want)
		}
	}
}
