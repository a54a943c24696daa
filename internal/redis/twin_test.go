package redis_test

import (
	"bytes"
	"flag"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sscli/sscli/emulator"
	"github.com/sscli/sscli/internal/testkit/redistest"
)

var (
	twinCommands = flag.Int("twin-commands", 5000, "commands of TestTwin")
	twinSeed     = flag.Uint64("twin-seed", 0, "seed of TestTwin; 0: a new one")
)

// TestTwin sends the same random commands to a redis-server and to the emulator. Replies and
// messages must be the same to the byte, with these exceptions:
//
//   - times that depend on the clock (TTL, PTTL, EXPIRETIME, PEXPIRETIME) may differ by the longest
//     delay of a test;
//   - an expiry after the year 292,277 becomes that year;
//   - after a SET whose expiry (EXAT, PXAT) has passed, the emulator sends `expired` at once, and
//     Redis when the key is next accessed;
//   - KEYS and SCAN return keys in their order, RANDOMKEY a random key;
//   - if several patterns match a message, Redis sends its copies in the order of a hash table;
//   - connection ids differ;
//   - a SETBIT that changes no bit does not change the encoding, and OBJECT REFCOUNT does not count
//     references in queued commands;
//   - HELP omits unsupported subcommands, see TestHelp.
//
// Not compared, because the store does not have them as Redis does: other types, scripts, databases, empty
// keys, INFO, COMMAND. See TestClientList for CLIENT INFO and LIST, and TestProtocolTwin for malformed
// requests and CLIENT REPLY.
func TestTwin(t *testing.T) {
	t.Parallel()
	seed := *twinSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("-twin-seed=%d", seed)
	server := emulator.Start(t, emulator.Options{Redis: "127.0.0.1:0"})
	tw := &twin{t: t, rand: rand.New(rand.NewPCG(seed, 0)), addresses: [2][2]string{{"unix", redistest.StartServer(t)}, {"tcp", redistest.Address(server.RedisURL())}}}
	for range 6 {
		tw.clients = append(tw.clients, tw.dial())
	}
	for tw.sent < *twinCommands && !t.Failed() {
		tw.step()
	}
	tw.settle()
	t.Logf("%d commands, %d messages", tw.sent, tw.messages)
	if tw.messages == 0 {
		t.Error("no message came")
	}
}

// TestHelp: the replies to HELP are those of a redis-server, without the lines of unsupported subcommands.
func TestHelp(t *testing.T) {
	t.Parallel()
	_, ours := start(t, emulator.Options{})
	theirs := redistest.Dial(t, "unix", redistest.StartServer(t))
	for _, name := range []string{"client", "config", "command", "pubsub", "object", "memory"} {
		lines := func(c *redistest.Client) []string { return strings.Split(c.Do(t, name, "Help"), "\r\n")[1:] }
		rest, got := lines(theirs), lines(ours)
		if len(got) < 5 {
			t.Errorf("%s HELP: %q", name, got)
		}
		for _, l := range got {
			at := slices.Index(rest, l)
			if at < 0 {
				t.Errorf("%s HELP: redis-server does not reply with %q, or not there", name, l)
				break
			}
			rest = rest[at+1:]
		}
		if strings.Join(rest, "") != "" {
			t.Errorf("%s HELP: %q is missing at the end", name, rest)
		}
		for _, sub := range []string{"help", "bad"} {
			if got, want := ours.Do(t, name, sub, "x"), theirs.Do(t, name, sub, "x"); got != want {
				t.Errorf("%s %s x: %q, want %q", name, sub, got, want)
			}
		}
	}
}

