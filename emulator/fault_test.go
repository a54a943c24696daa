package emulator_test

import (
	"encoding/json"
	"fmt"
	"log"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/eclipse/paho.golang/packets"

	"github.com/sscli/sscli/emulator"
	"github.com/sscli/sscli/internal/testkit/await"
	"github.com/sscli/sscli/internal/testkit/redistest"
)

// fired returns how often each fault of a server happened, in the order in which they were added.
func fired(s *emulator.Server) (counts []int) {
	for _, f := range s.Faults() {
		counts = append(counts, f.Fired)
	}
	return counts
}

func addFault(t *testing.T, s *emulator.Server, f emulator.Fault) int {
	t.Helper()
	added, err := s.AddFault(f)
	if err != nil {
		t.Fatal(err)
	}
	return added.ID
}

// TestFaults: what each fault of a request does to an MQTT client, and that it happens once, to the request that fits.
func TestFaults(t *testing.T) {
	t.Parallel()
	const hour = time.Hour
	for name, tt := range map[string]struct {
		fault  emulator.Fault
		want   []string // packets after SET k 1
		ended  bool     // then the connection ends
		late   []string // packets after an hour
		stored bool
	}{
		"drop":         {emulator.Fault{Drop: "request"}, []string{"PUBACK 0x00"}, false, nil, false},
		"drop reply":   {emulator.Fault{Drop: "reply"}, []string{"PUBACK 0x00"}, false, nil, true},
		"cut":          {emulator.Fault{Cut: "before"}, nil, true, nil, false},
		"cut after":    {emulator.Fault{Cut: "after"}, nil, true, nil, true},
		"cut bytes":    {emulator.Fault{CutBytes: 1}, nil, true, nil, true},
		"after PUBACK": {emulator.Fault{CutBytes: 5}, []string{"PUBACK 0x00"}, true, nil, true},
		"delay":        {emulator.Fault{Delay: "1h"}, []string{"PUBACK 0x00"}, false, []string{"reply +OK"}, true},
		"delay reply":  {emulator.Fault{DelayReply: "1h"}, []string{"PUBACK 0x00"}, false, []string{"reply +OK"}, true},
		"twice":        {emulator.Fault{Repeat: "reply"}, []string{"PUBACK 0x00", "reply +OK", "reply +OK"}, false, nil, true},
		"an error":     {emulator.Fault{Error: "quota"}, []string{"PUBACK 0x00", "reply -ERR the quota has been exceeded"}, false, nil, false},
		"a text":       {emulator.Fault{Error: "out of luck"}, []string{"PUBACK 0x00", "reply -ERR out of luck"}, false, nil, false},
		"PUBACK":       {emulator.Fault{Puback: "0x97"}, []string{"PUBACK 0x97"}, false, nil, false},
		"DISCONNECT":   {emulator.Fault{Disconnect: "0x8B"}, []string{"DISCONNECT 0x8b"}, true, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := emulator.Start(t)
			tt.fault.Verb, tt.fault.Key, tt.fault.Client, tt.fault.Count = "set", "k*", "c", 1
			addFault(t, s, tt.fault)
			other, c := connect(t, s, "other"), connect(t, s, "c")
			other.do("SET k 0", "+OK")
			c.do("GET k", "$1\r\n0")
			c.do("SET j 0", "+OK")
			if n := fired(s); n[0] != 0 {
				t.Fatal("it happened to a request that does not fit")
			}
			c.ask("SET k 1")
			c.Expect(tt.want...)
			if tt.ended {
				c.Ended()
			}
			if tt.late != nil {
				await.State(t, s, func(st emulator.State) bool { return st.Delayed == 1 })
				s.FastForward(hour)
				c.Expect(tt.late...)
			}
			want := "$1\r\n0"
			if tt.stored {
				want = "$1\r\n1"
			}
			other.do("GET k", want)
			if !tt.ended {
				c.do("SET k 2", "+OK")
			}
			if f := s.Faults(); len(f) != 1 || f[0].Fired != 1 || !f[0].Over || f[0].ID != 1 {
				t.Errorf("%+v", f)
			}
		})
	}
}

