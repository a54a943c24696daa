package client

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sscli/sscli/emulator"
	"github.com/sscli/sscli/internal/mqtt"
	"github.com/sscli/sscli/internal/testkit/await"
	"github.com/sscli/sscli/internal/testkit/freeport"
	"github.com/sscli/sscli/internal/wire"
)

// next returns the next event of a watch.
func next(t *testing.T, w *Watch) Event {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	e, err := w.Next(ctx)
	if err != nil {
		t.Fatalf("next event: %v", err)
	}
	return e
}

// told formats an event briefly.
func told(e Event) string {
	words := []string{string(e.Kind)}
	if e.Key != "" {
		words = append(words, e.Key)
	}
	if e.HasValue {
		words = append(words, fmt.Sprintf("%q", e.Value))
	}
	if e.Continuity != "" {
		words = append(words, string(e.Continuity))
	}
	return strings.Join(words, " ")
}

func wantEvents(t *testing.T, w *Watch, want ...string) []Event {
	t.Helper()
	var events []Event
	var got []string
	for range want {
		e := next(t, w)
		events = append(events, e)
		got = append(got, told(e))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("events (-want +got):\n%s", diff)
	}
	return events
}

func watchSession(t *testing.T, o Options) *Session {
	t.Helper()
	if o.Timeout == 0 {
		o.Timeout = time.Minute // no slow machine exceeds it
	}
	s, err := Dial(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		// A machine that stands still has no time to send DISCONNECT.
		if err := s.Close(); err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("close: %v", err)
		}
	})
	return s
}

func startWatch(t *testing.T, s *Session, o WatchOptions, keys ...string) *Watch {
	t.Helper()
	w, err := s.Watch(t.Context(), keys, o)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func write(t *testing.T, server *emulator.Server, words ...string) wire.Version {
	t.Helper()
	r := server.Do(emulator.NewRequest("writer", wire.AppendRequest(nil, words...),
		emulator.Property{Name: wire.PropTimestamp, Value: "1:0:writer"}))
	if strings.HasPrefix(string(r.Payload), "-") {
		t.Fatalf("%v: %s", words, r.Payload)
	}
	return r.Version
}

func TestWatchTellsWhatIsAndThenEveryChangeWithItsVersion(t *testing.T) {
	t.Parallel()
	server := emulator.Start(t)
	first := write(t, server, "SET", "a", "1")
	w := startWatch(t, watchSession(t, Options{Address: server.Addr().String()}), WatchOptions{}, "a", "b")
	versions := []wire.Version{
		write(t, server, "SET", "a", "2"),
		write(t, server, "DEL", "a"),
		write(t, server, "SET", "b", "", "PX", "5"),
	}
	server.FastForward(time.Second)
	events := wantEvents(t, w, `initial a "1"`, `initial b`, `set a "2"`, `delete a`, `set b ""`, `delete b`)
	if !events[0].Version.Equal(first) {
		t.Errorf("initial has version %v, want %v", events[0].Version, first)
	}
	for i, v := range versions {
		if got := events[2+i].Version; !got.Equal(v) {
			t.Errorf("event %d has version %v, the write had %v", i, got, v)
		}
	}
}

func TestWatchSubscribesThenAsksThenReads(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { // on a slow machine, a request is sent again
		store := startVirtual(t, emulator.Options{})
		defer store.Close()
		var mu sync.Mutex
		var sent []string
		s := store.dial(t, newBarrier(), Options{Trace: func(e mqtt.Event) {
			mu.Lock()
			defer mu.Unlock()
			switch {
			case e.Message != nil && e.Message.Topic == wire.RequestTopic:
				words, err := wire.ParseRequest(e.Message.Payload)
				if err != nil {
					t.Error(err)
				}
				sent = append(sent, fmt.Sprintf("%s", words))
			case e.Message != nil:
				sent = append(sent, "reply")
			case e.Type == "SUBSCRIBE" || e.Type == "SUBACK":
				sent = append(sent, e.Type)
			}
		}})
		defer s.Close()
		startWatch(t, s, WatchOptions{}, "a")
		mu.Lock()
		got := slices.Clone(sent)
		mu.Unlock()
		want := []string{"SUBSCRIBE", "SUBACK", "SUBSCRIBE", "SUBACK", "[KEYNOTIFY a]", "reply", "[GET a]", "reply"}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	})
}

