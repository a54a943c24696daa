package top

import (
	"bytes"
	"cmp"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/cmd/sscli/internal/fault"
	"github.com/sscli/sscli/internal/keyboard"
)

// A model is the state of the screen: the known keys, and the order, filter and selection that the
// user has chosen.
type model struct {
	title    string // the URL of the broker, or "embedded"
	patterns []string
	interval time.Duration // time between scans; 0 = no scans

	rows  map[string]*row
	trace bool // packets are collected

	scanned   time.Time // end of the last successful scan; zero = none yet
	scanErr   string    // why the last scan failed; empty = it succeeded
	noScan    bool      // the broker has no SCAN
	unwatched int       // number of keys that are not watched because of the limit
	outage    string    // why the connection was lost; empty = connected
	outageAt  time.Time

	order     order
	reversed  bool
	filter    string
	filtering bool   // the user is typing the filter
	selected  string // the selected key
	follows   bool   // the selection stays on its key; false = on the first row, whichever key that is
	first     int    // index of the first row on the screen
	open      string // the key whose details are shown, if isOpen
	isOpen    bool
	scroll    int  // number of lines of the details that are above the screen
	help      bool // the help is shown
	page      int  // number of rows on the screen, for PageUp and PageDown
}

type order int

const (
	byKey order = iota
	byAge
	byRate
	orders // number of orders
)

// A row is the known state of a key.
type row struct {
	key     string
	read    bool // found, value and version are known
	found   bool
	value   []byte
	version client.Version
	changed time.Time // time of the last change since top began, by the local clock; zero = none
	err     string    // why the key is not watched

	writes rate

	// A key to which the same value is written again and again is probably a lock. The value then names
	// the holder.
	renewed  time.Time     // time of the last renewal, by the local clock
	renewals int           // number of successive renewals
	longest  time.Duration // longest time between two renewals

	history []change
	packets []string
	trace   bool // packets are collected; false in a shell, which connected before top began
}

// A change is an entry in the history of a key.
type change struct {
	time    time.Time
	op      string // the kind of the event
	version client.Version
	value   []byte // the beginning of the value
	size    int    // size of the whole value, in bytes
	found   bool
	note    string
}

// maxLine is the maximum number of bytes of a value to format for one line. No terminal shows more.
const maxLine = 4 << 10

func beginning(value []byte) []byte { return value[:min(len(value), maxLine)] }

// The maximum lengths of the fields history and packets of a row.
const (
	maxHistory = 200
	maxPackets = 200
)

// rateSeconds is the number of seconds over which a rate is averaged.
const rateSeconds = 10

// A rate counts the writes in each of the last rateSeconds seconds.
type rate struct {
	counts [rateSeconds]int // indexed by Unix time modulo rateSeconds
	second int64            // Unix time of the newest count
}

// advance starts a new count, at 0, for each second after r.second up to now. The new counts replace the
// oldest ones.
func (r *rate) advance(now time.Time) {
	second := now.Unix()
	for n := min(second-r.second, rateSeconds); n > 0; n-- {
		r.counts[(second-n+1)%rateSeconds] = 0
	}
	r.second = max(r.second, second)
}

func (r *rate) add(now time.Time) {
	r.advance(now)
	r.counts[r.second%rateSeconds]++
}

func (r rate) perSecond(now time.Time) float64 {
	r.advance(now)
	sum := 0
	for _, n := range r.counts {
		sum += n
	}
	return float64(sum) / rateSeconds
}

func newModel(title string) *model { return &model{title: title, rows: make(map[string]*row)} }

// add returns the row of a key, and adds one if there is none.
func (m *model) add(key string) *row {
	r := m.rows[key]
	if r == nil {
		r = &row{key: key, trace: m.trace}
		m.rows[key] = r
	}
	return r
}

// noteTrouble records err as the newest error of the outage. It does nothing if there is no outage or
// err is nil.
func (m *model) noteTrouble(err error) {
	if m.outage != "" && err != nil {
		m.outage = fault.Message(err)
	}
}

func (m *model) handleEvent(e client.Event) {
	switch e.Kind {
	case client.EventDown:
		if m.outage == "" {
			m.outageAt, m.outage = e.Time, "the connection is lost"
		}
		m.noteTrouble(e.Err)
		return
	case client.EventUp:
		m.outage = ""
		return
	case client.EventUnaudited:
		return
	}
	r := m.add(e.Key)
	c := change{time: e.Time, op: string(e.Kind), version: e.Version, found: e.HasValue, value: bytes.Clone(beginning(e.Value)), size: len(e.Value)}
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
		r.resetRenewals()
	case client.EventSet, client.EventDelete:
		r.writes.add(e.Time)
		r.changed = e.Time
		r.countRenewal(e)
		r.set(e)
	}
	r.history = keepLast(append(r.history, c), maxHistory)
}