// TestFaultStall: the broker reads nothing from a client for a time on the store's clock, and Keep Alive bears it.
func TestFaultStall(t *testing.T) {
	t.Parallel()
	s := emulator.Start(t)
	addFault(t, s, emulator.Fault{Count: 1, Stall: "1h"})
	c, other := connect(t, s, "c"), connect(t, s, "other")
	c.do("SET k 1", "+OK")
	c.ask("SET k 2")
	other.do("GET k", "$1\r\n1")
	s.FastForward(time.Hour)
	c.Expect("PUBACK 0x00", "reply +OK")
	addFault(t, s, emulator.Fault{Count: 1, Client: "c", Stall: "1h"})
	c.do("SET k 3", "+OK")
	s.DropAll() // also while the broker does not read
	c.Ended()
	await.State(t, s, func(st emulator.State) bool { return st.Connections == 0 })
}

// TestFaultNotification: notifications are lost, late, repeated and out of order, and the counts say how often.
func TestFaultNotification(t *testing.T) {
	t.Parallel()
	for _, file := range []string{"", filepath.Join(t.TempDir(), "data")} {
		s := emulator.Start(t, emulator.Options{Data: emulator.Data{File: file}})
		c := connect(t, s, "c")
		c.do("KEYNOTIFY k", "+OK")
		c.do("KEYNOTIFY j", "+OK")
		set := func(key, value string) {
			t.Helper()
			if _, err := s.Set(key, value); err != nil {
				t.Fatal(err)
			}
		}
		of := func(f emulator.Fault) {
			t.Helper()
			f.Key, f.Client, f.Count = "k", "c", 1
			addFault(t, s, f)
		}
		of(emulator.Fault{Drop: "notification"})
		set("j", "0")
		set("k", "1")
		set("k", "2")
		of(emulator.Fault{Repeat: "notification"})
		set("k", "3")
		of(emulator.Fault{Reorder: "notification"})
		set("k", "4")
		set("j", "5")
		of(emulator.Fault{DelayNotification: "1h"})
		set("k", "6")
		set("k", "7")
		s.FastForward(time.Hour)
		c.Expect("notify 6A SET VALUE 0", "notify 6B SET VALUE 2", "notify 6B SET VALUE 3", "notify 6B SET VALUE 3",
			"notify 6A SET VALUE 5", "notify 6B SET VALUE 4", "notify 6B SET VALUE 7", "notify 6B SET VALUE 6")
		if got := fmt.Sprint(fired(s)); got != "[1 1 1 1]" {
			t.Error(got)
		}
	}
}

// TestFaultConnack: the next connections of a client are refused.
func TestFaultConnack(t *testing.T) {
	t.Parallel()
	s := emulator.Start(t)
	addFault(t, s, emulator.Fault{Client: "c", Count: 2, Connack: "0x97"})
	if code := dial(t, s, "other").Hello().ReasonCode; code != 0 {
		t.Errorf("another client: 0x%02x", code)
	}
	for _, want := range []byte{0x97, 0x97, 0} {
		if code := dial(t, s, "c").Hello().ReasonCode; code != want {
			t.Errorf("CONNACK 0x%02x, want 0x%02x", code, want)
		}
	}
}