// TestWatchEveryWriteDuringTheFirstReadIsSeenOnce: if another client writes between the KEYNOTIFY and the
// reply to the GET, the writes that the GET saw are part of the initial event, and the others follow it,
// once.
func TestWatchEveryWriteDuringTheFirstReadIsSeenOnce(t *testing.T) {
	t.Parallel()
	for name, variants := range map[string]emulator.Variants{
		"real":               {},
		"delete new version": {DeleteNewVersion: true},
		"delete no version":  {DeleteNoVersion: true},
		"DEL":                {NotifyDEL: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { // on a slow machine, the GET is sent again
				writesDuringTheFirstRead(t, startVirtual(t, emulator.Options{Variants: variants}))
			})
		})
	}
}

func writesDuringTheFirstRead(t *testing.T, store *virtualStore) {
	defer store.Close()
	server := store.Server
	write(t, server, "SET", "k", "before")
	var once sync.Once
	server.Intercept(func(r emulator.Request) emulator.Action {
		if r.Verb() != "GET" {
			return emulator.Action{}
		}
		once.Do(func() { // the KEYNOTIFY has its reply, the GET is not processed
			write(t, server, "SET", "k", "1")
			write(t, server, "DEL", "k")
			write(t, server, "SET", "k", "2")
		})
		return emulator.Action{Delay: time.Second, DelayReply: time.Second}
	})
	s := store.dial(t, newBarrier(), Options{})
	defer s.Close()
	watching := make(chan *Watch)
	go func() {
		w, err := s.Watch(t.Context(), []string{"k"})
		if err != nil {
			t.Error(err)
		}
		watching <- w
	}()
	await.State(t, server, func(st emulator.State) bool { return st.Delayed == 1 })
	server.FastForward(1500 * time.Millisecond) // processed, but without a reply
	write(t, server, "DEL", "k")
	write(t, server, "SET", "k", "3")
	write(t, server, "DEL", "k")
	server.FastForward(time.Second)
	w := <-watching
	write(t, server, "SET", "k", "4")
	wantEvents(t, w, `initial k "2"`, `delete k`, `set k "3"`, `delete k`, `set k "4"`)
}

func TestWatchUnusualNotificationsAreEventsToo(t *testing.T) {
	t.Parallel()
	server := emulator.Start(t, emulator.Options{Variants: emulator.Variants{NotifyNoVersion: true, NotifyNoValue: true}})
	w := startWatch(t, watchSession(t, Options{Address: server.Addr().String()}), WatchOptions{}, "a")
	for range 2 {
		write(t, server, "SET", "a", "1")
	}
	write(t, server, "DEL", "a")
	for _, e := range wantEvents(t, w, `initial a`, `set a`, `set a`, `delete a`)[1:] {
		if !e.Version.IsZero() {
			t.Errorf("%s has version %v, want none", told(e), e.Version)
		}
	}
}