// TestClientList: CLIENT LIST shows the same about a client as a redis-server. How long a client has been idle
// depends on the clock: at most as long as it is connected, and a second more if a clock of whole seconds is read.
func TestClientList(t *testing.T) {
	t.Parallel()
	s, _ := start(t, emulator.Options{})
	addresses := [2][2]string{{"unix", redistest.StartServer(t)}, {"tcp", redistest.Address(s.RedisURL())}}
	idle := regexp.MustCompile(` idle=\S*`)
	wanted := regexp.MustCompile(` (name|idle|flags|db|sub|psub|ssub|multi|qbuf|omem|events|cmd|user|redir|resp)=\S*`)
	for _, requests := range []string{
		"", "get a\r\n", "client setname x\r\n", "client list\r\n", "hello 3\r\n", "config get save\r\n", "subscribe a\r\npsubscribe c\r\n", "multi\r\n", "multi\r\nget a\r\nset b 1\r\n",
		"multi\r\nget a\r\nexec\r\n", "multi\r\nget a\r\ndiscard\r\n", "watch a\r\nset a 1\r\n", "watch a\r\nset a 1\r\nunwatch\r\n", "watch a\r\nset a 1\r\nmulti\r\n", "client no-evict on\r\n",
	} {
		var got [2][]string
		for i, a := range addresses {
			began := time.Now()
			c, other := redistest.Dial(t, a[0], a[1]), redistest.Dial(t, a[0], a[1])
			id := strings.Trim(c.Do(t, "client", "id"), ":\r\n")
			for r := range strings.Lines(requests) {
				c.Do(t, strings.Fields(r)...)
			}
			lines := other.Do(t, "client", "list", "id", id)
			if !strings.Contains(requests, "multi") && !strings.Contains(requests, "subscribe") {
				lines += c.Do(t, "client", "info")
			}
			lines = strings.NewReplacer("flags=U db", "flags=N db", "flags=U", "flags=", "U db=", " db=").Replace(lines) // a client on a Unix socket has U
			lines = idle.ReplaceAllStringFunc(lines, func(field string) string {
				if seconds, err := strconv.Atoi(strings.TrimPrefix(field, " idle=")); err != nil || float64(seconds) > time.Since(began).Seconds()+1 {
					t.Errorf("%q\n%s after %v: %q, %v", requests, a[0], time.Since(began), field, err)
				}
				return " idle=N"
			})
			got[i] = wanted.FindAllString(lines, -1)
		}
		if !slices.Equal(got[0], got[1]) || len(got[0]) < 10 {
			t.Errorf("%q\nredis-server %q\nemulator     %q", requests, got[0], got[1])
		}
	}
}

type twin struct {
	t         *testing.T
	rand      *rand.Rand
	addresses [2][2]string
	clients   []*twinClient
	sent      int
	messages  int
	log       []string // the last commands
}

// A twinClient is a client of both servers, with its known state.
type twinClient struct {
	sides    [2]*redistest.Client
	resp3    bool
	multi    bool
	channels map[string]bool
	patterns map[string]bool
}

func (c *twinClient) subscribed() bool { return len(c.channels)+len(c.patterns) > 0 }

func (tw *twin) dial() *twinClient {
	c := &twinClient{channels: map[string]bool{}, patterns: map[string]bool{}}
	for i, a := range tw.addresses {
		c.sides[i] = redistest.Dial(tw.t, a[0], a[1])
	}
	return c
}

func (tw *twin) pick(from ...string) string { return from[tw.rand.IntN(len(from))] }

func (tw *twin) key() string {
	if tw.rand.IntN(50) == 0 {
		return tw.pick("k\x00\xff", "key with spaces", "*", "[a]", "K0")
	}
	return "k" + strconv.Itoa(tw.rand.IntN(7))
}

