package check

import (
	"bytes"
	"cmp"
	"crypto/x509"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/cmd/sscli/internal/dataset"
	"github.com/sscli/sscli/cmd/sscli/internal/jsonfield"
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

// worse returns the worse of two states: critical, then unknown, then warning.
func worse(a, b state) state {
	order := [...]int{ok: 0, warning: 1, unknown: 2, critical: 3}
	if order[a] >= order[b] {
		return a
	}
	return b
}

// parseNumber returns the number that a text is in decimal notation.
func parseNumber(text string) (n float64, ok bool) {
	if strings.ContainsAny(text, "_xXpP") { // ParseFloat takes hexadecimal, with underscores
		return 0, false
	}
	n, err := strconv.ParseFloat(text, 64)
	return n, err == nil && !math.IsInf(n, 0) && !math.IsNaN(n)
}

// A seen is what is known of a key.
type seen struct {
	err     error // why the key could not be read; the other fields are then as last known
	read    bool  // the key was read at least once
	found   bool
	size    int
	version client.Version

	holder  string      // of a lock: its value
	last    string      // of a lock: its last holder
	since   time.Time   // since when the value is that of this holder, at least; zero = not known
	changes []time.Time // of the value or, for a lock, of the holder; the newest last
	total   int         // number of changes

	value value // what the check found in the value
}

// A value is what a check found in a value, which is then no longer needed.
type value struct {
	problems []string
	number   float64 // NaN = the value is no number
	text     string  // the value, shortened, if the check shows it
}

// A broker is what is known of a broker.
type broker struct {
	err     error         // why the store did not answer; nil = it answers
	code    int           // the exit code of err
	rtt     time.Duration // of the last answer
	skew    *client.Skew  // nil = not measured
	skewErr error         // why it was not measured
	token   time.Time     // when the token ends; zero = no token, or one without an end
	counts  map[string]count

	cert     *x509.Certificate // the certificate that expires first; nil = no TLS
	verified bool              // the broker's chain was verified, so that cert may be its CA

	gaps   int       // breaks of the watch
	newest time.Time // the newest version that was read, which the store's clock has passed
}

// A count is the number of keys that match a pattern.
type count struct {
	n   int
	err error
}

// now returns the present time of the store's clock, and whether it was measured. Without a measurement it
// is the local clock, but not before the newest version.
func (b *broker) now(local time.Time) (now time.Time, measured bool) {
	if b.skew != nil {
		return local.Add(-b.skew.Ahead), true
	}
	if local.Before(b.newest) {
		return b.newest, false
	}
	return local, false
}

// A measure is a number that a check found.
type measure struct {
	name, unit string
	value      float64
	signed     bool   // it may be negative
	least      *limit // nil = none
	most       *limit // nil = none
}

// A verdict is the result of a check.
type verdict struct {
	spec     *spec
	state    state
	problems []string // what differs from what is expected
	facts    []string // what is so
	measures []measure
	since    time.Time // since when the check is in this state; zero = not known
}

// message returns a verdict as one line.
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

// measure adds a number, and a problem for each limit that it exceeds, and reports whether it exceeds none.
// shown is the number as text. least and most are the conditions that limit it; "" = none.
func (v *verdict) measure(m measure, shown, least, most string) (within bool) {
	before := len(v.problems)
	judge := func(condition, bound string, exceeds func(limit float64) bool) *limit {
		l, limited := v.spec.limits[condition]
		switch {
		case !limited:
			return nil
		case exceeds(l.critical):
			v.problem(critical, "%s, expected %s %s", shown, bound, l.text)
		case exceeds(l.warning): // never if it is NaN
			v.problem(warning, "%s, expected %s %s", shown, bound, l.warningText)
		}
		return &l
	}
	m.least = judge(least, "at least", func(limit float64) bool { return m.value < limit })
	m.most = judge(most, "at most", func(limit float64) bool { return m.value > limit })
	v.measures = append(v.measures, m)
	return len(v.problems) == before
}

// judge decides a check. k is the key that the check reads, nil if it reads none.
func judge(s *spec, b *broker, k *seen, local time.Time) verdict {
	v := verdict{spec: s}
	switch {
	case errors.Is(b.err, errNotYet):
		v.problem(unknown, "%v", b.err)
	case b.err != nil:
		v.problem(critical, "%v", b.err)
	case s.kind() == aBroker:
		v.broker(b, local)
	case s.kind() == aMatch:
		c, counted := b.counts[s.match]
		if !counted {
			c.err = errors.New("not counted yet")
		}
		v.matches(c)
	case k.err != nil:
		v.problem(unknown, "%v", k.err)
	case !k.read:
		v.problem(unknown, "not read yet")
	case s.kind() == aKey:
		v.key(b, k, local)
	default:
		v.lock(b, k, local)
	}
	return v
}

func (v *verdict) key(b *broker, k *seen, local time.Time) {
	s := v.spec
	switch {
	case !k.found && s.conditions["missing"]:
		v.fact("missing")
	case !k.found:
		v.problem(critical, "missing, expected the key to exist")
	case s.conditions["missing"]:
		v.problem(critical, "exists, expected no such key")
	}
	v.rate(k, local, "")
	if !k.found {
		return
	}
	found := k.value
	for _, problem := range found.problems {
		v.problem(critical, "%s", problem)
	}
	switch {
	case math.IsNaN(found.number):
		if found.text != "" && len(found.problems) == 0 {
			v.fact("%s", found.text)
		}
	default:
		shown := strconv.FormatFloat(found.number, 'g', -1, 64)
		if s.field != nil {
			shown = s.field.String() + " is " + shown
		}
		if v.measure(measure{name: "value", value: found.number, signed: true}, shown, "min", "max") {
			v.fact("%s", shown)
		}
	}
	if bytes := format.Count(k.size, "byte"); v.measure(measure{name: "size", unit: size, value: float64(k.size)}, bytes, "", "max-size") {
		v.fact("%s", bytes)
	}
	v.age(b, k, local)
	v.ahead(k, local)
}

// age judges the time since the last write.
func (v *verdict) age(b *broker, k *seen, local time.Time) {
	if !v.spec.wantsAge() {
		return
	}
	if k.version.IsZero() {
		v.problem(unknown, "the store sent no version, so the age is not known")
		return
	}
	now, measured := b.now(local)
	age := max(0, now.Sub(k.version.Time()))
	shown := "written " + format.Span(age) + " ago"
	if v.measure(measure{name: "age", unit: seconds, value: age.Seconds()}, shown, "min-age", "max-age") {
		v.fact("%s", shown)
	}
	if !measured {
		v.fact("by this machine's clock")
	}
}

// ahead judges how far the version is ahead of the local clock.
func (v *verdict) ahead(k *seen, local time.Time) {
	if !v.spec.conditions["fence-ahead"] || k.version.IsZero() {
		return
	}
	ahead := max(0, k.version.Time().Sub(local))
	shown := "the version is " + format.Span(ahead) + " ahead of this machine's clock"
	v.measure(measure{name: "ahead", unit: seconds, value: ahead.Seconds()}, shown, "", "fence-ahead")
}

func (v *verdict) lock(b *broker, k *seen, local time.Time) {
	s := v.spec
	switch {
	case !k.found && s.conditions["held"]:
		v.problem(critical, "free, expected it to be held")
	case k.found && s.conditions["free"]:
		v.problem(critical, "held by %s, expected it to be free", format.Brief(k.holder))
	case !k.found:
		v.fact("free")
	default:
		v.fact("held by %s", format.Brief(k.holder))
	}
	for _, problem := range k.value.problems {
		v.problem(critical, "%s", problem)
	}
	v.rate(k, local, " of the holder")
	if !k.found {
		return
	}
	since := k.since
	if renewed, _ := b.age(k, local); since.IsZero() || renewed.Before(since) {
		since = renewed // the holder wrote it then, and may have had it before
	}
	if !s.conditions["held-max"] {
		v.ahead(k, local)
		return
	}
	held := max(0, local.Sub(since))
	v.measure(measure{name: "held", unit: seconds, value: held.Seconds()}, "held for "+format.Span(held.Round(time.Second)), "", "held-max")
	v.ahead(k, local)
}

// age returns the local time of the last write of a key.
func (b *broker) age(k *seen, local time.Time) (written time.Time, measured bool) {
	now, measured := b.now(local)
	if k.version.IsZero() {
		return local, false
	}
	return local.Add(-max(0, now.Sub(k.version.Time()))), measured
}

// rate judges how often a key changed. what follows the number of changes.
func (v *verdict) rate(k *seen, local time.Time, what string) {
	if !v.spec.conditions["changes-max"] {
		return
	}
	r := v.spec.changes
	n := 0
	for _, at := range k.changes {
		if local.Sub(at) < r.within {
			n++
		}
	}
	v.measures = append(v.measures, measure{name: "changes", value: float64(n)})
	shown := format.Count(n, "change") + what + " in " + format.Span(r.within)
	switch {
	case n > r.critical:
		v.problem(critical, "%s, expected at most %d", shown, r.critical)
	case r.warning >= 0 && n > r.warning:
		v.problem(warning, "%s, expected at most %d", shown, r.warning)
	default:
		v.fact("%s", shown)
	}
}

func (v *verdict) matches(c count) {
	if c.err != nil {
		v.problem(unknown, "%v", c.err)
		return
	}
	shown := format.Count(c.n, "key")
	if v.measure(measure{name: "keys", value: float64(c.n)}, shown, "count-min", "count-max") {
		v.fact("%s", shown)
	}
}

func (v *verdict) broker(b *broker, local time.Time) {
	if v.spec.conditions["rtt"] {
		v.measure(measure{name: "rtt", unit: seconds, value: b.rtt.Seconds()}, "a round trip of "+roundTrip(b.rtt), "", "rtt")
	}
	if v.spec.conditions["skew"] {
		if b.skew == nil {
			v.problem(unknown, "the store's clock is not known: %v", b.skewErr)
		} else {
			apart := b.skew.Ahead.Abs()
			side := map[bool]string{true: "ahead of", false: "behind"}[b.skew.Ahead >= 0]
			shown := fmt.Sprintf("this machine's clock is %s %s the store's", format.Span(apart), side)
			v.measure(measure{name: "skew", unit: seconds, value: apart.Seconds()}, shown, "", "skew")
		}
	}
	if b.cert == nil {
		v.end("cert-expires", "certificate", "", time.Time{}, local, "the connection has no TLS")
	} else {
		v.end("cert-expires", "certificate", fmt.Sprintf(" of %q", b.cert.Subject), b.cert.NotAfter, local, "")
		if v.spec.conditions["cert-expires"] && !b.verified {
			v.problem(unknown, "the broker's certificate was not verified, so it is not known when its CA expires")
		}
	}
	v.end("token-expires", "token", "", b.token, local, "there is no service-account token with an end")
	if len(v.problems) == 0 && len(v.facts) == 0 {
		v.fact("the store answers, %s round trip", roundTrip(b.rtt))
	}
}

// end judges when a certificate or a token expires. of follows what it is; none says why there is no such time.
func (v *verdict) end(condition, what, of string, at, local time.Time, none string) {
	switch {
	case !v.spec.conditions[condition]:
	case at.IsZero():
		v.problem(unknown, "%s", none)
	default:
		left := at.Sub(local)
		shown := fmt.Sprintf("the %s%s expires in %s", what, of, left.Round(time.Second))
		if left < 0 {
			shown = fmt.Sprintf("the %s%s expired %s ago", what, of, (-left).Round(time.Second))
		}
		if v.measure(measure{name: what, unit: seconds, value: left.Seconds()}, shown, condition, "") {
			v.fact("%s", shown)
		}
	}
}

// look judges the value of a key or of a lock. shown is set if messages may show that of a key.
func (s *spec) look(content []byte, shown bool) (found value) {
	found.number = math.NaN()
	problem := func(text string, args ...any) { found.problems = append(found.problems, fmt.Sprintf(text, args...)) }
	if s.kind() == aLock {
		if s.holder != nil && !s.holder.Match(content) {
			problem("held by %s, expected a holder that matches %s", format.Brief(holderOf(content)), s.holder)
		}
		return found
	}
	text := string(content)
	if s.conditions["json"] {
		parsed, isJSON := jsonfield.Parse(content)
		field := parsed.At(s.field)
		switch {
		case !isJSON:
			problem("the value is not JSON")
			return found
		case !field.Exists():
			problem("the value has no field %s", s.field)
			return found
		}
		text = field.Text()
	}
	if n, ok := parseNumber(strings.TrimSpace(text)); ok && s.wantsNumber() {
		found.number = n
	}
	what, is := "the value", ""
	if s.conditions["json"] {
		what = s.field.String()
	}
	if shown || s.conditions["value"] {
		is = " is " + format.Brief(text)
		found.text = format.Brief(text)
		if s.conditions["json"] {
			found.text = what + " " + found.text
		}
	}
	if (s.conditions["min"] || s.conditions["max"]) && math.IsNaN(found.number) {
		problem("%s%s, expected a number", what, cmp.Or(is, " is no number"))
	}
	if s.conditions["equals"] && text != s.equals {
		problem("%s%s, expected %s", what, cmp.Or(is, " differs"), format.Brief(s.equals))
	}
	if s.valueMatches != nil && !s.valueMatches.Match(content) {
		problem("the value does not match %s", s.valueMatches)
	}
	if s.conditions["dataset"] {
		if err := isDataset(content); err != nil {
			problem("the value is not a data set: %v", err)
		}
	}
	return found
}

func (s *spec) wantsNumber() bool {
	return s.conditions["min"] || s.conditions["max"] || s.conditions["value"]
}

// isDataset returns an error unless a value is a data set, as dataset check decides.
func isDataset(content []byte) error {
	if len(content) == 0 {
		return errors.New("it is empty")
	}
	var survey dataset.Survey
	for r, err := range dataset.Read(bytes.NewReader(content), dataset.Options{Stored: true}) {
		if err == nil {
			err = survey.Add(r)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// roundTrip returns a duration that is often less than a millisecond.
func roundTrip(d time.Duration) string {
	if d < time.Millisecond {
		return strconv.FormatFloat(float64(d.Round(10*time.Microsecond).Microseconds())/1000, 'f', -1, 64) + "ms"
	}
	return format.Span(d)
}
