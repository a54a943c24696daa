package emulator_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sscli/sscli/emulator"
	"github.com/sscli/sscli/internal/disk"
	"github.com/sscli/sscli/internal/testkit/await"
	"github.com/sscli/sscli/internal/testkit/redistest"
	"github.com/sscli/sscli/internal/wire"
)

func newData(t *testing.T) emulator.Data {
	t.Helper()
	return emulator.Data{File: filepath.Join(t.TempDir(), "store.db")}
}

// serveData starts a server that a test ends itself.
func serveData(t *testing.T, o emulator.Options) *emulator.Server {
	t.Helper()
	o.Changes = true
	s, err := emulator.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func closeData(t *testing.T, s *emulator.Server) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// put sends a SET with user properties of the state store, as a client would.
func put(t *testing.T, s *emulator.Server, words string, properties ...emulator.Property) wire.Version {
	t.Helper()
	properties = append(properties, emulator.Property{Name: wire.PropTimestamp, Value: "1:0:client"})
	resp := s.Do(emulator.NewRequest("client", wire.AppendRequest(nil, strings.Split(words, " ")...), properties...))
	if string(resp.Payload) != "+OK\r\n" && string(resp.Payload) != ":1\r\n" {
		t.Fatalf("%s: %q", words, resp.Payload)
	}
	return resp.Version
}

// TestDataRestart: a restart keeps entries complete, and versions continue to rise.
func TestDataRestart(t *testing.T) {
	t.Parallel()
	o := emulator.Options{Data: newData(t)}
	long := strings.Repeat("k", 60_000)
	s := serveData(t, o)
	put(t, s, "SET plain 1")
	put(t, s, "SET expires 2 PX 3600000")
	put(t, s, "SET fenced 3", emulator.Property{Name: wire.PropFence, Value: "1696374425000:1:lock"})
	put(t, s, "SET asked 4", emulator.Property{Name: wire.PropPersist, Value: "true"})
	put(t, s, "SET gone 5")
	put(t, s, "DEL gone")
	put(t, s, "SET "+long+" \x00\xff")
	put(t, s, "SET empty ")
	latest := put(t, s, "SET plain 6")
	want := make(map[string]emulator.Entry)
	for _, key := range s.Keys() {
		want[key], _ = s.Get(key)
	}
	closeData(t, s)

	o.Skew = -time.Hour // the machine's clock was set back
	s = serveData(t, o)
	got := make(map[string]emulator.Entry)
	for _, key := range s.Keys() {
		got[key], _ = s.Get(key)
	}
	compare := cmp.Comparer(func(a, b wire.Version) bool { return a.String() == b.String() })
	if diff := cmp.Diff(want, got, compare); diff != "" || len(got) != 6 {
		t.Errorf("after the restart (-want +got):\n%s", diff)
	}
	for range 3 {
		next := put(t, s, "SET plain 7")
		if next.Compare(latest) <= 0 || next.Wall > latest.Wall+2000 {
			t.Errorf("the version %v, after %v", next, latest)
		}
		latest = next
		closeData(t, s)
		s = serveData(t, o)
	}
	resp := s.Do(emulator.NewRequest("client", wire.AppendRequest(nil, "SET", "fenced", "8"), emulator.Property{Name: wire.PropTimestamp, Value: "1:0:client"}))
	if !strings.Contains(string(resp.Payload), wire.TextFenceRequired) {
		t.Errorf("a write without a token: %q", resp.Payload)
	}
	closeData(t, s)
}

// TestDataPatterns: the patterns of a data file have the syntax of SCAN: the file keeps the keys that SCAN would list.
func TestDataPatterns(t *testing.T) {
	t.Parallel()
	for _, pattern := range []string{"[!a]x", "?", "a/**", "a/**/b", "[a-c]*", "*", "[]]"} {
		o := emulator.Options{Data: newData(t)}
		o.Data.Asked, o.Data.Patterns = true, []string{pattern}
		s := serveData(t, o)
		for _, key := range []string{"ax", "bx", "a", "é", "a/1/b", "a/b", "c1", "!", "]"} {
			put(t, s, "SET "+key+" 1")
		}
		r := s.Do(emulator.NewRequest("client", wire.AppendRequest(nil, "SCAN", pattern), emulator.Property{Name: wire.PropTimestamp, Value: "1:0:client"}))
		listed, err := wire.ParseValue(r.Payload)
		if err != nil || len(listed.Items) == 0 {
			t.Fatalf("%s: SCAN: %q, %v", pattern, r.Payload, err)
		}
		var want []string
		for _, key := range listed.Items[0].Items {
			want = append(want, string(key.Text))
		}
		slices.Sort(want)
		closeData(t, s)
		s = serveData(t, o)
		if diff := cmp.Diff(want, s.Keys()); diff != "" {
			t.Errorf("%s: kept, but for what SCAN lists (-want +got):\n%s", pattern, diff)
		}
		closeData(t, s)
	}
	o := emulator.Options{Data: newData(t)}
	o.Data.Patterns = []string{"a**"}
	if s, err := emulator.New(o); err == nil || !strings.Contains(err.Error(), `"a**" is not a pattern`) {
		t.Errorf("New: %v, %v", s, err)
	}
}

// TestDataAsked: with Data.Asked, a restart keeps only the keys that match a pattern, or whose last write
// asked for it.
func TestDataAsked(t *testing.T) {
	t.Parallel()
	o := emulator.Options{Data: newData(t)}
	o.Data.Asked, o.Data.Patterns = true, []string{"config/*", "exact"}
	persist := emulator.Property{Name: wire.PropPersist, Value: "true"}
	s := serveData(t, o)
	put(t, s, "SET asked 1", persist)
	put(t, s, "SET config/a 2")
	put(t, s, "SET exact 3")
	put(t, s, "SET exactly 4")
	put(t, s, "SET no-more 5", persist)
	put(t, s, "SET no-more 6")
	put(t, s, "SET later 7")
	put(t, s, "SET later 8", persist)
	put(t, s, "SET deleted 9", persist)
	put(t, s, "DEL deleted")
	var latest wire.Version
	for range 3 {
		latest = put(t, s, "SET not-kept 10")
	}
	closeData(t, s)

	o.Skew = -time.Minute
	s = serveData(t, o)
	if diff := cmp.Diff([]string{"asked", "config/a", "exact", "later"}, s.Keys()); diff != "" {
		t.Errorf("kept (-want +got):\n%s", diff)
	}
	if next := put(t, s, "SET not-kept 11"); next.Compare(latest) <= 0 {
		t.Errorf("the version %v, after %v of a key that was not kept", next, latest)
	}
	closeData(t, s)

	o.Data.Asked = false
	s = serveData(t, o)
	put(t, s, "SET all 12")
	closeData(t, s)
	o.Data.Asked = true // keys in the file stay until they are written again
	s = serveData(t, o)
	put(t, s, "SET asked 13")
	put(t, s, "DEL config/a")
	closeData(t, s)
	s = serveData(t, o)
	if diff := cmp.Diff([]string{"all", "exact", "later"}, s.Keys()); diff != "" {
		t.Errorf("kept (-want +got):\n%s", diff)
	}
	closeData(t, s)
}

// TestDataExpiredWhileDown: keys that expired while the server was down are deleted at the start, in the
// order of their deadlines.
func TestDataExpiredWhileDown(t *testing.T) {
	t.Parallel()
	o := emulator.Options{Data: newData(t)}
	s := serveData(t, o)
	for i, key := range []string{"e", "c", "a", "d", "b"} {
		put(t, s, fmt.Sprintf("SET %s v PX %d", key, 60_000+i))
	}
	put(t, s, "SET later v PX 7200000")
	closeData(t, s)

	o.Skew = time.Hour // the server was down for an hour
	s = serveData(t, o)
	var gone []string
	for _, c := range s.Changes() {
		gone = append(gone, fmt.Sprint(c.Key, " ", c.Cause))
	}
	if diff := cmp.Diff([]string{"e expired", "c expired", "a expired", "d expired", "b expired"}, gone); diff != "" {
		t.Errorf("changes at the start (-want +got):\n%s", diff)
	}
	s.FastForward(2 * time.Hour)
	closeData(t, s)

	report, err := disk.Check(o.Data.File, nil)
	if err != nil || report.Records != 0 || len(report.Damages) > 0 {
		t.Errorf("the file: %+v, %v", report, err)
	}
}

// TestDataManyRestarts: versions rise across restarts, but do not run away from the clock.
func TestDataManyRestarts(t *testing.T) {
	t.Parallel()
	const restarts = 100
	o := emulator.Options{Data: newData(t)}
	last := wire.Version{}
	restart := func(what string, most func() int64) {
		t.Helper()
		for range restarts {
			s := serveData(t, o)
			for range 2 {
				v := put(t, s, "SET k v")
				if v.Compare(last) <= 0 || v.Wall > most() {
					t.Fatalf("%s: version %v after %v, want a wall clock of at most %d", what, v, last, most())
				}
				last = v
			}
			closeData(t, s)
		}
	}
	restart("after restarts", func() int64 { return time.Now().UnixMilli() + 1000 + restarts })

	s := serveData(t, o)
	ahead := wire.Version{Wall: time.Now().UnixMilli() + 59_900, Node: "client"}
	if last = put(t, s, "SET k v", emulator.Property{Name: wire.PropTimestamp, Value: ahead.String()}); last.Wall != ahead.Wall {
		t.Errorf("version %v after the timestamp %v", last, ahead)
	}
	closeData(t, s)
	restart("after a timestamp that was ahead", func() int64 { return max(ahead.Wall, time.Now().UnixMilli()) + 1 + restarts })
	o.Skew = -time.Hour
	restart("after the clock was set back", func() int64 { return max(ahead.Wall, time.Now().UnixMilli()) + 1 + 2*restarts })
}

// TestDataWithoutClock: versions are greater than those of the keys in a file that has lost its clock, such as a copy of
// what was readable.
func TestDataWithoutClock(t *testing.T) {
	t.Parallel()
	o := emulator.Options{Data: newData(t)}
	f, err := disk.Open(o.Data.File, disk.Options{}, func(disk.Record) {})
	if err != nil {
		t.Fatal(err)
	}
	var b disk.Batch
	latest := wire.Version{Wall: time.Now().Add(time.Hour).UnixMilli(), Counter: 7, Node: "StateStore"}
	b.Put(disk.Record{Key: []byte("a"), Version: []byte("1:0:StateStore")})
	b.Put(disk.Record{Key: []byte("b"), Version: []byte(latest.String())})
	b.Put(disk.Record{Key: []byte("c"), Version: []byte("2:0:StateStore")})
	if err := errors.Join(f.Commit(&b), f.Close()); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		s := serveData(t, o)
		next := put(t, s, "SET b 1")
		if next.Compare(latest) <= 0 {
			t.Errorf("the version %v, after %v", next, latest)
		}
		latest = next
		closeData(t, s)
	}
}