// TestFaultRedis: what each fault does to a Redis client, and that faults of MQTT say that they do not reach it.
func TestFaultRedis(t *testing.T) {
	t.Parallel()
	const hour = time.Hour
	for name, tt := range map[string]struct {
		fault   emulator.Fault
		reply   string // to SET k 1, then ECHO x; empty = none
		ended   bool
		delayed bool // the reply comes after an hour
		stored  bool
	}{
		"drop":        {emulator.Fault{Drop: "request"}, "$1\r\nx\r\n", false, false, false},
		"drop reply":  {emulator.Fault{Drop: "reply"}, "$1\r\nx\r\n", false, false, true},
		"cut":         {emulator.Fault{Cut: "before"}, "", true, false, false},
		"cut after":   {emulator.Fault{Cut: "after"}, "", true, false, true},
		"cut bytes":   {emulator.Fault{CutBytes: 2}, "+O", true, false, true},
		"delay":       {emulator.Fault{Delay: "1h"}, "+OK\r\n$1\r\nx\r\n", false, true, true},
		"delay reply": {emulator.Fault{DelayReply: "1h"}, "+OK\r\n$1\r\nx\r\n", false, true, true},
		"stall":       {emulator.Fault{Stall: "1h"}, "+OK\r\n$1\r\nx\r\n", false, true, true},
		"twice":       {emulator.Fault{Repeat: "reply"}, "+OK\r\n+OK\r\n$1\r\nx\r\n", false, false, true},
		"an error":    {emulator.Fault{Error: "quota"}, "-ERR the quota has been exceeded\r\n$1\r\nx\r\n", false, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, other := startWithRedis(t, emulator.Options{})
			c := redistest.Dial(t, "tcp", redistest.Address(s.RedisURL()))
			c.Expect(t, "+OK\r\n", "CLIENT", "SETNAME", "app")
			tt.fault.Key, tt.fault.Client, tt.fault.Count = "k", "app", 1
			addFault(t, s, tt.fault)
			other.Expect(t, "+OK\r\n", "SET", "k", "0")
			c.Expect(t, "+OK\r\n", "SET", "j", "0")
			if err := c.Send("SET", "k", "1"); err != nil {
				t.Fatal(err)
			}
			if err := c.Send("ECHO", "x"); err != nil && !tt.ended {
				t.Fatal(err)
			}
			var got []byte
			for !tt.ended && len(got) < len(tt.reply) {
				if tt.delayed && c.Silent(t) { // the pause may begin later than the fault was counted
					s.FastForward(hour)
					continue
				}
				if err := c.Conn.SetReadDeadline(time.Now().Add(patience)); err != nil {
					t.Fatal(err)
				}
				b, err := c.Reader.ReadByte()
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, b)
			}
			if tt.ended {
				got = c.Closed(t)
			}
			if got := string(got); got != tt.reply {
				t.Errorf("got %q, want %q", got, tt.reply)
			}
			want := "$1\r\n0\r\n"
			if tt.stored {
				want = "$1\r\n1\r\n"
			}
			other.Expect(t, want, "GET", "k")
			if f := s.Faults()[0]; f.Fired != 1 || fmt.Sprint(f.Reaches) != "[mqtt redis]" {
				t.Errorf("%+v", f)
			}
			s.DropAll()
			other.Closed(t)
		})
	}
	s, c := startWithRedis(t, emulator.Options{})
	for _, tt := range []struct {
		fault   emulator.Fault
		reaches string
	}{
		{emulator.Fault{Puback: "0x97", Count: 1}, "[mqtt]"},
		{emulator.Fault{Drop: "notification"}, "[mqtt]"},
		{emulator.Fault{Connack: "0x97"}, "[mqtt]"},
		{emulator.Fault{Verb: "VDEL", Drop: "request"}, "[mqtt]"},
		{emulator.Fault{Verb: "incr", Error: "x", Count: 1}, "[redis]"},
		{emulator.Fault{Verb: "client|id", Error: "y"}, "[redis]"},
	} {
		id := addFault(t, s, tt.fault)
		if got := fmt.Sprint(s.Faults()[id-1].Reaches); got != tt.reaches {
			t.Errorf("%+v reaches %s, want %s", tt.fault, got, tt.reaches)
		}
	}
	c.Expect(t, "+OK\r\n", "SET", "k", "1")
	c.Expect(t, "-ERR x\r\n", "INCR", "k")
	c.Expect(t, "-ERR y\r\n", "CLIENT", "ID")
	c.Expect(t, "+OK\r\n", "MULTI")
	c.Expect(t, "+QUEUED\r\n", "INCR", "k")
	c.Expect(t, "*1\r\n:2\r\n", "EXEC")
	s.RemoveFaults()
	if n := len(s.Faults()); n > 0 {
		t.Errorf("%d faults are left", n)
	}
}