func (tw *twin) value() string {
	switch tw.rand.IntN(12) {
	case 0, 1, 2:
		return strconv.Itoa(tw.rand.IntN(2000) - 1000)
	case 3:
		return tw.pick("9223372036854775807", "-9223372036854775808", "9223372036854775806", "18446744073709551615", "-0", "+1", "01", " 1", "1 ", "")
	case 4:
		return tw.pick("3.25", "-1e3", "5.0e3", "1e-10", "0x10", "inf", "-inf", "nan", "1e400", "1e5000", ".5", "5.", "1_000", "12345678901234567890.5", "1e4931", "-1e4931", "1e-4930", "-4.9e-18", "5.1e-18", "infinity", "0x1p3", "1e", "--1", "+-1", "0b1", "+3.5", " 3.0", "3.0 ")
	case 5:
		return tw.pick("\x00\r\n\xff", strings.Repeat("x", 1000), "héllo")
	case 6:
		return fmt.Sprintf("%.*f", tw.rand.IntN(10), tw.rand.Float64()*1000-500)
	default:
		return "v" + strconv.Itoa(tw.rand.IntN(5))
	}
}

func (tw *twin) number() string {
	return tw.pick("0", "1", "-1", "2", "5", "-3", "100", "-100", "9223372036854775807", "-9223372036854775808", "x", "1.5", "", "01", "999999999999999999999")
}

// seconds returns a time in seconds: either none is reached during the test, or all have passed.
func (tw *twin) seconds() string {
	return tw.pick("10000", "20000", "30000", "-1", "0", "x", "9223372036854775807", "9223372036854775", "9223372036854776", "-9223372036854775808", "-9223372036854775", "-9223372036854776", "9223370399119966", "")
}

func (tw *twin) millis() string {
	return tw.pick("10000000", "20000000", "-1", "0", "1.5", "9223372036854775807", "9223372036854770000", "-9223372036854775808", "9223372036854775808")
}

func (tw *twin) at(unit int64, past bool) string {
	if !past {
		return tw.pick(strconv.FormatInt(4102444800*unit, 10), strconv.FormatInt(4102448400*unit, 10), "0", "-5", "9223372036854775807", "9223372036854770000", "-9223372036854775808", "-9223372036854776")
	}
	return tw.pick(strconv.FormatInt(4102444800*unit, 10), strconv.FormatInt(4102448400*unit, 10), strconv.FormatInt(1000*unit, 10), "0", "-5", "9223372036854775807", "9223372036854770000", "-9223372036854775808", "-9223372036854776")
}

func (tw *twin) pattern() string {
	return tw.pick("*", "k*", "k?", "k[0-3]", "k[^0-3]", "__key*__:*", "__keyspace@0__:k[0-4]", "__keyevent@0__:*", "__keyevent@0__:[se]*", "c*", "c\\*", "[", "[a", "\\", "k[3-0]", "c[1-", "*1", "**", "k0")
}

func (tw *twin) channel() string {
	return tw.pick("c1", "c2", "c*", "__keyspace@0__:"+tw.key(), "__keyevent@0__:"+tw.pick("set", "del", "expire", "incrby", "new", "keymiss", "rename_to"))
}

func (tw *twin) flags() string {
	if tw.rand.IntN(3) == 0 {
		return "KEA"
	}
	const letters = "KEg$lshzxetdmnAKEA"
	var b []byte
	for range tw.rand.IntN(8) {
		b = append(b, letters[tw.rand.IntN(len(letters))])
	}
	if tw.rand.IntN(15) == 0 {
		b = append(b, 'q')
	}
	// In Redis, a CONFIG SET that fails drops n from flags with A.
	if bytes.IndexByte(b, 'A') >= 0 {
		b = bytes.ReplaceAll(b, []byte("n"), nil)
	}
	return string(b)
}

// cases changes the case of some letters.
func (tw *twin) cases(word string) string {
	if tw.rand.IntN(4) > 0 {
		return word
	}
	b := []byte(word)
	for i := range b {
		if tw.rand.IntN(2) == 0 {
			b[i] = bytes.ToUpper(b[i : i+1])[0]
		}
	}
	return string(b)
}

func (tw *twin) several(of func() string) []string {
	var all []string
	for range 1 + tw.rand.IntN(3) {
		all = append(all, of())
	}
	return all
}

