package top

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/cmd/sscli/internal/terminal"
	"github.com/sscli/sscli/format"
	"github.com/sscli/sscli/internal/keyboard"
)

var update = flag.Bool("update", false, "rewrite testdata/views.golden")

func begin() time.Time { return time.UnixMilli(1_700_000_000_000).UTC() }

func versionAt(at time.Time) client.Version {
	return client.Version{Wall: at.UnixMilli(), Counter: 1, Node: "StateStore"}
}

func event(kind client.EventKind, key, value string, at time.Time) client.Event {
	return client.Event{Kind: kind, Key: key, Value: []byte(value), HasValue: kind != client.EventDelete, Version: versionAt(at), Time: at}
}

// example returns a model with a key of each kind, and the time of its last event.
func example() (*model, time.Time) {
	m := newModel("mqtt://127.0.0.1:1883")
	m.trace = true
	m.patterns, m.interval, m.scanned = []string{"*"}, 5*time.Second, begin().Add(2*time.Second)
	for _, e := range []client.Event{
		event(client.EventInitial, "thermostat/1", `{"temp":21.5,"mode":"auto"}`, begin().Add(-3*time.Hour)),
		event(client.EventInitial, "two words", "a\tb\x1b[2J", begin().Add(-50*time.Hour)),
		event(client.EventInitial, "binary", "\xff\xfe\x01", begin().Add(-70*time.Second)),
		event(client.EventInitial, "long", strings.Repeat("x", 500), begin()),
		event(client.EventInitial, "lock", "job-7:ABCDEFGH", begin()),
		{Kind: client.EventInitial, Key: "missing", Time: begin()},
		event(client.EventInitial, "gone", "1", begin()),
		event(client.EventDelete, "gone", "", begin().Add(time.Second)),
		event(client.EventInitial, "wide 漢字", "漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字", begin()),
	} {
		e.Time = begin()
		m.handleEvent(e)
	}
	m.rows["gone"].changed = begin().Add(time.Second)
	for i := 1; i <= 4; i++ {
		at := begin().Add(time.Duration(i) * time.Second)
		m.handleEvent(event(client.EventSet, "lock", "job-7:ABCDEFGH", at))
	}
	now := begin().Add(4500 * time.Millisecond)
	for range 25 {
		m.handleEvent(event(client.EventSet, "counter", "7", now.Add(-time.Second)))
	}
	m.add("secret").err = "the store answered: not authorized"
	return m, now
}

