package check

import (
	"bytes"
	"cmp"
	"crypto/x509"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/cmd/sscli/internal/dataset"
	"github.com/sscli/sscli/cmd/sscli/internal/fault"
	"github.com/sscli/sscli/cmd/sscli/internal/jsonfield"
	"github.com/sscli/sscli/format"
)

// A seen is what is known of a key.
type seen struct {
	err     error // why the key could not be read; the other fields are then as last known
	known   bool  // the key was read at least once
	read    bool  // the key was read after the last break
	found   bool
	size    int
	version client.Version

	holder  string      // of a lock: its value
	last    string      // of a lock: its last holder
	since   time.Time   // since when the version or, of a lock, the holder is this one, at least; zero = not known
	after   time.Time   // when the version was another one, or none; zero = not known
	looked  time.Time   // when the key was read, or a change was seen, last
	changes []time.Time // of the value or, for a lock, of the holder; the newest last
	total   int         // number of changes

	value value // what the check found in the value
}

// A value is what a check found in a value, which is then no longer needed.
type value struct {
	problems []string
	number   *number // nil = the value is no number
	text     string  // the value, shortened, if the check shows it
}

// A broker is what is known of a broker.
type broker struct {
	err      error         // why the store did not answer; nil = it answers
	code     int           // the exit code of err
	rtt      time.Duration // of the last answer
	clock    *storeClock   // nil = not measured
	clockErr error         // why it was not measured
	drift    time.Duration // how far a client's clock may be ahead of the store's
	lost     error         // why it is not known what earlier runs saw; nil = it is
	token    time.Time     // when the token ends; zero = no token, or one without an end
	counts   map[string]count

	cert     *x509.Certificate // the certificate that expires first; nil = no TLS
	verified bool              // the broker's chain was verified, so that cert may be its CA

	gaps   int       // breaks of the watch
	newest time.Time // the newest version that was read, which the store's clock has passed
}

// A count is the number of keys that match a pattern.
type count struct {
	n    int
	keys []string // the first of them
	err  error
}

// judge decides a check. k is the key that the check reads, nil if it reads none.
func judge(s *spec, b *broker, k *seen, local time.Time) verdict {
	v := verdict{spec: s}
	switch {
	case errors.Is(b.err, errNotYet), b.err != nil && b.code == fault.CodeUsage: // a file of ours cannot be read
		v.problem(unknown, "%v", b.err)
	case b.err != nil:
		v.problem(critical, "%v", b.err)
	case s.kind == aBroker:
		v.broker(b, local)
	case s.kind == aMatch:
		c, counted := b.counts[s.target]
		if !counted {
			c.err = errors.New("not counted yet")
		}
		v.matches(c)
	case k.err != nil:
		v.problem(unknown, "%v", k.err)
	case !k.read:
		v.problem(unknown, "not read yet")
	case s.kind == aKey:
		v.key(b, k, local)
	default:
		v.lock(b, k, local)
	}
	return v
}

// maxShown is how many of the keys that match a pattern a message shows.
const maxShown = 20

// judge decides a check of the view. v.mu is held.
func (v *view) judge(s *spec, local time.Time) verdict {
	result := judge(s, &v.broker, v.seen[s], local)
	if c, counted := v.broker.counts[s.target]; s.readsEach() && counted && c.err == nil && v.broker.err == nil {
		result.judgeEach(v, c, local)
	}
	return result
}

// judgeEach adds the verdicts on the keys that match a pattern, the worst first.
func (v *verdict) judgeEach(from *view, c count, local time.Time) {
	var bad []verdict
	for _, key := range slices.Sorted(maps.Keys(from.found[v.spec])) {
		one := from.found[v.spec][key]
		if k := from.seen[one]; k.read && !k.found {
			continue // deleted since the keys were counted
		}
		result := judge(one, &from.broker, from.seen[one], local)
		if v.each = append(v.each, result); result.state != ok {
			bad = append(bad, result)
		}
	}
	slices.SortStableFunc(bad, func(a, b verdict) int { return b.state.order() - a.state.order() })
	for i, one := range bad {
		if i == maxShown {
			v.problem(one.state, "and %d more", len(bad)-i)
			break
		}
		v.problem(one.state, "%s: %s", one.spec.describe(), strings.Join(one.problems, ", "))
	}
	if len(bad) > 0 {
		v.fact("%d not OK", len(bad))
	}
	v.measures = append(v.measures, counting("failing", "", "key", len(bad)))
	switch {
	case c.n > maxEach:
		v.problem(warning, "only the first %d are checked", maxEach)
	case c.n == 0 && !v.spec.conditions["count-min"] && !v.spec.conditions["count-max"]:
		v.problem(unknown, "no key matches")
	}
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
	v.rate(b, k, local, "")
	if !k.found {
		return
	}
	found := k.value
	for _, problem := range found.problems {
		v.problem(critical, "%s", problem)
	}
	switch {
	case found.number == nil:
		if found.text != "" && len(found.problems) == 0 {
			v.fact("%s", found.text)
		}
	default:
		text := "%s"
		if s.field != nil {
			text = strings.ReplaceAll(s.field.String(), "%", "%%") + " is %s"
		}
		if v.measure(measure{name: "value", value: *found.number, exact: true, show: number.String}, text, "min", "max") {
			v.fact(text, *found.number)
		}
	}
	if v.measure(counting("size", size, "byte", k.size), "%s", "", "max-size") {
		v.fact("%s", format.Count(k.size, "byte"))
	}
	v.age(b, k, local)
	v.ahead(k, local)
}