// TestFaultCount: a fault happens as often as its Count says, the oldest first, and until it is removed.
func TestFaultCount(t *testing.T) {
	t.Parallel()
	s := emulator.Start(t)
	c := connect(t, s, "c")
	addFault(t, s, emulator.Fault{Count: 2, Error: "a"})
	addFault(t, s, emulator.Fault{Error: "b"})
	for _, want := range []string{"a", "a", "b", "b", "b"} {
		c.do("GET k", "-ERR "+want)
	}
	if got := fmt.Sprint(fired(s)); got != "[2 3]" {
		t.Error(got)
	}
	s.RemoveFaults()
	c.do("GET k", "$-1")
	for range emulator.MaxFaults {
		addFault(t, s, emulator.Fault{Error: "c"})
	}
	if _, err := s.AddFault(emulator.Fault{Error: "d"}); err == nil {
		t.Error("there is no limit")
	}
}

// TestReset: everything is as at the start, the connections stay, and versions follow the real clock again.
func TestReset(t *testing.T) {
	t.Parallel()
	load := func(yield func(emulator.Seed, error) bool) {
		yield(emulator.Seed{Key: "seed", Value: []byte("s")}, nil)
	}
	for _, file := range []string{"", filepath.Join(t.TempDir(), "data")} {
		s, redis := startWithRedis(t, emulator.Options{Load: load, Data: emulator.Data{File: file}})
		c := connect(t, s, "c")
		away := connect(t, s, "away", remember, func(p *packets.Connect) {
			p.WillFlag, p.WillTopic, p.WillMessage, p.WillQOS = true, "will", []byte("w"), 1
			p.WillProperties = &packets.Properties{WillDelayInterval: pointer(uint32(5400))}
		})
		away.Subscribe("t", 1)
		away.Conn.Close()
		await.State(t, s, func(st emulator.State) bool { return st.Clients == 1 })
		c.Subscribe("will", 1)
		c.do("KEYNOTIFY k", "+OK")
		c.Send(&packets.Publish{Topic: "t", QoS: 1, Retain: true, PacketID: c.PacketID(), Payload: []byte("x"), Properties: &packets.Properties{}})
		c.Expect("PUBACK 0x00")
		s.FastForward(time.Hour - time.Minute)
		c.do("SET seed x", "+OK")
		c.ask("SET k 1")
		c.Expect("PUBACK 0x00", "notify 6B SET VALUE 1", "reply +OK")
		redis.Do(t, "CONFIG", "SET", "notify-keyspace-events", "KEA")
		addFault(t, s, emulator.Fault{Key: "delayed", Count: 1, Delay: "10h"})
		addFault(t, s, emulator.Fault{Key: "stalled", Count: 1, Stall: "10h"})
		slow := redistest.Dial(t, "tcp", redistest.Address(s.RedisURL()))
		if err := slow.Send("SET", "delayed", "x"); err != nil {
			t.Fatal(err)
		}
		c.do("GET stalled", "$-1")
		for fired(s)[0] == 0 {
		}
		addFault(t, s, emulator.Fault{Key: "k", DelayReply: "1h"})
		other := connect(t, s, "other")
		other.ask("GET k")
		other.Expect("PUBACK 0x00")
		await.State(t, s, func(st emulator.State) bool { return st.Delayed == 1 })
		kept := s.Kept()

		if err := s.Reset(false); err != nil {
			t.Fatal(err)
		}
		c.Expect("notify 6B DELETE")
		slow.Expect(t, "$1\r\nx\r\n", "ECHO", "x") // the delayed SET is lost
		if keys, ahead := strings.Join(s.Keys(), " "), time.Until(s.Now()); keys != "seed" || ahead > time.Second || len(s.Faults()) > 0 {
			t.Errorf("keys %s, clock %v ahead, %v", keys, ahead, s.Faults())
		}
		if st := s.State(); st.Delayed != 0 || st.Replies != 0 || st.Registrations != 1 || s.Kept() >= kept {
			t.Errorf("%+v, %d bytes before and %d after", st, kept, s.Kept())
		}
		if e, _ := s.Get("seed"); string(e.Value) != "s" || time.UnixMilli(e.Version.Wall).After(time.Now()) {
			t.Errorf("seed: %+v", e)
		}
		redis.Expect(t, "*2\r\n$22\r\nnotify-keyspace-events\r\n$0\r\n\r\n", "CONFIG", "GET", "notify-keyspace-events")
		again := dial(t, s, "away")
		if ack := again.Hello(remember); ack.SessionPresent {
			t.Error("the session of a client that was away is left")
		}
		again.Subscribe("t", 1)
		c.ask("SET k 2")
		c.Expect("PUBACK 0x00", "notify 6B SET VALUE 2", "reply +OK")
		s.FastForward(2 * time.Hour) // neither the will nor the delayed reply is left
		c.do("GET k", "$1\r\n2")
		again.Send(&packets.Pingreq{})
		again.Expect("PINGRESP")

		if err := s.Reset(true); err != nil {
			t.Fatal(err)
		}
		c.Expect()
		c.Ended()
		redis.Closed(t)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if err := s.Reset(false); err != emulator.ErrClosed {
			t.Errorf("after Close: %v", err)
		}
		if file == "" {
			continue
		}
		s = emulator.Start(t, emulator.Options{Data: emulator.Data{File: file}})
		if keys := strings.Join(s.Keys(), " "); keys != "seed" {
			t.Errorf("the file has %s", keys)
		}
	}
}