func (tw *twin) setOptions(past bool) []string {
	var o []string
	for range tw.rand.IntN(3) {
		switch w := tw.pick("nx", "xx", "get", "keepttl", "ex", "px", "exat", "pxat", "persist", "bad"); w {
		case "ex":
			o = append(o, w, tw.seconds())
		case "px":
			o = append(o, w, tw.millis())
		case "exat":
			o = append(o, w, tw.at(1, past))
		case "pxat":
			o = append(o, w, tw.at(1000, past))
		default:
			o = append(o, tw.cases(w))
		}
	}
	return o
}

// command returns a random command.
func (tw *twin) command() []string {
	cmd := func(name string, args ...string) []string { return append([]string{tw.cases(name)}, args...) }
	key, value := tw.key, tw.value
	kinds := []func() []string{
		func() []string { return cmd("get", key()) },
		func() []string { return cmd("set", append([]string{key(), value()}, tw.setOptions(false)...)...) },
		func() []string { return cmd("set", key(), value()) },
		func() []string { return cmd("setnx", key(), value()) },
		func() []string { return cmd("setex", key(), tw.seconds(), value()) },
		func() []string { return cmd("psetex", key(), tw.millis(), value()) },
		func() []string { return cmd("getset", key(), value()) },
		func() []string { return cmd("getdel", key()) },
		func() []string { return cmd("getex", append([]string{key()}, tw.setOptions(true)...)...) },
		func() []string { return cmd("mget", tw.several(key)...) },
		func() []string { return cmd(tw.pick("exists", "touch"), tw.several(key)...) },
		func() []string { return cmd("object", tw.cases(tw.pick("encoding", "refcount", "freq")), key()) },
		func() []string { return cmd("object", "encoding", key()) },
		func() []string { return cmd("memory", "usage", "no key", tw.pick("samples", "bad"), tw.number()) },
		func() []string { return cmd("move", key(), tw.pick("0", "1", "-1", "x", "99999999999")) },
		func() []string { return cmd("swapdb", tw.pick("0", "1", "x"), tw.pick("0", "-1", "x")) },
		func() []string {
			o := []string{tw.pick("0", "00", "+0", "", "x"), "count", tw.pick("1000", "1000", "0", "x")}
			o = append(o, tw.pick2(nil, []string{"match", tw.pattern()}, []string{tw.cases("type"), tw.pick("string", "STRING", "list")}, []string{"match"})...)
			return cmd("scan", o...)
		},
		func() []string { return tw.bits() },
		func() []string { return tw.harness() },
		func() []string { return cmd("strlen", key()) },
		func() []string { return cmd("getrange", key(), tw.number(), tw.number()) },
		func() []string { return cmd("type", key()) },
		func() []string { return cmd(tw.pick("del", "unlink"), tw.several(key)...) },
		func() []string { return cmd("del", key()) },
		func() []string {
			var kv []string
			for range 1 + tw.rand.IntN(3) {
				kv = append(kv, key(), value())
			}
			if tw.rand.IntN(10) == 0 {
				kv = kv[1:]
			}
			return cmd(tw.pick("mset", "msetnx"), kv...)
		},
		func() []string { return cmd(tw.pick("incr", "decr"), key()) },
		func() []string { return cmd(tw.pick("incrby", "decrby"), key(), tw.number()) },
		func() []string { return cmd("incrbyfloat", key(), value()) },
		func() []string { return cmd("append", key(), value()) },
		func() []string {
			return cmd("setrange", key(), tw.pick("0", "1", "5", "-1", "x", "20", "536870912"), value())
		},
		func() []string { return cmd("rename", key(), key()) },
		func() []string { return cmd("renamenx", key(), key()) },
		func() []string {
			return cmd("copy", append([]string{key(), key()}, tw.pick2(nil, []string{"replace"}, []string{"DB", "0"}, []string{"bad"})...)...)
		},
		func() []string {
			opts := tw.pick2(nil, nil, nil, []string{tw.cases(tw.pick("nx", "xx", "gt", "lt", "bad"))}, []string{tw.pick("nx", "xx", "gt"), tw.pick("xx", "gt", "lt")})
			switch tw.rand.IntN(4) {
			case 0:
				return cmd("expire", append([]string{key(), tw.seconds()}, opts...)...)
			case 1:
				return cmd("pexpire", append([]string{key(), tw.millis()}, opts...)...)
			case 2:
				return cmd("expireat", append([]string{key(), tw.at(1, true)}, opts...)...)
			default:
				return cmd("pexpireat", append([]string{key(), tw.at(1000, true)}, opts...)...)
			}
		},
		func() []string { return cmd(tw.pick("ttl", "pttl", "expiretime", "pexpiretime"), key()) },
		func() []string { return cmd("persist", key()) },
		func() []string { return cmd("keys", tw.pattern()) },
		func() []string { return cmd("dbsize") },
		func() []string { return cmd("publish", tw.channel(), value()) },
		func() []string { return cmd("pubsub", tw.cases("channels")) },
		func() []string { return cmd("pubsub", "channels", tw.pattern()) },
		func() []string { return cmd("pubsub", append([]string{"numsub"}, tw.several(tw.channel)...)...) },
		func() []string { return cmd("pubsub", "numpat") },
		func() []string { return cmd("config", "set", "notify-keyspace-events", tw.flags()) },
		func() []string {
			return append(cmd("config", "set", tw.pick("save", "notify-keyspace-events", "no such"), ""), tw.pick2([]string{"SAVE", ""}, []string{"maxmemory", "0"}, []string{"save"}, nil)...)
		},
		func() []string { return cmd("config", "get", "notify-keyspace-events") },
		func() []string { return cmd("echo", value()) },
		func() []string { return cmd("ping") },
		func() []string { return cmd("select", tw.pick("0", "1", "-1", "x", "99999999999")) },
		func() []string { return cmd("client", tw.pick("getname", "setname", "bad"), tw.pick("n", "a b", "")) },
		func() []string { return cmd("client", "getname") },
		func() []string { return cmd("client", "setname", tw.pick("n1", "n2", "")) },
		func() []string {
			return cmd(tw.pick("get", "set", "incr", "del", "mget", "expire", "subscribe", "config", "client", "hello", "publish", "msetnx", "nosuch", "exec", "pubsub", "echo"))
		},
		func() []string { return cmd("get", "a", "b") },
		func() []string { return cmd("nosuch", tw.several(value)...) },
		func() []string { return cmd("auth", tw.several(value)...) },
		func() []string { return cmd("command", "count", "x") },
		func() []string { return cmd("unwatch") },
	}
	return kinds[tw.rand.IntN(len(kinds))]()
}

