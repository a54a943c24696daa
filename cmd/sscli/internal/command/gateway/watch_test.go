package gateway

import (
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/emulator"
	"github.com/sscli/sscli/internal/testkit/await"
)

func set(t *testing.T, s *client.Session, key, value string, ttl time.Duration) {
	t.Helper()
	if _, err := s.Set(t.Context(), key, []byte(value), client.SetOptions{TTL: ttl}); err != nil {
		t.Fatal(err)
	}
}

func del(t *testing.T, s *client.Session, key string) {
	t.Helper()
	if _, err := s.Del(t.Context(), key); err != nil {
		t.Fatal(err)
	}
}

const short = 50 * time.Millisecond // TTL of the keys

// TestNotifications: a subscriber receives changes made through either side in order. Only a write through this gateway
// can lead to an expired event.
func TestNotifications(t *testing.T) {
	for name, v := range map[string]emulator.Variants{"deleted version": {}, "new version": {DeleteNewVersion: true}, "no version": {DeleteNoVersion: true}, "EXPIRED": {NotifyEXPIRED: true}} {
		t.Run(name, func(t *testing.T) {
			onBoth(t, emulator.Options{Variants: v}, func(t *testing.T, address string) {
				f := start(t, address, timeout, "KA")
				s := dial(t, client.Options{Address: address})
				c, sub := f.connect(t), f.connect(t)
				sub.subscribe("SUBSCRIBE", "__keyspace@0__:k")

				c.do("+OK", "SET", "k", "1")
				set(t, s, "k", "2", 0)
				c.do("nil", "SET", "k", "x", "NX")
				c.do(":1", "DEL", "k")
				c.do(":0", "DEL", "k")
				c.do("+OK", "SET", "k", "3", "PX", "60000")
				c.do(":0", "DELIFEQ", "k", "x")
				c.do(":1", "DELIFEQ", "k", "3")
				c.do(":1", "SETNX", "k", "4")
				del(t, s, "k")
				sub.messages("k", "set", "set", "del", "set", "expire", "del", "set", "del")

				c.do("+OK", "SET", "k", "mine", "PX", "50")
				sub.messages("k", "set", "expire", "expired")
				set(t, s, "k", "theirs", short)
				sub.messages("k", "set", "del")
				for overwritten := false; !overwritten; { // before it expired
					c.do("+OK", "SET", "k", "mine", "PX", "500")
					set(t, s, "k", "theirs", 10*short)
					sub.messages("k", "set", "expire")
					next, err := sub.reply()
					if overwritten = next == "[message __keyspace@0__:k set]"; !overwritten {
						if err != nil || next != "[message __keyspace@0__:k expired]" {
							t.Fatalf("%q, %v", next, err)
						}
						sub.messages("k", "set")
					}
					sub.messages("k", "del")
				}
				for range 20 {
					c.do("+OK", "PSETEX", "k", "60000", "mine")
				}
				c.do("+OK", "PSETEX", "k", "50", "mine")
				for range 21 {
					sub.messages("k", "set", "expire")
				}
				sub.messages("k", "expired")
			})
		})
	}
}

// TestExpiryOfEarlierWrite: a client that subscribes after a write is notified of the key's expiry.
func TestExpiryOfEarlierWrite(t *testing.T) {
	onBoth(t, emulator.Options{}, func(t *testing.T, address string) {
		f := start(t, address, timeout, "Kx")
		c := f.connect(t)
		for i := 0; ; i++ {
			key := "k" + strconv.Itoa(i)
			c.do("+OK", "SET", key, "v", "PX", "500")
			sub := f.connect(t)
			sub.subscribe("SUBSCRIBE", "__keyspace@0__:"+key)
			c.send("GET", key)
			value, err := c.reply()
			if err != nil {
				t.Fatal(err)
			}
			if value == "nil" { // it expired before the subscription
				continue
			}
			sub.messages(key, "expired")
			return
		}
	})
}

