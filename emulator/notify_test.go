package emulator

import (
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/eclipse/paho.golang/packets"

	"github.com/sscli/sscli/internal/store"
	"github.com/sscli/sscli/internal/testkit/redistest"
	"github.com/sscli/sscli/internal/wire"
)

// watcher connects a client that has registered for keys.
func watcher(t *testing.T, s *Server, id string, keys ...string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", s.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	connect := packets.Connect{ProtocolName: "MQTT", ProtocolVersion: 5, ClientID: id, CleanStart: true, Properties: &packets.Properties{}}
	if _, err := connect.WriteTo(conn); err != nil {
		t.Fatal(err)
	}
	if _, err := packets.ReadPacket(conn); err != nil {
		t.Fatal(err)
	}
	for _, key := range keys {
		s.Do(NewRequest(id, wire.AppendRequest(nil, wire.VerbKeyNotify, key)))
	}
	return conn
}

// TestBacklog: while a change is notified to many watchers, only these wait for later notifications and replies.
func TestBacklog(t *testing.T) {
	t.Parallel()
	s := Start(t)
	const watchers = 100
	crowd := make([]net.Conn, watchers)
	for i := range crowd {
		crowd[i] = watcher(t, s, fmt.Sprint("w", i), "crowded")
	}
	s.Do(NewRequest("w0", wire.AppendRequest(nil, wire.VerbKeyNotify, "other")))
	watcher(t, s, "alone", "other")
	set := func(key, value string) {
		s.store.Do(&store.Request{ClientID: "c", Payload: wire.AppendRequest(nil, wire.VerbSet, key, value), Timestamp: []byte("1:0:c")}, nil)
		s.notify()
	}
	sent := func(want, queued int) {
		t.Helper()
		if got := s.counts.Notifications; got != want || len(s.backlog.queue) != queued {
			t.Errorf("%d notifications were sent and %d items are queued, want %d and %d", got, len(s.backlog.queue), want, queued)
		}
	}
	s.broker.Lock() // sendBacklog cannot run
	set("crowded", strings.Repeat("v", maxNotifyStep/2))
	sent(0, 1)
	if s.mustWait("alone") || !s.mustWait("w0") {
		t.Error("a client waits for notifications to others, or does not wait for its own")
	}
	set("other", "first")
	sent(1, 2) // to the client that is alone
	s.replyLater(origin{client: s.broker.Client("w0")}, newMessage([]byte("none"), nil, nil, nil))
	sent(1, 3)
	set("other", "second")
	sent(2, 4)
	if s.mustWait("alone") {
		t.Error("a client waits although it has been notified")
	}
	for words, want := range map[string]bool{"SET other v": true, "DEL crowded": true, "SET alone v": false, "GET other": false, "KEYNOTIFY other": false} {
		if got := s.store.MayNotify(wire.AppendRequest(nil, strings.Fields(words)...)); got != want {
			t.Errorf("%s may notify: got %t, want %t", words, got, want)
		}
	}
	s.backlog.bytes += maxBacklog
	s.awaitRoom(func() bool { return false })
	sent(2, 4)
	s.awaitRoom(always) // until sendBacklog has sent everything
	sent(2+watchers+2, 0)
	if s.backlog.bytes != 0 || s.backlog.behind != nil || s.counts.Undelivered != 1 {
		t.Errorf("the backlog is %+v, and %d replies had no subscriber", s.backlog, s.counts.Undelivered)
	}
	s.broker.Unlock()
	for i, conn := range crowd {
		for _, want := range []string{"v", "first", "second"} {
			if i > 0 && want != "v" {
				break
			}
			p, err := packets.ReadPacket(conn)
			if err != nil {
				t.Fatal(err)
			}
			if got := string(p.Content.(*packets.Publish).Payload); !strings.HasSuffix(got, want+"\r\n") {
				t.Errorf("watcher %d: got %.60q…, want %s", i, got, want)
			}
		}
	}
}

// TestLargeNotifications: while the notifications of a large value are sent to many watchers, other clients
// can use the broker. All watchers get all changes in the same order.
func TestLargeNotifications(t *testing.T) {
	t.Parallel()
	const watchers, writers, writes = 40, 2, 8
	s := Start(t)
	var reading sync.WaitGroup
	heard := make([][]string, watchers)
	for i := range watchers {
		conn := watcher(t, s, fmt.Sprint("w", i), "k")
		reading.Go(func() {
			for range writers * writes {
				p, err := packets.ReadPacket(conn)
				if err != nil {
					t.Error(err)
					return
				}
				content := p.Content.(*packets.Publish)
				heard[i] = append(heard[i], fmt.Sprint(content.Properties.User)+string(content.Payload[len(content.Payload)-10:]))
				if _, err := conn.Write([]byte{0x40, 2, byte(content.PacketID >> 8), byte(content.PacketID)}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	var writing sync.WaitGroup
	for i := range writers {
		writing.Go(func() {
			for j := range writes {
				if _, err := s.Set("k", strings.Repeat("v", 100_000)+fmt.Sprintf("%04d%04d", i, j)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	paused, written := 0, make(chan struct{})
	go func() {
		writing.Wait()
		close(written)
	}()
	for open := true; open; {
		s.broker.Lock()
		if len(s.backlog.queue) > 0 {
			paused++
		}
		s.broker.Unlock()
		select {
		case <-written:
			open = false
		default:
		}
	}
	reading.Wait()
	if paused == 0 {
		t.Error("no other client could use the broker while notifications were sent")
	}
	for i := range heard {
		if !slices.Equal(heard[i], heard[0]) {
			t.Fatalf("two watchers heard\n%q\n%q", heard[0], heard[i])
		}
	}
}

// TestNotifyBesidePipelines: Redis clients with long pipelines do not block notifications that are sent in steps.
func TestNotifyBesidePipelines(t *testing.T) {
	t.Parallel()
	const watchers, writes, pipeline = 100, 10, 30
	s := Start(t, Options{Redis: "127.0.0.1:0"})
	for i := range watchers {
		conn := watcher(t, s, fmt.Sprint("w", i), "k")
		go func() { _, _ = io.Copy(io.Discard, conn) }()
	}
	var all sync.WaitGroup
	for range 3 {
		c := redistest.Dial(t, "tcp", redistest.Address(s.RedisURL()))
		all.Go(func() {
			for range writes {
				if _, err := io.WriteString(c.Conn, strings.Repeat("SET k "+strings.Repeat("v", 100)+"\r\n", pipeline)); err != nil {
					t.Error(err)
				}
				for range pipeline {
					if reply, err := c.Frame(); err != nil || string(reply) != "+OK\r\n" {
						t.Errorf("%q, %v", reply, err)
						return
					}
				}
			}
		})
	}
	for range 2 {
		all.Go(func() {
			for range writes {
				if _, err := s.Set("k", "v"); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
}