// bits returns a bit command. It uses separate keys, because in Redis a SETBIT that changes no bit changes
// the encoding.
func (tw *twin) bits() []string {
	key := tw.pick("b0", "b1")
	offset := tw.pick("0", "1", "7", "8", "100", "-1", "x", "4294967296")
	return tw.pick2(
		[]string{tw.cases("getbit"), key, tw.pick(offset, "4294967295")},
		[]string{tw.cases("setbit"), key, offset, tw.pick("0", "1", "1", "2", "-1", "10", "x", "01")},
		[]string{"get", key},
		[]string{"set", key, tw.value()},
		[]string{"append", key, tw.value()},
		[]string{"del", key},
		[]string{"expire", key, tw.seconds()},
	)
}

// harness returns an auxiliary command that test suites and clients send.
func (tw *twin) harness() []string {
	return tw.pick2(
		[]string{"function", tw.cases("flush")},
		[]string{"function", "flush", tw.pick("sync", "ASYNC", "bad")},
		[]string{"function", "flush", "async", "x"},
		[]string{"function", "list"},
		[]string{"function"},
		[]string{"script", tw.cases("flush")},
		[]string{"script", "flush", tw.pick("sync", "ASYNC", "bad")},
		append([]string{"script", "exists"}, tw.several(tw.value)...),
		[]string{"script", "exists"},
		[]string{"sentinel", "masters"},
		[]string{"role"},
		[]string{"wait", tw.pick("0", "-1", "x"), tw.pick("0", "5", "-1", "x", "1.5")},
		[]string{"config", "rewrite"},
		[]string{"client", "list", "id", tw.pick("0", "-1", "x", "99999999")},
		[]string{"client", "kill", tw.pick("id", "addr", "laddr", "type", "skipme", "bad"), tw.pick("0", "x", "1:2", "master", "99999999", "no such")},
		[]string{"client", "reply", "on"},
		[]string{"pubsub", "channels", "x", "y"},
		append([]string{"command", "getkeys"}, tw.pick2([]string{"get"}, []string{"get", "a"}, []string{"mset", "a", "b", "c", "d"}, []string{"ping", "x"}, []string{"no", "such"}, []string{"get", "a", "b"})...),
		[]string{"command", "info", "no such"},
	)
}