func (r *row) set(e client.Event) {
	r.read, r.version, r.value = true, e.Version, e.Value
	r.found = e.HasValue || e.Kind == client.EventSet
}

// countRenewal counts an event that writes the same value again as a renewal. For any other event, it
// resets the count.
func (r *row) countRenewal(e client.Event) {
	if e.Kind != client.EventSet || !e.HasValue || !r.found || !bytes.Equal(e.Value, r.value) {
		r.resetRenewals()
		return
	}
	if !r.renewed.IsZero() {
		r.longest = max(r.longest, e.Time.Sub(r.renewed))
	}
	r.renewed = e.Time
	r.renewals++
}

func (r *row) resetRenewals() { r.renewed, r.renewals, r.longest = time.Time{}, 0, 0 }

// lease estimates the lease of a lock, because the store does not reveal the lease. every is the
// longest time between two renewals. left falls from 1 at a renewal to 0 after 3*every. isLock is true
// if the same value was written again at least twice.
func (r *row) lease(now time.Time) (every time.Duration, left float64, isLock bool) {
	if r.renewals < 2 || r.longest <= 0 {
		return 0, 0, false
	}
	left = 1 - now.Sub(r.renewed).Seconds()/(3*r.longest.Seconds())
	return r.longest, min(max(left, 0), 1), true
}

func keepLast[T any](all []T, n int) []T { return slices.Delete(all, 0, max(len(all)-n, 0)) }

// shown returns the rows that match the filter, sorted.
func (m *model) shown(now time.Time) []*row {
	var rows []*row
	for _, r := range m.rows {
		if strings.Contains(strings.ToLower(r.key), strings.ToLower(m.filter)) {
			rows = append(rows, r)
		}
	}
	slices.SortFunc(rows, func(a, b *row) int {
		c := 0
		switch m.order {
		case byAge: // the newest first
			c = b.version.Compare(a.version)
		case byRate: // the highest first
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

// Control characters that are keys of top.
const (
	ctrlL = 0x0c
	ctrlU = 0x15
	ctrlZ = 0x1a
)

func (m *model) handleKey(k keyboard.Key, now time.Time) (quits bool) {
	switch {
	case m.filtering:
		m.editFilter(k)
	case m.help:
		m.help = false // after any key press
	case k == 'q' && !m.isOpen:
		return true
	case k == '?' || k == 'h':
		m.help = true
	case m.isOpen:
		switch k {
		case keyboard.Escape, keyboard.Enter, keyboard.Backspace, 'q':
			m.isOpen = false
		}
		m.scroll = max(m.scroll+m.distance(k), 0) // viewOpen applies the upper limit
	default:
		m.handleTableKey(k, now)
	}
	return false
}

func (m *model) editFilter(k keyboard.Key) {
	switch {
	case k == keyboard.Enter:
		m.filtering = false
	case k == keyboard.Escape:
		m.filtering, m.filter = false, ""
	case k == ctrlU:
		m.filter = ""
	case k == keyboard.Backspace:
		runes := []rune(m.filter)
		m.filter = string(runes[:max(len(runes)-1, 0)])
	case unicode.IsPrint(rune(k)):
		m.filter += string(rune(k))
	}
}

func (m *model) handleTableKey(k keyboard.Key, now time.Time) {
	switch k {
	case keyboard.Enter:
		if r := m.rows[m.selected]; r != nil && slices.Contains(m.shown(now), r) {
			m.open, m.isOpen, m.scroll = r.key, true, 0
		}
	case keyboard.Escape:
		m.filter = ""
	case '/':
		m.filtering = true
	case 's':
		m.order = (m.order + 1) % orders
	case 'r':
		m.reversed = !m.reversed
	}
	by := m.distance(k)
	if rows := m.shown(now); by != 0 && len(rows) > 0 {
		at := min(max(m.indexOfSelected(rows)+by, 0), len(rows)-1)
		m.selected, m.follows = rows[at].key, at > 0
	}
}

// distance returns the number of lines by which a key press moves the selection or the details down. A
// negative number means up.
func (m *model) distance(k keyboard.Key) int {
	const toEnd = 1 << 30
	switch k {
	case keyboard.Up, 'k':
		return -1
	case keyboard.Down, 'j':
		return 1
	case keyboard.PageUp:
		return -max(m.page, 1)
	case keyboard.PageDown, ' ':
		return max(m.page, 1)
	case keyboard.Home, 'g':
		return -toEnd
	case keyboard.End, 'G':
		return toEnd
	}
	return 0
}

// indexOfSelected returns the index of the selected row, or 0 if rows does not contain that row.
func (m *model) indexOfSelected(rows []*row) int {
	return max(slices.IndexFunc(rows, func(r *row) bool { return r.key == m.selected }), 0)
}