// stalled holds up commits until it is released.
type stalled struct {
	mu      sync.Mutex
	holding chan struct{}
	err     error
	commits int
}

func (s *stalled) commit(write func() error) error {
	s.mu.Lock()
	holding := s.holding
	s.commits++
	s.mu.Unlock()
	if holding != nil {
		<-holding
	}
	s.mu.Lock()
	err := s.err
	s.mu.Unlock()
	if err != nil {
		return err
	}
	return write()
}

func (s *stalled) hold() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.holding = make(chan struct{})
}

// release lets the waiting commits and all later ones proceed.
func (s *stalled) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.holding)
	s.holding = nil
}

func (s *stalled) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.commits
}

// TestDataHoldsAnswers: nothing is sent before the commit, neither the reply to a write, nor its
// notification, nor the reply to a read. Then everything is sent in order, and requests that arrived
// meanwhile share a commit.
func TestDataHoldsAnswers(t *testing.T) {
	t.Parallel()
	var disk stalled
	o := emulator.Options{Data: newData(t).Around(disk.commit)}
	s := emulator.Start(t, o)
	watcher, writer, reader := connect(t, s, "watcher"), connect(t, s, "writer"), connect(t, s, "reader")
	watcher.do("KEYNOTIFY k", "+OK")
	reader.do("GET other", "$-1")
	disk.hold()
	before := disk.count()
	writer.ask("SET k 1")
	writer.Expect("PUBACK 0x00")
	reader.ask("GET k")
	reader.Expect("PUBACK 0x00")
	writer.ask("SET k 2")
	writer.Expect("PUBACK 0x00")
	writer.ask("SET k 3 PX 3600000")
	writer.Expect("PUBACK 0x00")
	writer.ask("DEL k")
	writer.Expect("PUBACK 0x00")
	reader.ask("GET k")
	reader.Expect("PUBACK 0x00")
	await.State(t, s, func(st emulator.State) bool { return st.Requests == 8 })
	if st := s.State(); st.Replies != 2 || st.Notifications != 0 {
		t.Errorf("before the commit: %+v", st)
	}
	disk.release()
	writer.Expect("reply +OK", "reply +OK", "reply +OK", "reply :1")
	reader.Expect("reply $1\r\n1", "reply $-1")
	watcher.Expect("notify 6B SET VALUE 1", "notify 6B SET VALUE 2", "notify 6B SET VALUE 3", "notify 6B DELETE")
	if n := disk.count() - before; n > 2 {
		t.Errorf("%d commits, want two: what came during the first shares the second", n)
	}
	reader.do("GET k", "$-1")
}