func (tw *twin) pick2(from ...[]string) []string { return from[tw.rand.IntN(len(from))] }

// step makes one client do one thing.
func (tw *twin) step() {
	c := tw.clients[tw.rand.IntN(len(tw.clients))]
	switch n := tw.rand.IntN(100); {
	case n < 70 || c.multi && n < 85:
		args := tw.command()
		if c.multi && len(args) > 1 && strings.EqualFold(args[1], "refcount") {
			args[1] = "encoding" // Redis also counts the reference in a queued command
		}
		tw.ask(c, args)
	case n < 76:
		tw.subscribe(c)
	case n < 80:
		tw.unsubscribe(c)
	case n < 84:
		tw.ask(c, append([]string{"watch"}, tw.several(tw.key)...))
	case n < 92:
		switch w := tw.pick("multi", "multi", "exec", "exec", "discard"); {
		case w == "multi" && c.subscribed():
		default:
			tw.ask(c, []string{tw.cases(w)})
		}
	case n < 95:
		if !c.multi && !(c.subscribed() && !c.resp3) {
			tw.hello(c)
		}
	case n < 96:
		tw.ask(c, []string{"reset"})
		c.channels, c.patterns, c.resp3 = map[string]bool{}, map[string]bool{}, false
	case n < 97:
		tw.expire(c)
	default:
		tw.settle()
	}
}

func (tw *twin) hello(c *twinClient) {
	args := tw.pick2([]string{"3"}, []string{"2"}, []string{"4"}, []string{"x"}, []string{"3", "setname", "n"}, []string{"2", "bad"}, []string{"3", "auth", "default", "x"}, []string{"3", "auth", "bob", "x"})
	reply := tw.ask(c, append([]string{"hello"}, args...))
	if len(reply) > 0 && reply[0] != '-' {
		c.resp3 = args[0] == "3"
	}
}

func (tw *twin) subscribe(c *twinClient) {
	if c.multi {
		return
	}
	word, own, of := "subscribe", c.channels, tw.channel
	if tw.rand.IntN(2) == 0 {
		word, own, of = "psubscribe", c.patterns, tw.pattern
	}
	names := tw.several(of)
	tw.ask(c, append([]string{word}, names...))
	for _, n := range names {
		own[n] = true
	}
}

// unsubscribe ends some subscriptions, or all of them; the replies for all have no fixed order.
func (tw *twin) unsubscribe(c *twinClient) {
	if c.multi {
		return
	}
	word, own, of := "unsubscribe", c.channels, tw.channel
	if tw.rand.IntN(2) == 0 {
		word, own, of = "punsubscribe", c.patterns, tw.pattern
	}
	var names []string
	switch {
	case len(own) <= 1 && tw.rand.IntN(2) == 0:
	case tw.rand.IntN(3) == 0:
		names = tw.several(of)
	default:
		for n := range own {
			names = append(names, n)
		}
		slices.Sort(names)
	}
	tw.ask(c, append([]string{word}, names...))
	if names == nil {
		clear(own)
	}
	for _, n := range names {
		delete(own, n)
	}
}

