package emulator

import (
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eclipse/paho.golang/packets"

	"github.com/sscli/sscli/internal/store"
	"github.com/sscli/sscli/internal/testkit/redistest"
	"github.com/sscli/sscli/internal/wire"
)

// watcher connects a client that has registered for keys.
func watcher(t *testing.T, s *Server, id string, keys ...string) net.Conn {
	t.Helper()
	conn, err := s.Dial(t.Context(), "", "")
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

// expectNotified reads a notification of a value that ends in want.
func expectNotified(t *testing.T, conn net.Conn, want string) {
	t.Helper()
	p, err := packets.ReadPacket(conn)
	if err != nil {
		t.Fatal(err)
	}
	if got := string(p.Content.(*packets.Publish).Payload); !strings.HasSuffix(got, want+"\r\n") {
		t.Errorf("got %.60q…, want %s", got, want)
	}
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
	set := s.setLocked
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
		if got := s.store.MayNotify(store.AppendWords(nil, wire.AppendRequest(nil, strings.Fields(words)...))); got != want {
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
			expectNotified(t, conn, want)
		}
	}
}

// lockedCrowd starts a server with clients that watch the key crowded, and locks its broker, so that sendBacklog
// cannot run. w0 is the connection of the client with this id.
func lockedCrowd(t *testing.T, watchers int, o ...Options) (s *Server, w0 net.Conn) {
	s = Start(t, o...)
	w0 = watcher(t, s, "w0", "crowded")
	for i := 1; i < watchers; i++ {
		watcher(t, s, fmt.Sprint("w", i), "crowded")
	}
	s.broker.Lock()
	return s, w0
}

// setLocked sets a key. The broker is locked.
func (s *Server) setLocked(key, value string) {
	s.store.Do(&store.Request{ClientID: "c", Payload: wire.AppendRequest(nil, wire.VerbSet, key, value), Timestamp: []byte("1:0:c")}, nil)
	s.notify()
}

// TestAwaitBacklog: who waits for notifications does not wait for later ones. Other clients can use the broker while
// many replies are sent from the backlog.
func TestAwaitBacklog(t *testing.T) {
	t.Parallel()
	s, _ := lockedCrowd(t, 100)
	defer s.broker.Unlock()
	s.setLocked("crowded", "v")
	awaited, replies := false, 0
	var reply func()
	reply = func() {
		if replies++; !awaited {
			s.postpone(&unsent{clientID: "w0", send: reply, bytes: 1000})
		}
	}
	reply()
	s.awaitNotify()
	awaited = true
	s.awaitNotify()
	if replies < 2 || s.backlog.bytes != 0 || s.backlog.behind != nil {
		t.Errorf("after %d replies, the backlog is %+v", replies, s.backlog)
	}
}

// TestDelayedBehindBacklog: a delayed notification is sent after those that are in the backlog when it becomes due.
func TestDelayedBehindBacklog(t *testing.T) {
	t.Parallel()
	s, w0 := lockedCrowd(t, 100)
	delay := time.Hour
	s.onNotify = func(Notification) NotificationAction { return NotificationAction{Delay: delay} }
	s.setLocked("crowded", "delayed")
	s.awaitNotify()
	delay = 0
	s.setLocked("crowded", "first")
	s.broker.Advance(time.Hour)
	s.broker.Unlock()
	for _, want := range []string{"first", "delayed"} {
		expectNotified(t, w0, want)
	}
}

// stalledCrowd is like lockedCrowd, but the server is in a bubble of testing/synctest and has a data file, which
// sendBacklog waits for until goOn is closed.
func stalledCrowd(t *testing.T, watchers int, file string) (s *Server, goOn chan struct{}) {
	blocked := false
	goOn = make(chan struct{})
	s, _ = lockedCrowd(t, watchers, Options{InProcess: true, Data: Data{File: file, commit: func(write func() error) error {
		if blocked {
			<-goOn
		}
		return write()
	}}})
	blocked = true
	return s, goOn
}