// TestDataBounded: values that wait for the disk take little memory, however fast the clients send them and whether or
// not they wait for replies.
func TestDataBounded(t *testing.T) {
	t.Parallel()
	const (
		sets = 30
		size = 900 << 10
		most = 16<<20/size + 2 // values that may wait
	)
	value := strings.Repeat("v", size)
	for name, send := range map[string]func(*testing.T, *emulator.Server){
		"MQTT": func(t *testing.T, s *emulator.Server) {
			writer := connect(t, s, "writer")
			for range sets {
				writer.ask("SET k " + value)
			}
		},
		"Redis": func(t *testing.T, s *emulator.Server) {
			c := redistest.Dial(t, "tcp", redistest.Address(s.RedisURL()))
			if err := c.Send("CLIENT", "REPLY", "OFF"); err != nil {
				t.Fatal(err)
			}
			for range sets {
				if err := c.Send("SET", "k", value); err != nil {
					t.Fatal(err)
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var server atomic.Pointer[emulator.Server]
			var processed atomic.Int64
			var before, worst int64 // before: processed when the previous commit began
			commit := func(write func() error) error {
				begun := processed.Load()
				for processed.Load() < sets && !server.Load().JournalFull() { // a slow disk
					runtime.Gosched()
				}
				err := write()
				worst = max(worst, processed.Load()-before)
				before = begun
				return err
			}
			s := serveData(t, emulator.Options{Data: newData(t).Around(commit), Redis: "127.0.0.1:0", Observe: func(e emulator.Event) {
				if slices.Contains(e.Keys, "k") {
					processed.Add(1)
				}
			}})
			server.Store(s)
			send(t, s)
			await.State(t, s, func(emulator.State) bool { return processed.Load() == sets })
			closeData(t, s)
			if worst > most {
				t.Errorf("%d values of %d bytes waited, want at most %d", worst, size, most)
			}
		})
	}
}

// TestDataDiskError: after a disk error the server sends no reply, and reports the error.
func TestDataDiskError(t *testing.T) {
	t.Parallel()
	var broken stalled
	o := emulator.Options{Data: newData(t).Around(broken.commit)}
	s := serveData(t, o)
	writer := connect(t, s, "writer")
	writer.do("SET k 1", "+OK")
	broken.hold()
	broken.err = errors.New("input/output error")
	writer.ask("SET k 2")
	writer.Expect("PUBACK 0x00")
	writer.ask("GET k")
	writer.Expect("PUBACK 0x00")
	broken.release()
	writer.Expect("DISCONNECT 0x8b")
	writer.Ended()
	<-s.Done()
	if _, ok := errors.AsType[*emulator.DataError](s.Err()); !ok || !errors.Is(s.Err(), broken.err) {
		t.Errorf("Err: %v", s.Err())
	}
	if err := s.Await(t.Context(), func(emulator.State) bool { return false }); !errors.Is(err, broken.err) {
		t.Errorf("Await: %v", err)
	}
	if resp := s.Do(emulator.NewRequest("", wire.AppendRequest(nil, "GET", "k"))); len(resp.Payload) > 0 {
		t.Errorf("an answer after the end: %q", resp.Payload)
	}
	closeData(t, s)

	s = serveData(t, emulator.Options{Data: emulator.Data{File: o.Data.File}})
	if e, _ := s.Get("k"); string(e.Value) != "1" {
		t.Errorf("k is %q, want the value that was acknowledged", e.Value)
	}
	closeData(t, s)
}

// TestDataFastForward: when FastForward returns, keys have expired and the file has the deletions.
func TestDataFastForward(t *testing.T) {
	t.Parallel()
	s := emulator.Start(t, emulator.Options{Data: newData(t)})
	c := connect(t, s, "c")
	c.do("KEYNOTIFY k", "+OK")
	c.ask("SET k v PX 1000")
	c.Expect("PUBACK 0x00", "notify 6B SET VALUE v", "reply +OK")
	s.FastForward(time.Second)
	c.Expect("notify 6B DELETE")
	if keys := s.Keys(); len(keys) > 0 {
		t.Errorf("keys: %q", keys)
	}
}

// TestDataLocked: a file that another server uses is refused.
func TestDataLocked(t *testing.T) {
	t.Parallel()
	o := emulator.Options{Data: newData(t)}
	s := serveData(t, o)
	_, err := emulator.New(o)
	locked, ok := errors.AsType[*disk.LockedError](err)
	if !ok || locked.PID != os.Getpid() {
		t.Errorf("a second server: %v", err)
	}
	closeData(t, s)
	s = serveData(t, o)
	closeData(t, s)
	if left, err := filepath.Glob(o.Data.File + "*"); err != nil || !slices.Equal(left, []string{o.Data.File}) {
		t.Errorf("left: %q, %v", left, err)
	}
}

// TestDataStart limits the start of a store with many keys: a second for 1,000,000 keys on an idle machine.
func TestDataStart(t *testing.T) {
	t.Parallel()
	data := newData(t)
	f, err := disk.Open(data.File, disk.Options{}, func(disk.Record) {})
	if err != nil {
		t.Fatal(err)
	}
	const keys = 100_000
	var b disk.Batch
	for i := range keys {
		b.Put(disk.Record{Key: fmt.Appendf(nil, "key/%d", i), Value: make([]byte, 100), Version: []byte("1:0:StateStore")})
	}
	if err := errors.Join(f.Commit(&b), f.Close()); err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	s := serveData(t, emulator.Options{Data: data})
	if took := time.Since(begin); took > patience {
		t.Errorf("the start with %d keys took %v", keys, took)
	}
	if n := s.State().Keys; n != keys {
		t.Errorf("%d keys, want %d", n, keys)
	}
	closeData(t, s)
}
