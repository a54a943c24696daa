package redis

import (
	"bytes"
	"runtime"
	"testing"
)

// allocated returns the number of bytes that a function allocates.
func allocated(do func()) int {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	do()
	runtime.ReadMemStats(&after)
	return int(after.TotalAlloc - before.TotalAlloc)
}

// TestLongWords: a command neither copies nor shows a long word in the place of an option, a number or a name, because
// other clients may wait meanwhile.
func TestLongWords(t *testing.T) {
	const size, most = 4 << 20, 64 << 10
	s, c, _ := unserved(t, Options{})
	c.authenticated = true
	word := bytes.Repeat([]byte{0xff}, size)
	zeros := bytes.Repeat([]byte{'0'}, size)
	var err error
	const long, digits = "(word)", "(zeros)"
	for _, words := range [][]string{
		{"SET", "k", "v", long}, {"SET", "k", "v", "EX", long}, {"GETEX", "k", long},
		{"SS.SET", "k", "v", long}, {"SS.SET", "k", "v", "PX", digits}, {"SS.DEL", "k", long}, {"SS.VDEL", "k", "v", long},
		{"EXPIRE", "k", "10", long}, {"EXPIRE", "k", "10", "NX", long}, {"EXPIRE", "k", digits},
		{"SCAN", long}, {"SCAN", digits}, {"SCAN", "0", long, "1"}, {"SCAN", "0", "COUNT", digits}, {"SCAN", "0", "MATCH", long},
		{"CONFIG", "SET", long, "v"}, {"CONFIG", "SET", "save", long}, {"CONFIG", "SET", "notify-keyspace-events", long}, {"CONFIG", "GET", long},
		{"CLIENT", "SETINFO", long, "v"}, {"CLIENT", "REPLY", long}, {"CLIENT", "LIST", "TYPE", long}, {"CLIENT", "LIST", "ID", digits},
		{"CLIENT", "KILL", long}, {"CLIENT", "KILL", long, "v"}, {"CLIENT", "KILL", "ADDR", long}, {"CLIENT", "KILL", "TYPE", long}, {"CLIENT", "KILL", "USER", long},
		{"HELLO", "3", long}, {"HELLO", "3", "AUTH", long, "p"}, {"AUTH", long, "p"},
		{"COMMAND", "INFO", long}, {"COMMAND", "DOCS", long}, {"COMMAND", "LIST", "FILTERBY", "PATTERN", long}, {"INFO", long},
		{"PUBSUB", long}, {"PUBSUB", "CHANNELS", long}, {long, "k"}, {"nosuch", long},
	} {
		args := make([][]byte, len(words))
		for i, w := range words {
			args[i] = map[string][]byte{long: word, digits: zeros}[w]
			if args[i] == nil {
				args[i] = []byte(w)
			}
		}
		c.w, c.mark = make([]byte, 0, 1<<10), 0
		n := allocated(func() {
			cmd, unknownSub := s.table.lookup(args)
			switch {
			case cmd == nil:
				err = unknownCommand(args)
			case unknownSub:
				err = unknownSubcommand(cmd, args[1])
			default:
				c.lastCommand.Store(cmd)
				err = cmd.run(c, args)
			}
			if err != nil {
				c.fail(err)
			}
		})
		if n > most || len(c.w) > most {
			t.Errorf("%q: allocates %d bytes, replies with %d, %.60q", words, n, len(c.w), c.w)
		}
	}
	for _, text := range [][]byte{word, zeros, bytes.Repeat([]byte{'+'}, size)} {
		if n := allocated(func() { parseFloat(text) }); n > most {
			t.Errorf("parseFloat of %d bytes %.10q… allocates %d bytes", size, text, n)
		}
	}
}