// expire lets a key expire on both sides, and waits until it has.
func (tw *twin) expire(c *twinClient) {
	if c.multi || c.subscribed() {
		return
	}
	key := tw.key()
	tw.ask(c, []string{"config", "set", "notify-keyspace-events", tw.pick("KEA", "Ex", "Kx$", "")})
	tw.ask(c, []string{"set", key, "soon over", "px", strconv.Itoa(1 + tw.rand.IntN(5))})
	for _, side := range c.sides {
		for {
			if side.Do(tw.t, "exists", key) == ":0\r\n" || tw.t.Failed() {
				break
			}
		}
	}
	tw.ask(c, []string{"get", key})
}

// ask sends a command to both sides and compares the replies. It returns the first frame.
func (tw *twin) ask(c *twinClient, args []string) []byte {
	tw.sent++
	tw.log = append(tw.log, fmt.Sprintf("client %d: %q", slices.Index(tw.clients, c), args))
	if len(tw.log) > 40 {
		tw.log = tw.log[1:]
	}
	word := strings.ToLower(args[0])
	ends := word == "exec" || word == "discard" || word == "reset"
	var got [2][][]byte
	for i, side := range c.sides {
		if err := side.Send(args...); err != nil {
			tw.t.Fatal(err)
		}
		if c.multi && !ends {
			f, err := side.Frame() // a PING after it would be queued
			if err != nil {
				tw.t.Fatal(err)
			}
			got[i] = [][]byte{f}
			continue
		}
		if word == "multi" {
			f, err := side.Frame()
			if err != nil {
				tw.t.Fatal(err)
			}
			got[i] = [][]byte{f}
			continue
		}
		text := "until " + strconv.Itoa(tw.sent)
		if err := side.Send("ping", text); err != nil {
			tw.t.Fatal(err)
		}
		frames, err := side.Until(text)
		if err != nil {
			tw.t.Fatalf("%v after %q of %s", err, frames, tw.log[len(tw.log)-1])
		}
		got[i] = frames
	}
	tw.compare(c, args, got)
	switch word {
	case "multi":
		c.multi = true
	case "exec", "discard", "reset":
		c.multi = false
	}
	if len(got[1]) == 0 {
		return nil
	}
	return got[1][0]
}

// settle compares the messages that all clients have received.
func (tw *twin) settle() {
	for _, c := range tw.clients {
		if c.multi || !c.subscribed() {
			continue
		}
		text := "settled " + strconv.Itoa(tw.sent)
		var got [2][][]byte
		for i, side := range c.sides {
			if err := side.Send("ping", text); err != nil {
				tw.t.Fatal(err)
			}
			frames, err := side.Until(text)
			if err != nil {
				tw.t.Fatal(err)
			}
			got[i] = frames
		}
		tw.compare(c, []string{"settle"}, got)
	}
}

var (
	idField    = regexp.MustCompile(`id\r\n:\d+\r\n`)
	wholeTime  = regexp.MustCompile(`^:(\d+)\r\n$`)
	pmessage   = regexp.MustCompile(`^.4\r\n\$8\r\npmessage\r\n`)
	clockWords = []string{"ttl", "pttl", "expiretime", "pexpiretime"}
)

const (
	timeSlack = 5000              // seconds
	lastTime  = 9_000_000_000_000 // seconds or milliseconds; later than the store can represent
)