// TestViews compares screens of all sizes and states with testdata/views.golden.
func TestViews(t *testing.T) {
	var all strings.Builder
	show := func(name string, width, height int, change func(m *model, now time.Time)) {
		m, now := example()
		if change != nil {
			change(m, now)
		}
		fmt.Fprintf(&all, "== %s, %d columns\n", name, width)
		for _, l := range m.view(width, height, now) {
			mark := [...]string{terminal.Plain: " ", terminal.Bold: "*", terminal.Faint: "-", terminal.Inverse: ">", terminal.Alert: "!"}[l.Style]
			all.WriteString(strings.TrimRight(mark+l.Text, " ") + "\n")
		}
	}
	keys := func(typed string) func(*model, time.Time) {
		return func(m *model, now time.Time) {
			for _, k := range pressed(typed) {
				m.view(80, 14, now)
				m.handleKey(k, now)
			}
		}
	}
	for _, width := range []int{40, 80, 120} {
		show("table", width, 13, nil)
		show("open", width, 16, keys("lll/lock\r\x1b[B\r"))
		show("away", width, 6, func(m *model, _ time.Time) {
			m.handleEvent(client.Event{Kind: client.EventDown, Time: begin(), Err: errors.New("read tcp: connection reset by peer")})
		})
		show("help", width, 20, keys("?"))
		show("no SCAN", width, 5, func(m *model, _ time.Time) { m.noScan = true })
	}
	show("first screen", 80, 6, func(m *model, _ time.Time) { m.rows, m.scanned = map[string]*row{}, time.Time{} })
	show("empty store", 80, 6, func(m *model, _ time.Time) { m.rows = map[string]*row{} })
	show("typing a filter", 80, 6, keys("/WOR"))
	show("nothing passes", 80, 6, keys("/zzz\r"))
	show("too many", 80, 5, func(m *model, _ time.Time) { m.unwatched = 41 })
	show("scan error", 80, 5, func(m *model, _ time.Time) { m.scanErr = "no reply within 10s" })
	show("end", 80, 6, keys("G"))
	show("JSON", 40, 20, keys("/therm\r\r"))
	show("refused", 80, 8, keys("/secret\r\r"))
	show("too small", 12, 3, nil)
	const golden = "testdata/views.golden"
	if *update {
		if err := os.WriteFile(golden, []byte(all.String()), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(all.String(), "\n")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// FuzzView: for any keys, values and input, a screen has as many lines as the terminal, no line is wider than the
// terminal, and no line contains a control sequence.
func FuzzView(f *testing.F) {
	f.Add("key", []byte("value"), "\r", uint8(80), uint8(24))
	f.Add("\x1b[2J漢", []byte(`{"a":[1,2],"b":"\u001b\t"}`), "/k\rs\x1b[B\r?", uint8(20), uint8(4))
	f.Add("k", []byte("漢字\t\n\r\x00"), "\rjjG", uint8(21), uint8(5))
	f.Fuzz(func(t *testing.T, name string, value []byte, typed string, width, height uint8) {
		m, now := example()
		m.handleEvent(client.Event{Kind: client.EventSet, Key: name, Value: value, HasValue: true, Time: now, Version: client.Version{Wall: 1, Node: name}})
		m.handleEvent(client.Event{Kind: client.EventOther, Key: name, Word: string(value), Time: now})
		m.handleEvent(client.Event{Kind: client.EventDown, Time: now, Err: errors.New(name)})
		m.selected, m.follows = name, true
		m.rows[name].packets = []string{format.Escape(value)}
		for _, k := range append([]keyboard.Key{keyboard.Other}, pressed(typed)...) {
			m.handleKey(k, now)
			lines := m.view(int(width), int(height), now)
			if len(lines) > int(height) || height >= minHeight && width >= minWidth && len(lines) != int(height) {
				t.Fatalf("%d lines on a screen of %d", len(lines), height)
			}
			for _, l := range lines {
				if n := format.Columns(l.Text); n > int(width) {
					t.Errorf("%d columns on a screen of %d: %q", n, width, l.Text)
				}
				if !utf8.ValidString(l.Text) || strings.ContainsFunc(l.Text, func(r rune) bool { return !unicode.IsPrint(r) }) {
					t.Errorf("not safe on a terminal: %q", l.Text)
				}
			}
		}
	})
}

func TestSortAndFilter(t *testing.T) {
	m, now := example()
	names := func() string {
		var all []string
		for _, r := range m.shown(now) {
			all = append(all, r.key)
		}
		return strings.Join(all, ",")
	}
	for _, step := range []struct{ keys, want string }{
		{"", "binary,counter,gone,lock,long,missing,secret,thermostat/1,two words,wide 漢字"},
		{"r", "wide 漢字,two words,thermostat/1,secret,missing,long,lock,gone,counter,binary"},
		{"rs", "lock,counter,gone,long,wide 漢字,binary,thermostat/1,two words,missing,secret"},
		{"s", "counter,lock,gone,binary,long,missing,secret,thermostat/1,two words,wide 漢字"},
		{"s/LO", "lock,long"},
		{"\x7f\x7fword\r", "two words"},
		{"\x1b", "binary,counter,gone,lock,long,missing,secret,thermostat/1,two words,wide 漢字"},
		{"/q\r/\x15漢\r", "wide 漢字"},
	} {
		for _, k := range pressed(step.keys) {
			if m.handleKey(k, now) {
				t.Errorf("%q quits", step.keys)
			}
		}
		if got := names(); got != step.want {
			t.Errorf("after %q:\ngot  %s\nwant %s", step.keys, got, step.want)
		}
	}
}

// TestSelection: the selection stays on its key and on the screen when keys come and go.
func TestSelection(t *testing.T) {
	m := newModel("")
	for i := range 100 {
		m.handleEvent(event(client.EventInitial, fmt.Sprintf("k%03d", i), "v", begin()))
	}
	typed := func(s string) {
		for _, k := range pressed(s) {
			m.handleKey(k, begin())
		}
	}
	expect := func(key string) {
		t.Helper()
		lines := m.view(80, 14, begin())
		n := 0
		for _, l := range lines {
			if l.Style == terminal.Inverse {
				n++
				if !strings.HasPrefix(l.Text, key) {
					t.Errorf("selected is %q, want %s", l.Text, key)
				}
			}
		}
		if n != 1 {
			t.Errorf("%d lines are selected, want %s", n, key)
		}
	}
	expect("k000")
	typed("jjj")
	expect("k003")
	for i := range 50 {
		m.handleEvent(event(client.EventInitial, fmt.Sprintf("a%03d", i), "v", begin()))
	}
	expect("k003")
	typed("G")
	expect("k099")
	typed("\x1b[5~k")
	expect("k087")
	typed("s")
	expect("k087")
	typed("gk")
	expect("a000")
	if !m.handleKey('q', begin()) {
		t.Error("q does not quit")
	}
}

func TestRate(t *testing.T) {
	var r rate
	now := begin()
	for i := range 30 {
		r.add(now.Add(time.Duration(i) * 100 * time.Millisecond))
	}
	for after, want := range map[time.Duration]float64{3 * time.Second: 3, 9 * time.Second: 3, 10 * time.Second: 2, 12 * time.Second: 0, time.Hour: 0} {
		if got := r.perSecond(now.Add(after)); got != want {
			t.Errorf("after %s: %v writes per second, want %v", after, got, want)
		}
	}
}

// TestLease: a key is taken for a lock while the same value is written to it again, until its value changes or it is
// deleted.
func TestLease(t *testing.T) {
	m := newModel("")
	now := begin()
	r := m.add("lock")
	expect := func(wantLock bool, wantEvery time.Duration, wantBar string) {
		t.Helper()
		every, _, isLock := r.lease(now)
		if bar := r.bar(now); isLock != wantLock || every != wantEvery || bar != wantBar {
			t.Errorf("after %s: lock %v, every %s, %q; want %v, %s, %q", now.Sub(begin()), isLock, every, bar, wantLock, wantEvery, wantBar)
		}
	}
	m.handleEvent(event(client.EventInitial, "lock", "a", now))
	expect(false, 0, "")
	for range 3 {
		now = now.Add(2 * time.Second)
		m.handleEvent(event(client.EventSet, "lock", "a", now))
	}
	expect(true, 2*time.Second, "[##########] 2s")
	now = now.Add(3 * time.Second)
	expect(true, 2*time.Second, "[#####.....] 2s")
	m.handleEvent(event(client.EventSet, "lock", "a", now)) // a late renewal
	now = now.Add(time.Hour)
	expect(true, 3*time.Second, "[..........] 3s")
	m.handleEvent(event(client.EventSet, "lock", "b", now))
	expect(false, 0, "")
	for range 3 {
		now = now.Add(time.Second)
		m.handleEvent(event(client.EventSet, "lock", "b", now))
	}
	expect(true, time.Second, "[##########] 1s")
	m.handleEvent(event(client.EventDelete, "lock", "", now))
	expect(false, 0, "")
}

// TestBounded: the history and the packets kept for a key are limited.
func TestBounded(t *testing.T) {
	m := newModel("")
	for range 3 * maxHistory {
		m.handleEvent(event(client.EventSet, "k", strings.Repeat("x", 3*maxLine), begin()))
	}
	r := m.rows["k"]
	if len(r.history) != maxHistory || len(r.history[0].value) != maxLine {
		t.Errorf("%d changes, the first with %d bytes", len(r.history), len(r.history[0].value))
	}
}

// TestNarrowTable: at 80 columns, keys that differ only at their ends can be told apart, and a large binary value is
// shown with its real size in the table and in the history.
func TestNarrowTable(t *testing.T) {
	m := newModel("mqtt://127.0.0.1:1883")
	prefix := "plants/berlin/hall-3/line-17/press-"
	for _, key := range []string{prefix + "1/setpoint", prefix + "2/setpoint"} {
		m.handleEvent(event(client.EventInitial, key, strings.Repeat("\xff\x00", 1_000_000), begin()))
	}
	text := func() string {
		var all strings.Builder
		for _, l := range m.view(80, 24, begin()) {
			all.WriteString(l.Text + "\n")
		}
		return all.String()
	}
	table := text()
	for _, want := range []string{"plants/berli…ss-1/setpoint", "plants/berli…ss-2/setpoint", "(2.0 MB) ff 00"} {
		if !strings.Contains(table, want) {
			t.Errorf("the table does not show %s:\n%s", want, table)
		}
	}
	if history := m.rows[prefix+"1/setpoint"].history[0].text(); !strings.Contains(history, "(2.0 MB) ff 00") {
		t.Errorf("the size in the history is wrong: %.80s", history)
	}
}

// TestSelectionStaysAtTop: until the user selects a key, the table shows its first rows, also when a scan finds keys
// that sort before them, and when another order is chosen.
func TestSelectionStaysAtTop(t *testing.T) {
	m := newModel("")
	now := begin()
	first := func() string { return m.view(80, 7, now)[2].Text } // below the title and the titles of the columns
	m.handleEvent(event(client.EventInitial, "named", "v", now))
	first()
	for i := range 50 {
		m.handleEvent(event(client.EventInitial, fmt.Sprintf("k%03d", i), "v", now))
	}
	if got := first(); !strings.HasPrefix(got, "k000") {
		t.Errorf("the first row is %q, want k000", got)
	}
	m.handleEvent(event(client.EventSet, "k040", "v", now))
	m.handleKey('s', now)
	m.handleKey('s', now)
	if got := first(); !strings.HasPrefix(got, "k040") {
		t.Errorf("by writes, the first row is %q, want k040", got)
	}
	m.handleKey('j', now)
	m.handleKey('k', now)
	for range 2 {
		m.handleEvent(event(client.EventSet, "k041", "v", now))
	}
	if got := first(); !strings.HasPrefix(got, "k041") {
		t.Errorf("back at the top, the first row is %q, want k041", got)
	}
}

// TestFilterMatchesNothing: Enter does nothing while the filter matches no key. It does not open a hidden key.
func TestFilterMatchesNothing(t *testing.T) {
	m := newModel("")
	m.handleEvent(event(client.EventInitial, "hidden", "v", begin()))
	for _, k := range pressed("/xyz\r\r") {
		m.handleKey(k, begin())
	}
	if m.isOpen {
		t.Errorf("%s is open", m.open)
	}
}

// pressed returns the keys for what a terminal sends.
func pressed(typed string) []keyboard.Key {
	d := keyboard.Decoder{LoneEscape: true}
	return d.Decode([]byte(typed))
}