// TestAgeKeys: keys expire, in order, while the versions of the store follow the real clock, and what is left of a key's
// life is in the data file, too.
func TestAgeKeys(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "data")
	s, redis := startWithRedis(t, emulator.Options{Data: emulator.Data{File: file}})
	c := connect(t, s, "c")
	for _, key := range []string{"a", "b", "z"} {
		c.do("KEYNOTIFY "+key, "+OK")
	}
	set := func(words, key string) {
		t.Helper()
		c.ask(words)
		c.Expect("PUBACK 0x00", "notify "+key+" SET VALUE v", "reply +OK")
	}
	set("SET a v PX 60000", "61")
	set("SET b v PX 30000", "62")
	set("SET z v", "7A")
	redis.Expect(t, "+OK\r\n", "SET", "hour", "v", "EX", "3600")
	if n := s.AgeKeys(29*time.Second, nil); n != 0 {
		t.Errorf("%d keys expired too early", n)
	}
	if n := s.AgeKeys(40*time.Second, nil); n != 2 {
		t.Errorf("%d keys expired, want 2", n)
	}
	c.Expect("notify 62 DELETE", "notify 61 DELETE")
	if n := s.AgeKeys(50*time.Minute, nil); n != 0 {
		t.Errorf("%d keys expired too early", n)
	}
	if ttl := redis.Do(t, "TTL", "hour"); len(ttl) != len(":529\r\n") || ttl > ":531\r\n" {
		t.Errorf("TTL %q", ttl)
	}
	c.ask("SET a v")
	c.Expect("PUBACK 0x00", "notify 61 SET VALUE v", "reply +OK")
	if e, _ := s.Get("a"); time.UnixMilli(e.Version.Wall).After(time.Now()) {
		t.Errorf("the version is ahead: %v", e.Version)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = emulator.Start(t, emulator.Options{Data: emulator.Data{File: file}})
	if e, _ := s.Get("hour"); time.Until(e.Expires) > 10*time.Minute {
		t.Errorf("the file has lost that it expires soon: %v", e.Expires)
	}
	if n := s.AgeKeys(math.MaxInt64, func(key string, left time.Duration) bool { return key != "hour" || left > 10*time.Minute }); n != 0 {
		t.Errorf("%d keys expired that did not match, or never expire", n)
	}
	if n := s.AgeKeys(math.MaxInt64, nil); n != 1 || strings.Join(s.Keys(), "") != "az" {
		t.Errorf("%d keys expired, %q are left", n, s.Keys())
	}
}