// TestListedKeys: with --watch, patterns and event channels work, and the events of all listed keys arrive in one
// order.
func TestListedKeys(t *testing.T) {
	onBoth(t, emulator.Options{}, func(t *testing.T, address string) {
		f := start(t, address, timeout, "KEA", "a", "b")
		s := dial(t, client.Options{Address: address})
		c, all, events, one := f.connect(t), f.connect(t), f.connect(t), f.connect(t)
		all.subscribe("PSUBSCRIBE", "__key*__:*")
		events.subscribe("SUBSCRIBE", "__keyevent@0__:set")
		one.subscribe("SUBSCRIBE", "__keyspace@0__:a", "__keyspace@0__:other")
		for range 20 {
			c.do("+OK", "SET", "a", "1")
			set(t, s, "b", "2", 0)
		}
		for range 20 {
			for _, key := range []string{"a", "b"} {
				all.want("[pmessage __key*__:* __keyspace@0__:" + key + " set]")
				all.want("[pmessage __key*__:* __keyevent@0__:set " + key + "]")
				events.want("[message __keyevent@0__:set " + key + "]")
			}
			one.messages("a", "set")
		}
		set(t, s, "other", "x", 0)
		one.messages("other", "set")
		all.send("PING")
		reply, err := all.reply()
		for strings.Contains(reply, "other") && err == nil { // the key is watched for the other client
			reply, err = all.reply()
		}
		if err != nil || reply != "[pong ]" {
			t.Errorf("%q, %v", reply, err)
		}
	})
}

// TestUnwatch: the watch of a key ends when nobody is subscribed to it any more.
func TestUnwatch(t *testing.T) {
	store := emulator.Start(t)
	f := start(t, store.Addr().String(), timeout, "KA")
	c := f.connect(t)
	for range 20 {
		a, b := f.connect(t), f.connect(t)
		a.subscribe("SUBSCRIBE", "__keyspace@0__:k", "__keyspace@0__:l")
		b.subscribe("SUBSCRIBE", "__keyspace@0__:k")
		if n := store.State().Registrations; n < 2 {
			t.Errorf("%d keys are watched, want 2", n)
		}
		a.do("[unsubscribe __keyspace@0__:l :1]", "UNSUBSCRIBE", "__keyspace@0__:l")
		await.State(t, store, func(s emulator.State) bool { return s.Registrations == 1 })
		a.Conn.Close()
		c.do("+OK", "SET", "k", "v")
		b.messages("k", "set")
		b.Conn.Close()
		await.State(t, store, func(s emulator.State) bool { return s.Registrations == 0 })
	}
}

// TestGap: a subscriber that may have missed a change is disconnected. A subscriber of a key that turns out to be
// unchanged is not.
func TestGap(t *testing.T) {
	store := emulator.Start(t)
	f := start(t, store.Addr().String(), timeout, "KEA", "listed")
	c := f.connect(t)
	c.do("+OK", "MSET", "listed", "1", "changed", "1", "same", "1")
	changed, same, pattern, other := f.connect(t), f.connect(t), f.connect(t), f.connect(t)
	changed.subscribe("SUBSCRIBE", "__keyspace@0__:changed")
	same.subscribe("SUBSCRIBE", "__keyspace@0__:same")
	pattern.subscribe("PSUBSCRIBE", "__keyevent*")
	other.subscribe("SUBSCRIBE", "channel")

	resynced := make(chan struct{})
	var once sync.Once
	store.Intercept(func(r emulator.Request) emulator.Action {
		if r.Verb() == "GET" && r.Key() == "same" {
			once.Do(func() { close(resynced) })
		}
		return emulator.Action{}
	})
	store.RefuseConnect(func(string, string) byte { return 0x88 })
	store.DropAll()
	for _, key := range []string{"changed", "listed"} {
		if _, err := store.Set(key, "2"); err != nil {
			t.Fatal(err)
		}
	}
	store.RefuseConnect(nil)
	if got := changed.closed(); got != nil {
		t.Errorf("before the end there was %q", got)
	}
	pattern.closed()
	c.do(":1", "PUBLISH", "channel", "x")
	other.want("[message channel x]")
	<-resynced // the store has read the key for the watch
	c.do("+OK", "SET", "same", "2")
	same.messages("same", "set")
	f.log.await(t, "changes were missed from ")
	// The disconnected client may come back.
	changed = f.connect(t)
	changed.subscribe("SUBSCRIBE", "__keyspace@0__:changed")
	c.do("+OK", "SET", "changed", "3")
	changed.messages("changed", "set")
}

