package locklog

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/format"
)

var start = time.Date(2026, 11, 22, 3, 0, 0, 0, time.UTC)

func at(seconds float64) time.Time { return start.Add(time.Duration(seconds * float64(time.Second))) }

func token(seconds float64) client.Version {
	return client.Version{Wall: at(seconds).UnixMilli(), Node: "StateStore"}
}

// event is an event of the lock build. An empty holder means no value.
func event(kind client.EventKind, seconds float64, holder string) client.Event {
	e := client.Event{Kind: kind, Key: "build", Time: at(seconds), Value: []byte(holder), HasValue: holder != ""}
	if e.HasValue || kind == client.EventSet {
		e.Version = token(seconds)
	}
	return e
}

func initial(holder string) client.Event        { return event(client.EventInitial, 0, holder) }
func set(s float64, holder string) client.Event { return event(client.EventSet, s, holder) }
func deleted(s float64) client.Event            { return event(client.EventDelete, s, "") }
func resync(s float64, c client.Continuity, holder string) client.Event {
	e := event(client.EventResync, s, holder)
	e.Continuity = c
	return e
}

func gap(from, to float64) client.Event {
	e := event(client.EventGap, to, "")
	e.From, e.To, e.Continuity = at(from), at(to), client.ContinuityLost
	return e
}

func guard(kind client.EventKind, s float64) client.Event {
	e := event(kind, s, "")
	e.Key = "artifact"
	return e
}

// inShort abbreviates a statement: what happened, by whom and from whom, the duration (~ = at least), and the number of
// renewals. A ? marks what is inferred.
func inShort(e format.LockEvent) string {
	text := e.What
	if e.Inferred {
		text += "?"
	}
	if e.Guard || e.What == Gap || e.What == Lost || e.What == Other {
		return text
	}
	if e.What != Free {
		if e.NoHolder {
			text += " by whom"
		} else {
			text += " " + e.Holder
		}
	}
	if e.Before != "" {
		text += "<" + e.Before
	}
	switch {
	case e.Unknown:
	case e.AtLeast:
		text += " ~" + e.For.String()
	default:
		text += " " + e.For.String()
	}
	if e.Renewals > 0 {
		text += fmt.Sprintf(" %dx%v", e.Renewals, e.Every)
	}
	return text
}