// TestLoadAgain: Load replaces keys whatever rules and fences say, and keeps the fence.
func TestLoadAgain(t *testing.T) {
	t.Parallel()
	rules, err := emulator.ParseRules("*:Read:*")
	if err != nil {
		t.Fatal(err)
	}
	s := emulator.Start(t, emulator.Options{Policy: rules})
	seeds := func(value string) func(func(emulator.Seed, error) bool) {
		return func(yield func(emulator.Seed, error) bool) { yield(emulator.Seed{Key: "k", Value: []byte(value)}, nil) }
	}
	if err := s.Load(seeds("1")); err != nil {
		t.Fatal(err)
	}
	e, _ := s.Get("k")
	s.SetPolicy(emulator.PolicyFunc(func(emulator.Access) bool { return true }))
	if _, err := s.SetEntry("k", emulator.Entry{Value: []byte("2"), Fence: e.Version}); err != nil {
		t.Fatal(err)
	}
	s.SetPolicy(rules)
	if err := s.Load(seeds("3")); err != nil {
		t.Fatal(err)
	}
	if got, _ := s.Get("k"); string(got.Value) != "3" || got.Fence != e.Version {
		t.Errorf("%+v", got)
	}
	connect(t, s, "c").do("SET k 4", "-ERR not authorized")
}

// FuzzFault: a fault that is accepted means the same when its JSON is sent again.
func FuzzFault(f *testing.F) {
	for _, text := range []string{
		`{"verb": "set", "key": "a[0-9]*", "client": "c", "count": 2, "drop": "reply", "delay": "5s", "cut_bytes": 3}`,
		`{"drop": "notification", "repeat": "notification", "delay_notification": "1ms"}`, `{"connack": "0x97"}`, `{"puback": "151"}`,
		`{"error": "quota", "stall": "1h"}`, `{"verb": "config|get", "cut": "after"}`, `{"count": -1, "disconnect": "0x8B"}`,
	} {
		f.Add(text)
	}
	s := emulator.Start(f, emulator.Options{Redis: "127.0.0.1:0"})
	f.Fuzz(func(t *testing.T, text string) {
		var first, second emulator.Fault
		if json.Unmarshal([]byte(text), &first) != nil {
			return
		}
		defer s.RemoveFaults()
		added, err := s.AddFault(first)
		if err != nil {
			return
		}
		again, err := json.Marshal(added.Fault)
		if err == nil {
			err = json.Unmarshal(again, &second)
		}
		if err != nil {
			t.Fatal(err)
		}
		if other, err := s.AddFault(second); err != nil || other.Fault != added.Fault || !slices.Equal(other.Reaches, added.Reaches) {
			t.Errorf("%s: %+v, and then %+v, %v", text, added, other, err)
		}
	})
}

// A test of what an application does when the store is full.
func ExampleServer_AddFault() {
	store, err := emulator.New(emulator.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	if _, err := store.AddFault(emulator.Fault{Verb: "SET", Key: "lease*", Count: 1, Error: "quota"}); err != nil {
		log.Fatal(err)
	}
	// … the application sets a key
	for _, f := range store.Faults() {
		fmt.Println(f.Verb, f.Error, f.Fired, f.Over)
	}
	// Output: SET quota 0 false
}
