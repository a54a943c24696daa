package format

import (
	"fmt"
	"strconv"
	"time"
)

// Lock is the result of `lock acquire`, `renew`, `release`, `hold` and `break`.
type Lock struct {
	Op     string        // "acquire", "renew", "release", "hold" or "break"
	Name   string        `json:"name"`
	Holder string        `json:"holder"`
	Token  Version       `json:"token"`           // zero = released or broken
	TTL    time.Duration `json:"ttl_ms,omitzero"` // length of the lease; 0 = released or broken
}

func (l Lock) fields(o *objectWriter) { o.result("lock_"+l.Op, l) }

func (l Lock) human(w *writer) {
	w.print("OK\n")
	if !l.Token.IsZero() {
		w.print(w.faint.Sprint(versionLine("token", l.Token)), "\n")
	}
}

// raw writes only the token, so that a script can assign it to a variable. For a release it
// writes the same record as `vdel`.
func (l Lock) raw(w *writer) {
	if l.Token.IsZero() {
		w.record(1, nil)
	} else {
		w.record(l.Token)
	}
}

// LockStatus is the result of `lock status`, and one lock of `lock list`.
type LockStatus struct {
	Name   string
	Held   bool
	Holder string
	Token  Version
	Age    time.Duration // time since the token was issued
	Seen   bool          // Age counts from the token's notification; false = from the time in the token

	Renewals Renewals // observed with --observe

	List  bool // a row of `lock list`
	Maybe bool // List: nothing shows that the key is a lock, and Holder is its value
}

// Renewals counts the observed renewals by a lock's current holder.
type Renewals struct {
	Observed time.Duration // how long the lock, or its current holder, was watched; 0 = not watched
	Seen     int           // number of renewals seen; the holder may have renewed more often
	Every    time.Duration // the mean time between two renewals; 0 = unknown
}

// renewalsPerLease is how many times a holder should renew its lock during one lease, as `lock run` does.
const renewalsPerLease = 3

// String returns the renewals in words.
func (r Renewals) String() string {
	switch {
	case r.Seen == 0:
		return "not seen to renew in " + Span(r.Observed) + " (a lease of more than " + Span(renewalsPerLease*r.Observed) + " would look the same)"
	case r.Every > 0:
		return "renewed every " + Span(r.Every)
	case r.Seen == 1:
		return "renewed at least once in " + Span(r.Observed)
	}
	return fmt.Sprintf("renewed at least %d times in %s", r.Seen, Span(r.Observed))
}

// Span returns a duration as text, such as 0.25ms, 250ms, 3.2s, 90s or 4m10s.
func Span(d time.Duration) string {
	switch abs := d.Abs(); {
	case 0 < abs && abs < time.Millisecond:
		return strconv.FormatFloat(milliseconds(d.Round(10*time.Microsecond)), 'f', -1, 64) + "ms"
	case abs < time.Second:
		return d.Round(time.Millisecond).String()
	case abs < 2*time.Minute:
		return strconv.FormatFloat(d.Round(100*time.Millisecond).Seconds(), 'f', -1, 64) + "s"
	case abs < 24*time.Hour:
		return d.Round(time.Second).String()
	case d < 0:
		return "-" + Coarse(d)
	}
	return Coarse(d)
}

func (l LockStatus) fields(o *objectWriter) {
	op, by := "lock_status", "local_clock"
	if l.List {
		op = "lock_list"
	}
	if l.Seen {
		by = "notification"
	}
	observed, issued := l.Renewals.Observed != 0, l.Held && !l.Token.IsZero()
	o.add("op", op)
	o.add("name", l.Name)
	o.add("held", when(!l.Maybe, l.Held))
	o.add("holder", when(l.Held && !l.Maybe, l.Holder))
	o.add("value", when(l.Maybe, l.Holder))
	o.add("token", when(l.Held, l.Token))
	o.add("age_ms", when(issued, l.Age))
	o.add("age_by", when(issued, by))
	o.add("observed_ms", when(observed, l.Renewals.Observed.Milliseconds()))
	o.add("renewals", when(observed, l.Renewals.Seen))
	o.add("renewal_interval_ms", when(l.Held && l.Renewals.Every > 0, l.Renewals.Every))
}

func (l LockStatus) human(w *writer) {
	switch {
	case l.List:
		w.row(l)
		return
	case !l.Held:
		w.print("free\n")
		return
	}
	line := "token unknown"
	if !l.Token.IsZero() {
		line = versionLine("token", l.Token) + "  (" + Age(l.Age) + ")"
	}
	w.print("held by ", Quote(l.Holder), "\n", w.faint.Sprint(line), "\n")
	if l.Renewals.Observed != 0 {
		w.print(l.Renewals.String(), "\n")
	}
}

func (l LockStatus) titles(*style) []string {
	titles := []string{"NAME", "LOCK", "VALUE", "AGE", "TOKEN"}
	if l.Renewals.Observed != 0 {
		titles = append(titles, "RENEWALS")
	}
	return titles
}

func (l LockStatus) cells(s *style) []cell {
	if !l.List {
		return nil
	}
	name := cell{text: Word(l.Name), paint: s.key}
	if !l.Held {
		return []cell{name, {text: l.state(), paint: s.faint}}
	}
	age, token := "unknown", "unknown"
	if !l.Token.IsZero() {
		age, token = Age(l.Age), versionText(l.Token, "")
	}
	row := []cell{
		name,
		{text: l.state()},
		{text: s.holder(l.Holder), keep: true},
		{text: age, paint: s.faint, right: true},
		{text: token, paint: s.faint, keep: true},
	}
	if l.Renewals.Observed != 0 {
		row = append(row, cell{text: l.Renewals.String(), whole: true})
	}
	return row
}

// maxHolder is the maximum length in bytes of a holder's name that the human output shows in full. A
// longer name is probably the value of a key that is not a lock.
const maxHolder = 256

// holder returns the quoted name of a holder. A long name is shortened unless the output is wide.
func (s *style) holder(name string) string {
	if s.wide || len(name) <= maxHolder {
		return Quote(name)
	}
	const begin = 16 // bytes
	return fmt.Sprintf("%s… (%d bytes)", Quote(name[:begin]), len(name))
}

// state says in one word whether the lock is held.
func (l LockStatus) state() string {
	switch {
	case !l.Held:
		return "free"
	case l.Maybe:
		return "maybe"
	}
	return "held"
}

// raw writes `held`, the holder, the token and the token's age in milliseconds, or only `free`.
// With --observe it adds the number of renewals. In a list, the lock's name comes first, a key that may not be a
// lock has `maybe` for `held` and its value for the holder, and a free lock has a minus for each of holder, token and age. There, --observe also adds the mean time
// between renewals.
func (l LockStatus) raw(w *writer) {
	var record []any
	if l.List {
		record = append(record, l.Name)
	}
	switch {
	case l.Held:
		record = append(record, l.state(), l.Holder, l.Token, when(!l.Token.IsZero(), l.Age.Milliseconds()))
	case l.List:
		record = append(record, l.state(), nil, nil, nil)
	default:
		record = append(record, l.state())
	}
	if l.Renewals.Observed != 0 {
		record = append(record, l.Renewals.Seen)
		if l.List {
			record = append(record, when(l.Renewals.Every > 0, l.Renewals.Every.Milliseconds()))
		}
	}
	w.record(record...)
}
