package top

import (
	"bytes"
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/cmd/sscli/internal/fault"
)

// A model is what is known of the keys, and how the user looks at it.
type model struct {
	title    string // where the store is
	patterns []string
	interval time.Duration // between scans; 0: there are none

	rows   map[string]*row
	tapped bool // of the rows

	scanned time.Time // when a scan was complete; zero: none was yet
	scanErr string    // why the last scan was not; empty: it was
	noScan  bool      // the broker does not know SCAN
	left    int       // keys that were found and are not watched, because there are too many
	away    string    // why the connection is lost; empty: it is not
	gone    time.Time // since when

	order    order
	reversed bool
	filter   string
	typing   bool   // the filter is being typed
	selected string // key
	first    int    // row that is drawn first
	open     string // the key that is looked at
	opened   bool
	scroll   int // lines of the open key that are above the screen
	help     bool

	page int // rows of the last view, for PageUp and PageDown
}

// order is what the rows are sorted by.
type order int

const (
	byKey order = iota
	byAge
	byRate
	orders // how many there are
)

func (o order) String() string { return [...]string{"key", "written", "writes"}[o] }

// A row is what is known of one key.
type row struct {
	key     string
	read    bool // the state below is known
	found   bool
	value   []byte
	version client.Version
	changed time.Time // when it was last seen to change, by the local clock; zero: not since top began
	err     string    // why the key is not watched

	writes rate

	// A value that is written again and again is taken for a lock: its value is the holder.
	renewed  time.Time     // the last time, by the local clock
	renewals int           // without a break
	longest  time.Duration // between two of them

	history []change
	packets []string
	tapped  bool // packets are collected: not in a shell, whose connection is older
}

// A change is one entry of the history of a key.
type change struct {
	time    time.Time
	op      string // initial, set, delete, resync or gap
	version client.Version
	value   []byte // the beginning
	found   bool
	note    string
}

// mostLine is how many bytes of a value a line is made of: it shows fewer on any terminal.
const mostLine = 4 << 10

func beginning(value []byte) []byte { return value[:min(len(value), mostLine)] }

// Limits of what is kept for one key.
const (
	maxHistory = 200
	maxPackets = 200
)

// rateSpan is how many seconds the rate of writes is the average of.
const rateSpan = 10

// rate counts writes by the second.
type rate struct {
	counts [rateSpan]int
	second int64 // the one of the last count
}

func (r *rate) move(now time.Time) {
	second := now.Unix()
	for n := min(second-r.second, rateSpan); n > 0; n-- {
		r.counts[(second-n+1)%rateSpan] = 0
	}
	r.second = max(r.second, second)
}

func (r *rate) add(now time.Time) {
	r.move(now)
	r.counts[r.second%rateSpan]++
}

// perSecond is the average of the last seconds.
func (r rate) perSecond(now time.Time) float64 {
	r.move(now)
	sum := 0
	for _, n := range r.counts {
		sum += n
	}
	return float64(sum) / rateSpan
}

func newModel(title string) *model { return &model{title: title, rows: make(map[string]*row)} }

// add makes a row for a key, unless there is one.
func (m *model) add(key string) *row {
	r := m.rows[key]
	if r == nil {
		r = &row{key: key, tapped: m.tapped}
		m.rows[key] = r
	}
	return r
}

// stillAway takes a newer error of the outage, if there is an outage and err is not nil.
func (m *model) stillAway(err error) {
	if m.away != "" && err != nil {
		m.away = fault.Message(err)
	}
}

// happened takes an event of a watch.
func (m *model) happened(e client.Event) {
	switch e.Kind {
	case client.EventDown:
		m.gone, m.away = e.Time, "the connection is lost"
		m.stillAway(e.Err)
		return
	case client.EventUp:
		m.away = ""
		return
	case client.EventUnaudited:
		return
	}
	r := m.add(e.Key)
	c := change{time: e.Time, op: string(e.Kind), version: e.Version, found: e.HasValue, value: bytes.Clone(beginning(e.Value))}
	switch e.Kind {
	case client.EventError:
		r.err = "no longer watched"
		if e.Err != nil {
			r.err = e.Err.Error()
		}
		c.note = r.err
	case client.EventGap:
		c.note = "continuity " + string(e.Continuity)
	case client.EventOther:
		c.note = e.Word
		r.writes.add(e.Time)
	case client.EventInitial, client.EventResync:
		r.err = ""
		if e.Kind == client.EventResync && (r.found != e.HasValue || !r.version.Equal(e.Version)) {
			r.changed = e.Time
		}
		r.set(e)
		r.forget()
	case client.EventSet, client.EventDelete:
		r.writes.add(e.Time)
		r.changed = e.Time
		r.renew(e)
		r.set(e)
	}
	r.history = keepLast(append(r.history, c), maxHistory)
}

func (r *row) set(e client.Event) {
	r.read, r.version, r.value = true, e.Version, e.Value
	r.found = e.HasValue || e.Kind == client.EventSet
}

