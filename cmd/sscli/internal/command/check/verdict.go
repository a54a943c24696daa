package check

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/sscli/sscli/format"
)

// A state is the outcome of a check. Its number is the exit code of a monitoring plugin.
type state int

// The states of checks.
const (
	ok state = iota
	warning
	critical
	unknown
)

func (s state) String() string { return [...]string{"OK", "WARNING", "CRITICAL", "UNKNOWN"}[s] }

// order returns how bad a state is: critical, then unknown, then warning.
func (s state) order() int { return [...]int{ok: 0, warning: 1, unknown: 2, critical: 3}[s] }

func worse(a, b state) state {
	if a.order() >= b.order() {
		return a
	}
	return b
}

// A measure is a number that a check found.
type measure struct {
	name, unit string
	value      number
	most       *number // the value is between value and most, which is not known better; nil = it is value
	unsure     string  // why it is not known better

	exact  bool                // it is a number of a value, which is not rounded, and may be negative
	show   func(number) string // returns the number as text
	lower  *limit              // the value is at least this; nil = no limit
	higher *limit              // at most
}

// A verdict is the result of a check.
type verdict struct {
	spec     *spec
	state    state
	problems []string // what differs from what is expected
	facts    []string // what is so
	measures []measure
	since    time.Time // since when the check is in this state; zero = not known
	each     []verdict // on the keys that match a pattern, by their names
}

func (v *verdict) message(now time.Time) string {
	text := strings.Join(append(slices.Clone(v.problems), v.facts...), "; ")
	if v.state != ok && v.since.Before(now) && !v.since.IsZero() {
		text += ", for " + format.Span(now.Sub(v.since).Round(time.Second))
	}
	return text
}

func (v *verdict) problem(s state, text string, args ...any) {
	v.state = worse(v.state, s)
	v.problems = append(v.problems, fmt.Sprintf(text, args...))
}

func (v *verdict) fact(text string, args ...any) {
	v.facts = append(v.facts, fmt.Sprintf(text, args...))
}

// measure adds a number, and a problem for each limit that it exceeds, and reports whether it exceeds none. text says
// what it is, with %s for the number. least and most are the conditions that limit it; "" = none.
func (v *verdict) measure(m measure, text, least, most string) (within bool) {
	before := len(v.problems)
	from, to := m.value, m.value
	if m.most != nil {
		to = *m.most
	}
	judge := func(condition, bound string, surely, maybe func(limit number) bool) *limit {
		l, limited := v.spec.limits[condition]
		if !limited {
			return nil
		}
		for _, one := range []struct {
			set  bool
			is   state
			at   number
			text string
		}{{true, critical, l.critical, l.text}, {l.warns, warning, l.warning, l.warningText}} {
			if one.set && surely(one.at) {
				v.problem(one.is, text+", expected %s %s", m.apart(one.at), bound, one.text)
				return &l
			}
		}
		if at, limit := l.first(); maybe(at) {
			v.problem(unknown, text+", expected %s %s: not known, %s", m.between(), bound, limit, m.unsure)
		}
		return &l
	}
	m.lower = judge(least, "at least", func(limit number) bool { return to.compare(limit) < 0 }, func(limit number) bool { return from.compare(limit) < 0 })
	m.higher = judge(most, "at most", func(limit number) bool { return from.compare(limit) > 0 }, func(limit number) bool { return to.compare(limit) > 0 })
	v.measures = append(v.measures, m)
	return len(v.problems) == before
}

func (l limit) first() (number, string) {
	if l.warns {
		return l.warning, l.warningText
	}
	return l.critical, l.text
}

// apart returns the number as text that differs from that of a limit.
func (m measure) apart(limit number) string {
	if text := m.show(m.value); m.unit != seconds || text != m.show(limit) {
		return text
	}
	return duration(m.value).String()
}

// between returns the number as text, with both its bounds.
func (m measure) between() string {
	if m.most.float >= forever.Seconds() {
		return "at least " + m.show(m.value)
	}
	return "between " + m.show(m.value) + " and " + m.show(*m.most)
}

func duration(n number) time.Duration { return time.Duration(math.Round(n.float * 1e9)) }

func lasting(name string, d time.Duration) measure {
	return measure{name: name, unit: seconds, value: numberOf(d.Seconds()), show: func(n number) string { return format.Span(duration(n)) }}
}

// spanning returns a measure of a duration that is not known better than s, because of unsure.
func spanning(name string, s span, unsure string) measure {
	m := lasting(name, s.least)
	if s.most != s.least {
		most := numberOf(s.most.Seconds())
		m.most, m.unsure = &most, unsure
	}
	return m
}

func counting(name, unit, what string, n int) measure {
	return measure{name: name, unit: unit, value: numberOf(float64(n)), show: func(n number) string { return format.Count(int(n.float), what) }}
}