// TestWatchEnds: if the store refuses a watch after the connection broke, the subscribers of the watch are
// disconnected.
func TestWatchEnds(t *testing.T) {
	var denied atomic.Bool
	store := emulator.Start(t, emulator.Options{Policy: emulator.PolicyFunc(func(a emulator.Access) bool {
		return !denied.Load() || a.Method != emulator.Read && a.Method != emulator.Write
	})})
	f := start(t, store.Addr().String(), timeout, "KEA", "listed")
	exact, pattern := f.connect(t), f.connect(t)
	exact.subscribe("SUBSCRIBE", "__keyspace@0__:k")
	pattern.subscribe("PSUBSCRIBE", "__key*")
	denied.Store(true)
	store.DropAll()
	exact.closed()
	pattern.closed()
	c := f.connect(t)
	c.do("-ERR not authorized", "SUBSCRIBE", "__keyspace@0__:k")

	// The keys of --watch are watched again as soon as the store allows it.
	denied.Store(false)
	await.State(t, store, func(s emulator.State) bool { return s.Registrations == 1 })
	for {
		again := f.connect(t)
		again.send("PSUBSCRIBE", "__keyspace*")
		if reply, err := again.reply(); err != nil || !strings.HasPrefix(reply, "[psubscribe ") {
			continue // the gap disconnects early subscribers too
		}
		c.do("+OK", "SET", "listed", "v")
		if reply, err := again.reply(); err == nil {
			if want := "[pmessage __keyspace* __keyspace@0__:listed set]"; reply != want {
				t.Errorf("%q, want %q", reply, want)
			}
			break
		}
	}
}

// TestOneKeyRefused: if the store refuses one of the keys of --watch after the connection broke, the subscribers of that
// key are disconnected, and the store's refusal is the reply to new ones. The other keys are still watched, and the key
// is watched again as soon as the store allows it.
func TestOneKeyRefused(t *testing.T) {
	var denied atomic.Bool
	store := emulator.Start(t, emulator.Options{Policy: emulator.PolicyFunc(func(a emulator.Access) bool {
		return !denied.Load() || a.On != "a"
	})})
	f := start(t, store.Addr().String(), timeout, "KA", "a", "b")
	a, b, pattern, c := f.connect(t), f.connect(t), f.connect(t), f.connect(t)
	c.do("+OK", "MSET", "a", "1", "b", "1")
	a.subscribe("SUBSCRIBE", "__keyspace@0__:a")
	b.subscribe("SUBSCRIBE", "__keyspace@0__:b")
	pattern.subscribe("PSUBSCRIBE", "__keyspace*")
	denied.Store(true)
	var read atomic.Bool // the watch has read b again: a write before that closes b's subscribers, as it could be lost
	store.Intercept(func(r emulator.Request) emulator.Action {
		read.Store(read.Load() || r.Verb() == "GET" && r.Key() == "b")
		return emulator.Action{}
	})
	store.DropAll()
	a.closed()
	pattern.closed()
	f.log.await(t, "not authorized")
	c.do("-ERR not authorized", "SUBSCRIBE", "__keyspace@0__:a")
	await.State(t, store, func(emulator.State) bool { return read.Load() })
	c.do("+OK", "SET", "b", "2")
	b.messages("b", "set")

	denied.Store(false)
	f.log.await(t, "the keys are watched again")
	a = f.connect(t)
	a.subscribe("SUBSCRIBE", "__keyspace@0__:a")
	c.do("+OK", "SET", "a", "2")
	a.messages("a", "set")
}

// TestSlowSubscriber: a client that does not read its messages is disconnected, and no other client is.
func TestSlowSubscriber(t *testing.T) {
	store := emulator.Start(t)
	key := strings.Repeat("k", 30000) // each message contains the channel name, and so the key
	f := start(t, store.Addr().String(), timeout, "KA", key)
	c, slow := f.connect(t), f.connect(t)
	slow.subscribe("PSUBSCRIBE", "__keyspace*")
	for range 100 {
		for range 20 {
			c.send("SET", key, "v")
		}
		for range 20 {
			c.want("+OK")
		}
		if f.log.has("too slowly") {
			break
		}
	}
	if before := slow.closed(); slices.ContainsFunc(before, func(m string) bool { return !strings.HasPrefix(m, "[pmessage ") }) {
		t.Error("the client was sent something else than messages")
	}
	f.log.await(t, "closing a subscriber that reads too slowly")
	c.do("+PONG", "PING")
}