// renew looks whether a change is the same value again.
func (r *row) renew(e client.Event) {
	if e.Kind != client.EventSet || !e.HasValue || !r.found || !bytes.Equal(e.Value, r.value) {
		r.forget()
		return
	}
	if !r.renewed.IsZero() {
		r.longest = max(r.longest, e.Time.Sub(r.renewed))
	}
	r.renewed = e.Time
	r.renewals++
}

func (r *row) forget() { r.renewed, r.renewals, r.longest = time.Time{}, 0, 0 }

// enoughRenewals is how often a value must be written again to be taken for a lock.
const enoughRenewals = 2

// lease returns what is seen of a lock: how often it is renewed, and how much of a lease of
// three such times is left, from 0 to 1. The lease itself cannot be read.
func (r *row) lease(now time.Time) (every time.Duration, left float64, isLock bool) {
	if r.renewals < enoughRenewals || r.longest <= 0 {
		return 0, 0, false
	}
	left = 1 - now.Sub(r.renewed).Seconds()/(3*r.longest.Seconds())
	return r.longest, min(max(left, 0), 1), true
}

func keepLast[T any](all []T, most int) []T {
	if len(all) > most {
		return slices.Delete(all, 0, len(all)-most)
	}
	return all
}

// refuse says why keys cannot be watched.
func (m *model) refuse(keys []string, why string) {
	for _, k := range keys {
		m.add(k).err = why
	}
}

// forgotten is how long a deleted key stays in the table that was only found by a scan.
const forgotten = time.Minute

// shown returns the rows that pass the filter, in order.
func (m *model) shown(now time.Time) []*row {
	var rows []*row
	for _, r := range m.rows {
		if m.filter == "" || strings.Contains(strings.ToLower(r.key), strings.ToLower(m.filter)) {
			rows = append(rows, r)
		}
	}
	slices.SortFunc(rows, func(a, b *row) int {
		c := 0
		switch m.order {
		case byAge: // the latest first
			c = b.version.Compare(a.version)
		case byRate: // the most first
			c = cmp.Compare(b.writes.perSecond(now), a.writes.perSecond(now))
		}
		c = cmp.Or(c, strings.Compare(a.key, b.key))
		if m.reversed {
			return -c
		}
		return c
	})
	return rows
}

// An action is what the program has to do for a key that was typed.
type action int

const (
	actNothing action = iota
	actQuit
	actInterrupt
	actSuspend
	actRedraw
)

// typed takes a key.
func (m *model) typed(k key, now time.Time) action {
	switch k {
	case keyInterrupt:
		return actInterrupt
	case keySuspend:
		return actSuspend
	case keyRedraw:
		return actRedraw
	}
	switch {
	case m.typing:
		m.typedFilter(k)
		return actNothing
	case m.help:
		m.help = false // any key
		return actNothing
	case k == 'q' && !m.opened:
		return actQuit
	case k == '?' || k == 'h':
		m.help = true
	case m.opened:
		m.typedOpen(k)
	default:
		m.typedTable(k, now)
	}
	return actNothing
}

func (m *model) typedFilter(k key) {
	switch {
	case k == keyEnter:
		m.typing = false
	case k == keyEscape:
		m.typing, m.filter = false, ""
	case k == keyClear:
		m.filter = ""
	case k == keyBackspace:
		runes := []rune(m.filter)
		m.filter = string(runes[:max(len(runes)-1, 0)])
	case k >= 0:
		m.filter += string(rune(k))
	}
}

func (m *model) typedOpen(k key) {
	switch k {
	case keyEscape, keyEnter, keyBackspace, 'q':
		m.opened = false
	case keyUp, 'k':
		m.scroll--
	case keyDown, 'j':
		m.scroll++
	case keyPageUp:
		m.scroll -= max(m.page, 1)
	case keyPageDown, ' ':
		m.scroll += max(m.page, 1)
	case keyHome, 'g':
		m.scroll = 0
	case keyEnd, 'G':
		m.scroll = maxHistory + maxPackets + 10000 // the view knows the last line
	}
	m.scroll = max(m.scroll, 0)
}

func (m *model) typedTable(k key, now time.Time) {
	switch k {
	case keyEnter:
		if r := m.rows[m.selected]; r != nil {
			m.open, m.opened, m.scroll = r.key, true, 0
		}
	case keyEscape:
		m.filter = ""
	case '/':
		m.typing = true
	case 's':
		m.order = (m.order + 1) % orders
	case 'r':
		m.reversed = !m.reversed
	case keyUp, 'k':
		m.move(-1, now)
	case keyDown, 'j':
		m.move(1, now)
	case keyPageUp:
		m.move(-max(m.page, 1), now)
	case keyPageDown, ' ':
		m.move(max(m.page, 1), now)
	case keyHome, 'g':
		m.move(-len(m.rows), now)
	case keyEnd, 'G':
		m.move(len(m.rows), now)
	}
}

// move selects another row.
func (m *model) move(by int, now time.Time) {
	rows := m.shown(now)
	if len(rows) == 0 {
		return
	}
	m.selected = rows[min(max(m.place(rows)+by, 0), len(rows)-1)].key
}

// place returns where the selected row is, or 0.
func (m *model) place(rows []*row) int {
	return max(slices.IndexFunc(rows, func(r *row) bool { return r.key == m.selected }), 0)
}