// age judges the time since the last write.
func (v *verdict) age(b *broker, k *seen, local time.Time) {
	if !v.spec.conditions["max-age"] && !v.spec.conditions["min-age"] {
		return
	}
	age, unsure := b.age(k.version, local)
	age = age.remembered(k, local)
	if v.measure(spanning("age", age, unsure), "written %s ago", "min-age", "max-age") {
		v.fact("written %s ago", format.Span(age.least))
	}
	if b.clock == nil && !k.version.IsZero() {
		v.fact("by this machine's clock")
	}
}

// ahead judges how far the version is ahead of the local clock.
func (v *verdict) ahead(k *seen, local time.Time) {
	if v.spec.conditions["fence-ahead"] && !k.version.IsZero() {
		v.measure(lasting("ahead", max(0, k.version.Time().Sub(local))), "the version is %s ahead of this machine's clock", "", "fence-ahead")
	}
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
	v.rate(b, k, local, " of the holder")
	if !k.found {
		return
	}
	if s.conditions["held-max"] && !v.lost(b) {
		v.measure(lasting("held", b.held(k, local)), "held for %s", "", "held-max")
	}
	v.ahead(k, local)
}

// held returns for how long a lock has had its holder, at least: the holder wrote it then, and may have had it before.
func (b *broker) held(k *seen, local time.Time) time.Duration {
	age, _ := b.age(k.version, local)
	if k.since.IsZero() {
		return age.least
	}
	return max(age.least, local.Sub(k.since))
}

// lost reports whether a condition cannot be judged because it is not known what earlier runs saw.
func (v *verdict) lost(b *broker) bool {
	if b.lost == nil {
		return false
	}
	if text := fmt.Sprintf("what earlier runs saw is not known: %v", b.lost); !slices.Contains(v.problems, text) {
		v.problem(unknown, "%s", text)
	}
	return true
}

// rate judges how often a key changed. what follows the number of changes.
func (v *verdict) rate(b *broker, k *seen, local time.Time, what string) {
	if !v.spec.conditions["changes-max"] || v.lost(b) {
		return
	}
	r := v.spec.changes
	n := 0
	for _, at := range k.changes {
		if local.Sub(at) < r.within {
			n++
		}
	}
	v.measures = append(v.measures, counting("changes", "", "change", n))
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
	if v.measure(counting("keys", "", "key", c.n), "%s", "count-min", "count-max") {
		v.fact("%s", format.Count(c.n, "key"))
	}
}

func (v *verdict) broker(b *broker, local time.Time) {
	if v.spec.conditions["rtt"] {
		v.measure(lasting("rtt", b.rtt), "a round trip of %s", "", "rtt")
	}
	switch {
	case !v.spec.conditions["skew"]:
	case b.clock == nil:
		v.problem(unknown, "the store's clock is not known: %v", b.clockErr)
	default:
		v.skew(b.skew(local), b.clock.exact)
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
		v.fact("the store answers, %s round trip", format.Span(b.rtt))
	}
}

func (v *verdict) skew(ahead span, exact bool) {
	sides := "this machine's clock is %s ahead of the store's"
	apart := span{ahead.least, ahead.most}
	switch {
	case ahead.most < 0:
		apart, sides = span{-ahead.most, -ahead.least}, "this machine's clock is %s behind the store's"
	case ahead.least < 0:
		apart, sides = span{0, max(-ahead.least, ahead.most)}, "this machine's clock and the store's are %s apart"
	}
	unsure := "the round trip took too long to say"
	if !exact {
		unsure = fastClient
	}
	if v.measure(spanning("skew", apart, unsure), sides, "", "skew") {
		v.fact("the clocks are at most %s apart", format.Span(apart.most))
	}
}

// end judges when a certificate or a token expires. of follows what it is; none says why there is no such time.
func (v *verdict) end(condition, what, of string, at, local time.Time, none string) {
	switch {
	case !v.spec.conditions[condition]:
	case at.IsZero():
		v.problem(unknown, "%s", none)
	default:
		m := lasting(what, at.Sub(local))
		m.show = func(n number) string { return duration(n).Round(time.Second).Abs().String() }
		text := "the " + what + strings.ReplaceAll(of, "%", "%%") + " expires in %s"
		if at.Before(local) {
			text = "the " + what + strings.ReplaceAll(of, "%", "%%") + " expired %s ago"
		}
		if v.measure(m, text, condition, "") {
			v.fact(text, m.show(m.value))
		}
	}
}

// look judges the value of a key or of a lock. shown means that messages may show the value of a key.
func (s *spec) look(content []byte, shown bool) (found value) {
	problem := func(text string, args ...any) { found.problems = append(found.problems, fmt.Sprintf(text, args...)) }
	if s.kind == aLock {
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
	if n, ok := parseNumber(strings.TrimSpace(text)); ok && s.needs(digits) {
		found.number = &n
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
	if (s.conditions["min"] || s.conditions["max"]) && found.number == nil {
		problem("%s%s, %s", what, cmp.Or(is, " is no number"), expectedNumber(strings.TrimSpace(text)))
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