func TestWatchDuplicatesAreDropped(t *testing.T) {
	t.Parallel()
	w := &Watch{o: WatchOptions{Buffer: 100}, wake: make(chan struct{}, 1)}
	k := &watchedKey{state: state{true, version(t, "1000:5:s")}}
	w.keys = map[string]*watchedKey{"k": k}
	for _, e := range []Event{
		{Kind: EventSet, Version: version(t, "1000:5:s")}, // what the GET found
		{Kind: EventDelete, Version: version(t, "1000:4:s")},
		{Kind: EventSet, Version: version(t, "1000:6:s")},
		{Kind: EventSet, Version: version(t, "001000:006:s")},
		{Kind: EventDelete, Version: version(t, "1000:6:s")}, // with the version that was deleted
		{Kind: EventDelete, Version: version(t, "1000:6:s")},
		{Kind: EventDelete},
		{Kind: EventDelete}, // without a version, so it may be another deletion
	} {
		w.notify(k, e)
	}
	var got []string
	for _, e := range slices.Concat(w.queue...) {
		got = append(got, string(e.Kind)+" "+e.Version.String())
	}
	want := []string{"set 1000:6:s", "delete 1000:6:s", "delete 000000000000000:00000:", "delete 000000000000000:00000:"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func version(t *testing.T, text string) wire.Version {
	t.Helper()
	v, err := wire.ParseVersion(text)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestVerdict(t *testing.T) {
	t.Parallel()
	v5, v6 := version(t, "5:0:s"), version(t, "6:0:s")
	here := func(v wire.Version) state { return state{true, v} }
	gone := func(v wire.Version) state { return state{false, v} }
	for name, c := range map[string]struct {
		before, now state
		announced   bool
		want        Continuity
	}{
		"the same version":                     {here(v5), here(v5), false, ContinuityProven},
		"newer, not announced":                 {here(v5), here(v6), false, ContinuityLost},
		"newer, announced":                     {here(v5), here(v6), true, ContinuityUnknown},
		"gone although it was there":           {here(v5), gone(wire.Version{}), false, ContinuityLost},
		"gone, announced":                      {here(v5), gone(wire.Version{}), true, ContinuityUnknown},
		"older":                                {here(v6), here(v5), false, ContinuityLost},
		"older, announced":                     {here(v6), here(v5), true, ContinuityLost},
		"absent before and after":              {gone(v5), gone(wire.Version{}), false, ContinuityUnknown},
		"there although it was absent":         {gone(v5), here(v6), false, ContinuityLost},
		"there, announced":                     {gone(v5), here(v6), true, ContinuityUnknown},
		"there, older than its deletion":       {gone(v6), here(v5), true, ContinuityLost},
		"the version before was not known":     {here(wire.Version{}), here(v5), false, ContinuityUnknown},
		"the version now is not known":         {here(v5), here(wire.Version{}), false, ContinuityUnknown},
		"never a version and never proven":     {here(wire.Version{}), here(wire.Version{}), false, ContinuityUnknown},
		"absent, and now without its version":  {gone(wire.Version{}), here(wire.Version{}), false, ContinuityUnknown},
		"absent without a version, there now ": {gone(wire.Version{}), here(v5), false, ContinuityLost},
	} {
		t.Run(name, func(t *testing.T) {
			if got := continuityOf(c.before, c.now, c.announced); got != c.want {
				t.Errorf("verdict is %s, want %s", got, c.want)
			}
		})
	}
}

func TestWatchAfterABreakSaysWhatIsProven(t *testing.T) {
	t.Parallel()
	server := emulator.Start(t)
	write(t, server, "SET", "same", "1")
	write(t, server, "SET", "changed", "1")
	write(t, server, "SET", "deleted", "1")
	s := watchSession(t, Options{Address: server.Addr().String()})
	w := startWatch(t, s, WatchOptions{}, "absent", "changed", "created", "deleted", "same")
	wantEvents(t, w, `initial absent`, `initial changed "1"`, `initial created`, `initial deleted "1"`, `initial same "1"`)
	hold := make(chan struct{})
	server.Intercept(func(r emulator.Request) emulator.Action { <-hold; return emulator.Action{} })
	server.DropAll()
	wantEvents(t, w, `down`)
	write(t, server, "SET", "changed", "2")
	write(t, server, "SET", "created", "1")
	write(t, server, "DEL", "deleted")
	server.Intercept(nil)
	close(hold)
	events := wantEvents(t, w,
		`gap absent unknown`, `resync absent unknown`,
		`gap changed lost`, `resync changed "2" lost`,
		`gap created lost`, `resync created "1" lost`,
		`gap deleted lost`, `resync deleted lost`,
		`resync same "1" proven`, `up`)
	if gap := events[0]; !gap.From.Before(gap.To) {
		t.Errorf("gap from %v to %v", gap.From, gap.To)
	}
	write(t, server, "SET", "same", "2")
	wantEvents(t, w, `set same "2"`)
}

func TestWatchOfAStoreThatRestartsEmpty(t *testing.T) {
	t.Parallel()
	addr := freeport.Address(t)
	old, err := emulator.New(emulator.Options{Listen: addr})
	if err != nil {
		t.Fatal(err)
	}
	write(t, old, "SET", "k", "1")
	w := startWatch(t, watchSession(t, Options{Address: addr}), WatchOptions{}, "k")
	if err := old.Close(); err != nil {
		t.Fatal(err)
	}
	server := emulator.Start(t, emulator.Options{Listen: addr})
	wantEvents(t, w, `initial k "1"`, `down`, `gap k lost`, `resync k lost`, `up`)
	write(t, server, "SET", "k", "2")
	wantEvents(t, w, `set k "2"`)
}

func TestWatchersShareOneRegistrationAndTheLastTakesItBack(t *testing.T) {
	t.Parallel()
	locked(t, emulator.Options{}, func(t *testing.T, store *virtualStore, s *Session) {
		server := store.Server
		var asked, stopped atomic.Int32
		server.Intercept(func(r emulator.Request) emulator.Action {
			if r.Verb() == "KEYNOTIFY" {
				if strings.Contains(string(r.Payload), "STOP") {
					stopped.Add(1)
				} else {
					asked.Add(1)
				}
			}
			return emulator.Action{}
		})
		one := startWatch(t, s, WatchOptions{}, "k")
		two := startWatch(t, s, WatchOptions{}, "k", "k", "other")
		write(t, server, "SET", "k", "1")
		wantEvents(t, one, `initial k`, `set k "1"`)
		wantEvents(t, two, `initial k`, `initial other`, `set k "1"`)
		if n := asked.Load(); n != 2 {
			t.Errorf("%d KEYNOTIFY for two keys", n)
		}
		if err := one.Close(); err != nil {
			t.Fatal(err)
		}
		if n := stopped.Load(); n != 0 {
			t.Errorf("%d STOP while a watcher is left", n)
		}
		write(t, server, "SET", "k", "2")
		wantEvents(t, two, `set k "2"`)
		if err := two.Close(); err != nil {
			t.Fatal(err)
		}
		if n := stopped.Load(); n != 2 {
			t.Errorf("%d STOP for two keys", n)
		}
		await.State(t, server, func(st emulator.State) bool { return st.Registrations == 0 })
		if _, err := two.Next(t.Context()); !errors.Is(err, mqtt.ErrClosed) {
			t.Errorf("next of a closed watch: %v", err)
		}
	})
}

func TestWatchRefused(t *testing.T) {
	t.Parallel()
	t.Run("subscribe", func(t *testing.T) {
		server := emulator.Start(t, emulator.Options{Policy: emulator.PolicyFunc(func(a emulator.Access) bool {
			return !strings.Contains(a.On, "/notify/")
		})})
		_, err := watchSession(t, Options{Address: server.Addr().String()}).Watch(t.Context(), []string{"k"})
		if refused, ok := errors.AsType[*mqtt.ReasonError](err); !ok || refused.Packet != "SUBACK" || refused.Code != mqtt.ReasonNotAuthorized {
			t.Errorf("got %v", err)
		}
	})
	t.Run("keynotify", func(t *testing.T) {
		server := emulator.Start(t, emulator.Options{Policy: emulator.PolicyFunc(func(a emulator.Access) bool { return a.On != "k" })})
		_, err := watchSession(t, Options{Address: server.Addr().String()}).Watch(t.Context(), []string{"free", "k"})
		if refused, ok := errors.AsType[*wire.StoreError](err); !ok || refused.Kind() != wire.ErrorNotAuthorized {
			t.Errorf("got %v", err)
		}
	})
	t.Run("no key", func(t *testing.T) {
		server := emulator.Start(t)
		s := watchSession(t, Options{Address: server.Addr().String()})
		for _, keys := range [][]string{nil, {""}} {
			_, err := s.Watch(t.Context(), keys)
			if _, ok := errors.AsType[*InvalidError](err); !ok {
				t.Errorf("watch %q: %v", keys, err)
			}
		}
	})
}

func TestWatchEndsWhenAnotherClientTakesOver(t *testing.T) {
	t.Parallel()
	server := emulator.Start(t)
	s := watchSession(t, Options{Address: server.Addr().String(), ClientID: "twin"})
	w := startWatch(t, s, WatchOptions{}, "k")
	watchSession(t, Options{Address: server.Addr().String(), ClientID: "twin"})
	wantEvents(t, w, `initial k`)
	_, err := w.Next(t.Context())
	if code, ok := mqtt.ReasonCode(err); !ok || code != mqtt.ReasonTakenOver {
		t.Errorf("the watch ended with %v", err)
	}
}

func TestWatchGivesUpAfterRetryFor(t *testing.T) {
	t.Parallel()
	server, err := emulator.New(emulator.Options{})
	if err != nil {
		t.Fatal(err)
	}
	w := startWatch(t, watchSession(t, Options{Address: server.Addr().String()}), WatchOptions{RetryFor: 10 * time.Millisecond}, "k")
	if err := server.Close(); err != nil {
		t.Fatal(err)
	}
	wantEvents(t, w, `initial k`, `down`)
	if _, err := w.Next(t.Context()); err == nil || !strings.Contains(err.Error(), "no connection for 10ms") {
		t.Errorf("the watch ended with %v", err)
	}
}

func TestWatchOfASlowConsumerEndsAndLosesNothingBefore(t *testing.T) {
	t.Parallel()
	server := emulator.Start(t)
	w := startWatch(t, watchSession(t, Options{Address: server.Addr().String()}), WatchOptions{Buffer: 3}, "k")
	for i := range 5 {
		write(t, server, "SET", "k", fmt.Sprint(i))
	}
	for ended := false; !ended; {
		<-w.wake
		w.mu.Lock()
		ended = w.err != nil
		w.mu.Unlock()
	}
	wantEvents(t, w, `initial k`, `set k "0"`, `set k "1"`, `set k "2"`)
	if _, err := w.Next(t.Context()); !errors.Is(err, ErrOverflow) {
		t.Errorf("the watch ended with %v", err)
	}
}

// TestWatchAuditFindsWhatWasNotTold: an audit finds a change that was not notified on a live connection.
func TestWatchAuditFindsWhatWasNotTold(t *testing.T) {
	t.Parallel()
	server := emulator.Start(t)
	write(t, server, "SET", "told", "1")
	s := watchSession(t, Options{Address: server.Addr().String()})
	w := startWatch(t, s, WatchOptions{Audit: 20 * time.Millisecond}, "hidden", "told")
	wantEvents(t, w, `initial hidden`, `initial told "1"`)
	// The registration is lost without a broken connection, as when the store restarts behind a running
	// broker, and the key changes before the next audit.
	var once sync.Once
	server.Intercept(func(r emulator.Request) emulator.Action {
		if r.Verb() == "KEYNOTIFY" && r.Key() == "hidden" {
			once.Do(func() {
				server.Do(emulator.NewRequest(s.ClientID(), wire.AppendRequest(nil, "KEYNOTIFY", "hidden", "STOP")))
				write(t, server, "SET", "hidden", "1")
			})
		}
		return emulator.Action{}
	})
	wantEvents(t, w, `gap hidden lost`, `resync hidden "1" lost`)
	write(t, server, "SET", "hidden", "2")
	write(t, server, "SET", "told", "2")
	wantEvents(t, w, `set hidden "2"`, `set told "2"`)
}

// TestWatchAuditComparesWithThePresent: an audit finds a return to an earlier state that was not notified.
// Each case says how the key changed, and which changes were hidden.
func TestWatchAuditComparesWithThePresent(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		told, hidden []string
		want         []string
	}{
		"deleted twice":           {[]string{"SET", "DEL", "SET"}, []string{"DEL"}, []string{`gap k lost`, `resync k lost`}},
		"set again after two":     {[]string{"SET", "DEL", "SET", "DEL"}, []string{"SET"}, []string{`gap k lost`, `resync k "v" lost`}},
		"many changes and a loss": {[]string{"SET", "DEL", "SET", "DEL", "SET", "DEL", "SET", "DEL", "SET"}, []string{"DEL"}, []string{`gap k lost`, `resync k lost`}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := emulator.Start(t)
			s := watchSession(t, Options{Address: server.Addr().String()})
			w := startWatch(t, s, WatchOptions{Audit: 20 * time.Millisecond}, "k")
			wantEvents(t, w, `initial k`)
			do := func(verb string) {
				words := []string{verb, "k"}
				if verb == "SET" {
					words = append(words, "v")
				}
				write(t, server, words...)
			}
			for _, verb := range tt.told {
				do(verb)
				if e := next(t, w); e.Kind != map[string]EventKind{"SET": EventSet, "DEL": EventDelete}[verb] {
					t.Fatalf("got %s after %s", told(e), verb)
				}
			}
			var once sync.Once
			server.Intercept(func(r emulator.Request) emulator.Action {
				if r.Verb() == "KEYNOTIFY" {
					once.Do(func() {
						server.Do(emulator.NewRequest(s.ClientID(), wire.AppendRequest(nil, "KEYNOTIFY", "k", "STOP")))
						for _, verb := range tt.hidden {
							do(verb)
						}
					})
				}
				return emulator.Action{}
			})
			wantEvents(t, w, tt.want...)
		})
	}
}

// TestAuditExplanations: the state that an audit's GET found is explained only by a state of the key since
// the GET was sent, and by nothing earlier.
func TestAuditExplanations(t *testing.T) {
	t.Parallel()
	at := func(n int) time.Time { return time.UnixMilli(int64(n) * 1000) }
	v := func(n int64) Version { return Version{Wall: n, Node: "s"} }
	set := func(n int64, sec int) Event { return Event{Kind: EventSet, Version: v(n), Time: at(sec)} }
	del := func(n int64, sec int) Event { return Event{Kind: EventDelete, Version: v(n), Time: at(sec)} }
	history := []Event{set(1, 1), del(2, 2), set(3, 3), set(4, 5), del(5, 6)} // the GET is sent at 4
	for name, tt := range map[string]struct {
		found state
		want  bool
	}{
		"the present":                             {state{}, true},
		"the state when it was sent":              {state{true, v(3)}, true},
		"a state since":                           {state{true, v(4)}, true},
		"an earlier value":                        {state{true, v(1)}, false},
		"a value that no notification announced":  {state{true, v(6)}, false},
		"another version of the state since then": {state{true, v(2)}, false},
	} {
		w := &Watch{o: WatchOptions{Buffer: 100}, wake: make(chan struct{}, 1)}
		k := &watchedKey{}
		for _, e := range history {
			w.notify(k, e)
		}
		if got := k.explains(tt.found, at(4)); got != tt.want {
			t.Errorf("%s: explained is %v, want %v", name, got, tt.want)
		}
	}
	w, k := &Watch{o: WatchOptions{Buffer: 100}, wake: make(chan struct{}, 1)}, &watchedKey{}
	for _, e := range []Event{set(1, 1), del(2, 2), set(3, 3)} {
		w.notify(k, e)
	}
	if k.explains(state{}, at(4)) {
		t.Error("a deletion before the GET explains that the key is missing, although it was set since")
	}
}

func TestWatchThousandsOfKeys(t *testing.T) {
	t.Parallel()
	server := emulator.Start(t)
	const n = 5000
	var keys []string
	for i := range n {
		keys = append(keys, fmt.Sprintf("key%04d", i))
	}
	w := startWatch(t, watchSession(t, Options{Address: server.Addr().String()}), WatchOptions{}, keys...)
	if got := server.State().Registrations; got != n {
		t.Errorf("%d registrations for %d keys", got, n)
	}
	for _, key := range keys {
		if e := next(t, w); e.Kind != EventInitial || e.Key != key {
			t.Fatalf("got %s, want initial %s", told(e), key)
		}
	}
}

func TestNextEndsWithItsContext(t *testing.T) {
	t.Parallel()
	server := emulator.Start(t)
	w := startWatch(t, watchSession(t, Options{Address: server.Addr().String()}), WatchOptions{}, "k")
	wantEvents(t, w, `initial k`)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := w.Next(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// TestWatchThatWasQuietStillTriesAgain: RetryFor is counted from the loss, however long the watch was quiet
// before.
func TestWatchThatWasQuietStillTriesAgain(t *testing.T) {
	t.Parallel()
	locked(t, emulator.Options{}, func(t *testing.T, store *virtualStore, s *Session) {
		w := startWatch(t, s, WatchOptions{RetryFor: 900 * time.Millisecond}, "k")
		wantEvents(t, w, `initial k`)
		time.Sleep(time.Second)
		store.DropAll()
		wantEvents(t, w, `down`, `gap k unknown`, `resync k unknown`, `up`)
	})
}

// TestWatchTrouble: while the broker is away, Trouble is the result of the last attempt to connect, not the
// reason for the loss.
func TestWatchTrouble(t *testing.T) {
	t.Parallel()
	server := emulator.Start(t)
	w := startWatch(t, watchSession(t, Options{Address: server.Addr().String()}), WatchOptions{}, "a")
	wantEvents(t, w, `initial a`)
	if err := w.Trouble(); err != nil {
		t.Errorf("nothing is wrong, and the trouble is %v", err)
	}
	if err := server.Close(); err != nil {
		t.Fatal(err)
	}
	wantEvents(t, w, `down`)
	deadline := time.After(time.Minute)
	for tick := time.Tick(time.Millisecond); ; {
		if _, refused := errors.AsType[*mqtt.DialError](w.Trouble()); refused {
			return
		}
		select {
		case <-tick:
		case <-deadline:
			t.Fatalf("the trouble is still %v", w.Trouble())
		}
	}
}
