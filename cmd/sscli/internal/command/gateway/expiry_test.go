package gateway

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/emulator"
)

func version(wall int64) client.Version {
	return client.Version{Wall: wall, Counter: 1, Node: "StateStore"}
}

// TestExpired covers all that may be known about a deletion.
func TestExpired(t *testing.T) {
	const px = time.Second
	written, none := version(5000), client.Version{}
	due := time.Now()
	for _, c := range []struct {
		name             string
		newest, deletion client.Version
		at               time.Time
		want, kept       bool
	}{
		{"on time", written, written, due, true, false},
		{"late", written, written, due.Add(time.Hour), true, false},
		{"early", written, written, due.Add(-time.Millisecond), false, false},
		{"no version, on time", written, none, due, true, false},
		{"no version, early", written, none, due.Add(-time.Millisecond), false, false},
		{"no version, of an earlier write", version(4000), none, due.Add(-time.Millisecond), false, true},
		{"the set was not notified of", version(4000), written, due, true, false},
		{"of an earlier write", version(4000), version(4000), due, false, true},
		{"written again", version(5001), version(5001), due, false, false},
		{"a clock ahead of ours", written, version(6000), due.Add(-time.Minute), true, false},
		{"early by the store's clock", written, version(5999), due.Add(time.Minute), false, false},
	} {
		x := newExpiries()
		x.written["k"] = expiry{version: written, after: px, due: due}
		if got := x.expired("k", c.newest, c.deletion, c.at); got != c.want {
			t.Errorf("%s: %t, want %t", c.name, got, c.want)
		}
		if _, kept := x.written["k"]; kept != c.kept {
			t.Errorf("%s: the write is kept: %t, want %t", c.name, kept, c.kept)
		}
	}
	if newExpiries().expired("k", written, written, due) {
		t.Error("a key that was not written here has expired")
	}
}

// TestLateAnswer: the notification arrives before the reply that says whose write it was.
func TestLateAnswer(t *testing.T) {
	store := emulator.Start(t)
	f := start(t, store.Addr().String(), timeout, "KA")
	c, sub := f.connect(t), f.connect(t)
	sub.subscribe("SUBSCRIBE", "__keyspace@0__:k")
	store.Intercept(func(r emulator.Request) emulator.Action { return emulator.Action{DelayReply: 100 * time.Millisecond} })
	c.do("+OK", "SET", "k", "v", "PX", "60000")
	sub.messages("k", "set", "expire")

	f = start(t, store.Addr().String(), 3*time.Second, "KA")
	lost, sub := f.connect(t), f.connect(t)
	sub.subscribe("SUBSCRIBE", "__keyspace@0__:k")
	store.Intercept(func(r emulator.Request) emulator.Action { return emulator.Action{DropReply: true} })
	lost.send("SET", "k", "v", "PX", "60000")
	sub.messages("k", "set") // the notification is not held back forever
	store.Intercept(nil)
	lost.want(`-UNKNOWN SET "k" got no answer within 3s; it may have been applied`)
	c.do(":1", "DEL", "k")
	sub.messages("k", "del")
}

// TestExpiriesAreBounded: expired entries make room for new ones, and the number of entries is limited.
func TestExpiriesAreBounded(t *testing.T) {
	now := time.Now()
	x := newExpiries()
	for i := range maxExpiries {
		due := now.Add(-2 * maxLateness)
		if i%2 == 0 {
			due = now
		}
		x.written[strconv.Itoa(i)] = expiry{version: version(1), due: due}
	}
	store := emulator.Start(t)
	s := dial(t, client.Options{Address: store.Addr().String()})
	p := s.Pipeline(1)
	put := func(key string) {
		w := x.begin(key, time.Hour, true)
		flight, err := p.Send(t.Context(), client.Set(key, "", client.SetOptions{TTL: time.Hour}))
		if err != nil {
			t.Fatal(err)
		}
		r, err := flight.Wait(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		x.finish(key, w, r)
	}
	put("new")
	if _, known := x.last("new"); !known || len(x.written) != maxExpiries/2+1 {
		t.Errorf("new: %t; %d are kept, want %d", known, len(x.written), maxExpiries/2+1)
	}
	for i := range maxExpiries {
		x.written[strconv.Itoa(i)] = expiry{version: version(1), due: now}
	}
	kept := len(x.written)
	put("more")
	if _, known := x.last("more"); known || len(x.written) != kept {
		t.Errorf("more: %t; %d are kept, want %d", known, len(x.written), kept)
	}
	x = newExpiries()
	x.written["overtaken"] = expiry{version: version(now.Add(time.Hour).UnixMilli())} // its reply came first
	for range maxReplaced + 1 {
		put("overtaken")
	}
	if n := len(x.written["overtaken"].replaced); n != maxReplaced {
		t.Errorf("%d replaced versions are kept, want %d", n, maxReplaced)
	}
	x = newExpiries()
	long := strings.Repeat("k", 60_000)
	for i := range 2 * maxExpiryBytes / len(long) {
		put(long + strconv.Itoa(i))
	}
	if n := len(x.written); n == 0 || n > maxExpiryBytes/len(long) {
		t.Errorf("%d long keys are kept", n)
	}
}