// TestStatements covers each way in which a lock changes, and each way in which the change is ambiguous.
func TestStatements(t *testing.T) {
	tests := []struct {
		name   string
		lease  time.Duration
		events []client.Event
		want   []string
	}{
		{"acquired and released", 0, []client.Event{initial(""), set(1, "a"), set(4, "a"), set(7, "a"), deleted(9)},
			[]string{"free", "acquired a ~1s", "renewed a 3s 1x3s", "renewed a 6s 2x3s", "released? a 8s 2x3s"}},
		{"renewed late, and then deleted", 0, []client.Event{initial(""), set(1, "a"), set(4.5, "a"), deleted(8.5), set(8.5, "b")},
			[]string{"free", "acquired a ~1s", "renewed a 3.5s 1x3.5s", "deleted a 7.5s 1x3.5s", "acquired b 0s"}},
		{"expired and taken over", 0, []client.Event{initial(""), set(1, "a"), set(4, "a"), set(7, "a"), deleted(22), set(22, "b")},
			[]string{"free", "acquired a ~1s", "renewed a 3s 1x3s", "renewed a 6s 2x3s", "expired? a 21s 2x3s", "taken_over? b<a 0s"}},
		{"expired and acquired again by the same", 0, []client.Event{initial(""), set(1, "a"), set(4, "a"), deleted(22), set(23, "a")},
			[]string{"free", "acquired a ~1s", "renewed a 3s 1x3s", "expired? a 21s 1x3s", "acquired a 1s"}},
		{"released and acquired by another", 0, []client.Event{initial("a"), set(3, "a"), set(6, "a"), deleted(7), set(9, "b")},
			[]string{"held a", "renewed a ~3s 1x0s", "renewed a ~6s 2x3s", "released? a ~7s 2x3s", "acquired b 2s"}},
		{"overdue, but not for long", 0, []client.Event{initial(""), set(1, "a"), set(4, "a"), deleted(9)},
			[]string{"free", "acquired a ~1s", "renewed a 3s 1x3s", "deleted a 8s 1x3s"}},
		{"never renewed", 0, []client.Event{initial(""), set(1, "a"), deleted(16), set(17, "b")},
			[]string{"free", "acquired a ~1s", "deleted a 15s", "acquired b 1s"}},
		{"never renewed, and the lease is known", 15 * time.Second, []client.Event{initial(""), set(1, "a"), deleted(16), set(17, "b"), deleted(18)},
			[]string{"free", "acquired a ~1s", "expired? a 15s", "taken_over? b<a 1s", "released? b 1s"}},
		{"held before, and no renewal seen", 15 * time.Second, []client.Event{initial("a"), deleted(3)},
			[]string{"held a", "deleted a ~3s"}},
		{"written over", 0, []client.Event{initial("a"), set(3, "b"), deleted(4)},
			[]string{"held a", "changed_hands? b<a ~3s", "deleted b 1s"}},
		{"values are not sent", 0, []client.Event{initial("a"), set(3, ""), set(6, ""), deleted(7), set(8, "")},
			[]string{"held a", "rewritten by whom ~3s", "rewritten by whom ~6s", "deleted by whom ~7s", "acquired by whom 1s"}},
		{"a value after one that was not sent", 0, []client.Event{initial("a"), set(3, ""), set(6, "b")},
			[]string{"held a", "rewritten by whom ~3s", "held b ~6s"}},
		{"a gap without a change", 0, []client.Event{initial(""), set(1, "a"), set(4, "a"), resync(6, client.ContinuityProven, "a"), set(7, "a")},
			[]string{"free", "acquired a ~1s", "renewed a 3s 1x3s", "held a 5s 1x3s", "renewed a 6s 2x3s"}},
		{"a gap with renewals", 0, []client.Event{initial(""), set(1, "a"), gap(2, 9), resync(9, client.ContinuityLost, "a"), deleted(12)},
			[]string{"free", "acquired a ~1s", "gap", "held a", "deleted a ~3s"}},
		{"a gap in which it changed hands", 0, []client.Event{initial("a"), gap(2, 9), resync(9, client.ContinuityLost, "b")},
			[]string{"held a", "gap", "held b<a"}},
		{"a gap in which it was released", 0, []client.Event{initial("a"), gap(2, 9), resync(9, client.ContinuityLost, ""), set(10, "b")},
			[]string{"held a", "gap", "free", "acquired b ~1s"}},
		{"a gap in which it was acquired", 0, []client.Event{initial(""), gap(2, 9), resync(9, client.ContinuityLost, "b")},
			[]string{"free", "gap", "held b"}},
		{"a gap in which it stayed free", 0, []client.Event{initial(""), gap(2, 9), resync(9, client.ContinuityUnknown, "")},
			[]string{"free", "gap", "free"}},
		{"deleted twice", 0, []client.Event{initial(""), deleted(1)}, []string{"free", "free ~1s"}},
		{"a recording that begins in the middle", 0, []client.Event{set(1, "a"), set(4, "a"), deleted(5)},
			[]string{"held a", "renewed a ~3s 1x3s", "released? a ~4s 1x3s"}},
		{"a recording that begins with a deletion", 0, []client.Event{deleted(1), set(2, "a")},
			[]string{"deleted by whom", "acquired a 1s"}},
		{"refused", 0, []client.Event{initial("a"), {Kind: client.EventError, Key: "build", Time: at(1), Err: errors.New("not authorized")}, set(2, "b")},
			[]string{"held a", "lost", "held b"}},
		{"an unknown word", 0, []client.Event{initial("a"), {Kind: client.EventOther, Key: "build", Time: at(1), Word: "TOUCH"}},
			[]string{"held a", "other"}},
		{"no key", 0, []client.Event{{Kind: client.EventDown}, {Kind: client.EventUp}, {Kind: client.EventUnaudited}, {Kind: End}}, nil},
		{"a guarded key", 0, []client.Event{initial("a"), guard(client.EventInitial, 0), guard(client.EventSet, 1), guard(client.EventDelete, 2)},
			[]string{"held a", "written", "removed"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			h := New(Options{Lease: test.lease, Guards: []string{"artifact"}})
			var got []string
			for _, e := range test.events {
				if said, ok := h.See(e); ok {
					got = append(got, inShort(said))
				}
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestGuardSaysWhoHeld: a write of a guarded key names the holders of the locks at that time.
func TestGuardSaysWhoHeld(t *testing.T) {
	h := New(Options{Guards: []string{"artifact"}})
	h.See(initial("a"))
	other := initial("")
	other.Key = "deploy all"
	h.See(other)
	said, ok := h.See(guard(client.EventSet, 1))
	if want := `while build was held by "a", "deploy all" was free`; !ok || said.Why != want {
		t.Errorf("got %q, want %q", said.Why, want)
	}
}

// TestChart: the timeline has a lane for each holder, and ends each hold at the right time.
func TestChart(t *testing.T) {
	h := New(Options{Guards: []string{"artifact"}})
	var c Chart
	for _, e := range []client.Event{
		initial("a"), set(3, "a"), guard(client.EventSet, 4), set(6, "a"), deleted(30), set(31, "b"), set(33, "c"), gap(35, 40),
		resync(40, client.ContinuityLost, "a"), guard(client.EventDelete, 41), gap(42, 43), resync(43, client.ContinuityLost, "a"),
	} {
		if said, ok := h.See(e); ok {
			c.Add(said)
		}
	}
	c.Until(at(50))
	hold := func(from, to float64, end string, renewals ...time.Time) format.Hold {
		return format.Hold{Interval: format.Interval{From: at(from), To: at(to)}, End: end, Renewals: renewals}
	}
	open := func(h format.Hold) format.Hold { h.Open = true; return h }
	want := format.Timeline{
		From: at(0), To: at(50),
		Locks: []format.Lane{{
			Name: "build",
			Holders: []format.Lane{
				{Name: "a", Holds: []format.Hold{open(hold(0, 30, Expired, at(3), at(6))), open(hold(40, 50, ""))}},
				{Name: "b", Holds: []format.Hold{hold(31, 33, ChangedHands)}},
				{Name: "c", Holds: []format.Hold{hold(33, 35, Gap)}},
			},
			Gaps: []format.Interval{{From: at(35), To: at(40)}, {From: at(42), To: at(43)}},
		}},
		Guards: []format.Lane{{Name: "artifact", Writes: []time.Time{at(4)}, Removed: []time.Time{at(41)}}},
	}
	if diff := cmp.Diff(want, c.Timeline()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// jsonLines returns what `-o json` prints.
func jsonLines(t testing.TB, results ...format.Result) string {
	t.Helper()
	var out bytes.Buffer
	p, err := format.New(&out, format.Options{Output: "json"})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range results {
		if err := p.Print(r); err != nil {
			t.Fatal(err)
		}
	}
	return out.String()
}

// read returns the statements about a recording.
func read(t testing.TB, lease time.Duration, recording string) (said []format.LockEvent) {
	t.Helper()
	h := New(Options{Lease: lease})
	for line := range strings.Lines(recording) {
		e, guard, ok, err := Read([]byte(line))
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		if guard {
			h.Guard(e.Key)
		}
		if !ok {
			continue
		}
		if s, ok := h.See(e); ok {
			said = append(said, s)
		}
	}
	return said
}

// FuzzRecording: the recordings of watch and of lock trace lead to the same statements as the events themselves,
// whatever the events are. Inferred statements are marked, and the chart is a valid picture.
func FuzzRecording(f *testing.F) {
	f.Add([]byte("\x00\x00\x02\x01\x10\x05\x02\x10\x05\x03\x40\x05"), "job-7")
	f.Add([]byte("\x00\x04\x02\x20\x04\x20\x05\x10\x04\x20\x01\x10\x04\x06\x07\x10"), "\x1b[2J\xff<&>")
	f.Fuzz(func(t *testing.T, steps []byte, holder string) {
		h := New(Options{Lease: time.Second, Guards: []string{"artifact"}})
		now := start
		var events []format.Result
		var said []format.LockEvent
		var c Chart
		for ; len(steps) >= 2 && len(said) < 200; steps = steps[2:] {
			now = now.Add(time.Duration(steps[1]) * 37 * time.Millisecond)
			e := client.Event{Key: "build", Time: now}
			if steps[0]&8 != 0 {
				e.Key = "lock\x00\xff"
			}
			if steps[0]&128 != 0 {
				e.Key = "artifact"
			}
			kinds := [...]client.EventKind{client.EventInitial, client.EventSet, client.EventDelete, client.EventSet, client.EventGap, client.EventResync, client.EventError, client.EventOther}
			e.Kind = kinds[steps[0]&7]
			value := holder + [...]string{"", "1", "2", ""}[steps[0]>>4&3]
			switch e.Kind {
			case client.EventInitial, client.EventSet, client.EventResync:
				if e.HasValue = steps[0]&64 == 0; e.HasValue {
					e.Value = []byte(value)
				}
				e.Version = client.Version{Wall: now.UnixMilli(), Node: "n"}
			case client.EventGap:
				e.From, e.To = now.Add(-time.Second), now
			case client.EventError:
				e.Err = errors.New("why " + value)
			case client.EventOther:
				e.Word = value
			}
			if e.Kind == client.EventGap || e.Kind == client.EventResync {
				e.Continuity = [...]client.Continuity{client.ContinuityLost, client.ContinuityProven, client.ContinuityUnknown, client.ContinuityLost}[steps[0]>>4&3]
			}
			if e.Kind == client.EventResync && !e.HasValue || e.Kind == client.EventInitial && !e.HasValue {
				e.Version = client.Version{}
			}
			watched := format.Event{Op: string(e.Kind), Key: e.Key, Version: e.Version, Time: e.Time, Value: e.Value, HasValue: e.HasValue, Word: e.Word, Continuity: string(e.Continuity), From: e.From, To: e.To}
			if e.Err != nil {
				watched.Message = e.Err.Error()
			}
			events = append(events, watched)
			s, ok := h.See(e)
			if !ok {
				continue
			}
			said = append(said, s)
			c.Add(s)
			if infers := s.What == Released || s.What == Expired || s.What == TakenOver || s.What == ChangedHands; infers != s.Inferred {
				t.Fatalf("%q is inferred: %v", s.What, s.Inferred)
			}
			if s.For < 0 || s.Renewals > 0 && s.NoHolder && s.What == Renewed {
				t.Fatalf("%+v", s)
			}
		}
		results := make([]format.Result, len(said))
		for i, s := range said {
			results[i] = s
		}
		again := read(t, time.Second, jsonLines(t, results...))
		if diff := cmp.Diff(jsonLines(t, results...), printAll(t, again)); diff != "" {
			t.Fatalf("lock trace -o json reads differently (-was +is):\n%s", diff)
		}
		// A recording of watch does not say which keys are not locks.
		h = New(Options{Lease: time.Second, Guards: []string{"artifact"}})
		again = nil
		for line := range strings.Lines(jsonLines(t, events...)) {
			e, _, ok, err := Read([]byte(line))
			if err != nil || !ok {
				t.Fatalf("%s: %v", line, err)
			}
			if s, ok := h.See(e); ok {
				again = append(again, s)
			}
		}
		if diff := cmp.Diff(jsonLines(t, results...), printAll(t, again)); diff != "" {
			t.Fatalf("watch -o json reads differently (-was +is):\n%s", diff)
		}
		timeline := c.Timeline()
		jsonLines(t, timeline)
		for d := xml.NewDecoder(bytes.NewReader(timeline.SVG())); ; {
			if _, err := d.Token(); err == io.EOF {
				break
			} else if err != nil {
				t.Fatalf("the picture: %v\n%s", err, timeline.SVG())
			}
		}
	})
}

func printAll(t testing.TB, said []format.LockEvent) string {
	results := make([]format.Result, len(said))
	for i, s := range said {
		results[i] = s
	}
	return jsonLines(t, results...)
}

// TestRefusedLines: a line that is not part of a recording is refused, with what was expected.
func TestRefusedLines(t *testing.T) {
	const stamp = `,"time":"2026-11-22T03:00:00.000Z"}`
	for _, test := range []struct{ line, want string }{
		{`set	build	1`, "expected a JSON object"},
		{`{}`, `the operation ""`},
		{`{"op":"get","key":"a"` + stamp, `the operation "get"`},
		{`{"op":"set","key":"build"}`, "the field time"},
		{`{"op":"set"` + stamp, "the field key"},
		{`{"op":"lock_trace","what":"stolen","name":"a"` + stamp, `the statement "stolen"`},
		{`{"op":"lock_trace","what":"held","event":"initial"` + stamp, "the field name"},
		{`{"op":"lock_trace","what":"held","event":"guess","name":"a"` + stamp, `the event "guess"`},
		{`{"op":"set","key":"a","version":{"hlc":"x"}` + stamp, "expected a JSON object"},
	} {
		_, _, ok, err := Read([]byte(test.line))
		if ok || err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %v, %v, want %q", test.line, ok, err, test.want)
		}
	}
	for _, line := range []string{`{"op":"warning","message":"connection lost"}`, `{"op":"error","code":3,"kind":"refused"}`, `{"op":"lock_timeline"}`, `{"op":"ready","keys":1,"time":"2026-11-22T03:00:00Z"}`, `{"op":"unaudited","time":"2026-11-22T03:00:00Z"}`} {
		if _, _, ok, err := Read([]byte(line)); ok || err != nil {
			t.Errorf("%s: got %v, %v, want nothing", line, ok, err)
		}
	}
}

// TestFound: a key that watch --match found is a lock whose state is first known then, as in an initial event.
func TestFound(t *testing.T) {
	line := func(op string) string {
		return `{"op":"` + op + `","key":"a","value":"job-7","version":{"hlc":"1:1:n"},"continuity":"unknown","time":"2026-11-22T03:00:00Z"}`
	}
	var said []string
	for _, op := range []string{"initial", "found"} {
		e, _, ok, err := Read([]byte(line(op)))
		if !ok || err != nil {
			t.Fatalf("%s: %t, %v", op, ok, err)
		}
		st, ok := New(Options{}).See(e)
		if !ok || st.What != Held || st.Holder != "job-7" {
			t.Errorf("%s: %t, %+v", op, ok, st)
		}
		said = append(said, printAll(t, []format.LockEvent{st}))
	}
	if diff := cmp.Diff(said[0], said[1]); diff != "" {
		t.Error(diff)
	}
}