// TestBacklogAwaitsFile: notifications to many watchers wait for the data file in the backlog, so that they are then
// sent in steps.
func TestBacklogAwaitsFile(t *testing.T) {
	t.Parallel()
	file := t.TempDir() + "/data"
	synctest.Test(t, func(t *testing.T) {
		const watchers = 100
		s, goOn := stalledCrowd(t, watchers, file)
		before := s.counts.Notifications
		s.setLocked("crowded", "v")
		s.broker.Unlock()
		synctest.Wait()
		s.broker.Lock()
		if held, waiting := len(s.journal.last().held), s.backlog.behind["w0"]; held != 0 || waiting != 1 {
			t.Errorf("%d messages wait in the journal and %d in the backlog, want 0 and 1", held, waiting)
		}
		s.broker.Unlock()
		close(goOn)
		s.FastForward(0)
		if got := s.State().Notifications - before; got != watchers {
			t.Errorf("%d notifications were sent, want %d", got, watchers)
		}
	})
}

// TestReconnectedBehindBacklog: a notification in the backlog is sent even if the client has ended its registration
// meanwhile, but not to a later connection of the client.
func TestReconnectedBehindBacklog(t *testing.T) {
	t.Parallel()
	file := t.TempDir() + "/data"
	synctest.Test(t, func(t *testing.T) {
		const watchers = 100
		s, goOn := stalledCrowd(t, watchers, file)
		before := s.counts.Notifications
		s.setLocked("crowded", "v")
		for _, id := range []string{"w0", "w1", "w2"} {
			s.store.Do(&store.Request{ClientID: id, Payload: wire.AppendRequest(nil, wire.VerbKeyNotify, "crowded", wire.OptionStop)}, nil)
		}
		s.broker.Client("w0").Cut()
		s.broker.Client("w1").Cut()
		s.broker.Unlock()
		watcher(t, s, "w0")
		synctest.Wait()
		close(goOn)
		s.FastForward(0)
		if got := s.State().Notifications - before; got != watchers-2 {
			t.Errorf("%d notifications were sent, want %d", got, watchers-2)
		}
	})
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

// TestFullBacklog: while the backlog is full, only Redis commands that would add to it wait.
func TestFullBacklog(t *testing.T) {
	t.Parallel()
	var s *Server
	s = Start(t, Options{Redis: "127.0.0.1:0", Observe: func(e Event) {
		if e.Verb == "set" && slices.Contains(e.Keys, "watched") && s.backlog.bytes > maxBacklog {
			t.Error("a watched key is changed although the backlog is full")
		}
	}})
	watcher(t, s, "watcher", "watched")
	s.broker.Lock()
	s.backlog.bytes = maxBacklog + 1
	s.broker.Unlock()
	var writers sync.WaitGroup
	for _, request := range []string{"SET watched v\r\n", "MSET k v watched v\r\n", "MULTI\r\nSET watched v\r\nEXEC\r\n", "FLUSHALL\r\n"} {
		c := redistest.Dial(t, "tcp", redistest.Address(s.RedisURL()))
		if _, err := c.Conn.Write([]byte(request)); err != nil {
			t.Fatal(err)
		}
		writers.Go(func() {
			for range strings.Count(request, "\r\n") {
				if reply, err := c.Frame(); err != nil || reply[0] == '-' {
					t.Errorf("%q: %q, %v", request, reply, err)
				}
			}
		})
	}
	c := redistest.Dial(t, "tcp", redistest.Address(s.RedisURL()))
	c.Expect(t, "+OK\r\n", "SET", "other", "v")
	c.Expect(t, "$1\r\nv\r\n", "GET", "other")
	c.Expect(t, "$-1\r\n", "GET", "watched")
	c.Expect(t, ":0\r\n", "DEL", "none")
	s.broker.Lock()
	s.backlog.bytes = 0
	s.notified.Broadcast()
	s.broker.Unlock()
	writers.Wait()
}