// compare compares the replies of both sides.
func (tw *twin) compare(c *twinClient, args []string, got [2][][]byte) {
	word := strings.ToLower(args[0])
	for i := range got {
		for j, f := range got[i] {
			if i == 1 && (f[0] == '>' || bytes.Contains(f, []byte("message\r\n"))) {
				tw.messages++
			}
			f = idField.ReplaceAll(f, []byte("id"))
			got[i][j] = f
			if word == "keys" || word == "scan" || word == "pubsub" && len(args) > 1 && strings.EqualFold(args[1], "channels") {
				got[i][j] = sortedArray(f)
			}
		}
		got[i] = sortPatterns(got[i])
	}
	if slices.EqualFunc(got[0], got[1], bytes.Equal) {
		return
	}
	if len(got[0]) == len(got[1]) {
		same := true
		for j := range got[0] {
			same = same && (bytes.Equal(got[0][j], got[1][j]) || (slices.Contains(clockWords, word) || word == "exec" || bytes.Contains(got[0][j], []byte("pmessage"))) && nearTimes(got[0][j], got[1][j]))
		}
		if same {
			return
		}
	}
	// Messages may interleave with the parts of an array.
	if whole := bytes.Join(got[0], nil); bytes.Contains(whole, []byte("pmessage")) && nearTimes(whole, bytes.Join(got[1], nil)) {
		return
	}
	tw.t.Errorf("after %d commands: %q (resp3 %t)\nredis-server %q\nemulator     %q\n%s", tw.sent, args, c.resp3, got[0], got[1], strings.Join(tw.log, "\n"))
}

// nearTimes reports whether two replies differ only in times that are near each other, or in the order of
// keys or patterns.
func nearTimes(a, b []byte) bool {
	as, bs := bytes.SplitAfter(a, []byte("\r\n")), bytes.SplitAfter(b, []byte("\r\n"))
	if len(as) != len(bs) {
		return false
	}
	ordered := true
	for i := range as {
		if bytes.Equal(as[i], bs[i]) {
			continue
		}
		ma, mb := wholeTime.FindSubmatch(as[i]), wholeTime.FindSubmatch(bs[i])
		if ma == nil || mb == nil {
			ordered = false
			continue
		}
		x, _ := strconv.ParseInt(string(ma[1]), 10, 64)
		y, _ := strconv.ParseInt(string(mb[1]), 10, 64)
		slack := int64(timeSlack)
		if least := min(x, y); least > 1e6 && (least < 1e9 || least > 1e12) { // milliseconds, whose values differ by more
			slack = redistest.Patience.Milliseconds()
		}
		if min(x, y) < 9000 || max(x-y, y-x) > slack && min(x, y) < lastTime {
			return false
		}
		bs[i] = as[i]
	}
	if !ordered { // KEYS in a transaction
		cmp := func(x, y []byte) int { return bytes.Compare(x, y) }
		slices.SortFunc(as, cmp)
		slices.SortFunc(bs, cmp)
		return slices.EqualFunc(as, bs, bytes.Equal)
	}
	return true
}

// sortedArray sorts the strings of an array.
func sortedArray(f []byte) []byte {
	lines := strings.SplitAfter(string(f), "\r\n$")
	if len(lines) < 2 || f[0] != '*' || bytes.Contains(f[:min(len(f), 20)], []byte("message")) {
		return f
	}
	for i := range lines {
		lines[i] = strings.TrimSuffix(lines[i], "\r\n$")
		lines[i] = strings.TrimSuffix(lines[i], "\r\n")
	}
	slices.Sort(lines[1:])
	return []byte(strings.Join(lines, "\r\n$"))
}

// sortPatterns sorts the copies of one message for several patterns.
func sortPatterns(frames [][]byte) [][]byte {
	rest := func(f []byte) []byte {
		parts := bytes.SplitN(f, []byte("\r\n"), 6)
		if !pmessage.Match(f) || len(parts) < 6 {
			return nil
		}
		return parts[5]
	}
	for i := 0; i < len(frames); {
		j := i + 1
		for j < len(frames) && rest(frames[i]) != nil && bytes.Equal(rest(frames[i]), rest(frames[j])) {
			j++
		}
		slices.SortFunc(frames[i:j], bytes.Compare)
		i = j
	}
	return frames
}
