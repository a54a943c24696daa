package check

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/format"
)

func matchKind() kind {
	return kind{
		name: aMatch, operand: "--match PATTERN", flag: "check the keys that match `PATTERN`; may be repeated",
		judge: (*verdict).matches, expose: (*spec).exposeMatches,
		families: func() []family {
			return []family{
				{"sscli_match_keys", "gauge", "Number of keys that match the pattern."},
				{"sscli_match_key_state", "gauge", "State of a key that matches the pattern: 0 OK, 1 warning, 2 critical, 3 unknown."},
			}
		},
	}
}

func (s *spec) readsEach() bool { return s.kind == aMatch && s.onKeys }

// A count is the number of keys that match a pattern.
type count struct {
	n    int
	keys []string // the first of them
	err  error
}

// maxEach is how many of the keys that match a pattern a check reads.
const maxEach = 1000

// countKeys counts the keys that match the patterns of the checks, and reads those whose checks have a condition for
// each key.
func (v *view) countKeys(ctx context.Context, s *client.Session) {
	counted := make(map[string]count)
	for _, check := range v.specs {
		if _, done := counted[check.target]; check.kind != aMatch || done {
			continue
		}
		var c count
		for key, err := range s.Keys(ctx, check.target) {
			if c.err = err; err == nil && key != ClockKey {
				c.n++
				if len(c.keys) < maxEach {
					c.keys = append(c.keys, key)
				}
			}
		}
		if ctx.Err() != nil {
			return
		}
		counted[check.target] = c
	}
	each := v.discover(counted)
	v.readKeys(ctx, s, each)
	if ctx.Err() != nil {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.broker.counts = counted
}

// discover returns a check for each key that a pattern found and whose check has a condition for it, by the key.
func (v *view) discover(counted map[string]count) map[string][]*spec {
	v.mu.Lock()
	defer v.mu.Unlock()
	each := make(map[string][]*spec)
	for _, s := range v.specs {
		c := counted[s.target]
		if !s.readsEach() || c.err != nil {
			continue
		}
		before := v.found[s]
		v.found[s] = make(map[string]*spec)
		for _, key := range c.keys {
			one := before[key]
			if delete(before, key); one == nil {
				copied := *s
				one = &copied
				one.name, one.kind, one.target, one.of = "", aKey, key, s
				if v.seen[one] = v.before[one.id()]; v.seen[one] == nil {
					v.seen[one] = &seen{}
				}
			}
			v.found[s][key] = one
			each[key] = append(each[key], one)
		}
		for _, gone := range before {
			delete(v.seen, gone)
		}
	}
	return each
}

func (v *verdict) matches(from *view, local time.Time) {
	c, counted := from.broker.counts[v.spec.target]
	if !counted {
		c.err = errors.New("not counted yet")
	}
	if c.err != nil {
		v.problem(unknown, "%v", c.err)
		return
	}
	if v.measure(counting("keys", "", "key", c.n), "%s", "count-min", "count-max") {
		v.fact("%s", format.Count(c.n, "key"))
	}
	if v.spec.readsEach() {
		v.judgeEach(from, c, local)
	}
}

// maxShown is how many of the keys that match a pattern a message shows.
const maxShown = 20

// judgeEach adds the verdicts on the keys that match a pattern, the worst first.
func (v *verdict) judgeEach(from *view, c count, local time.Time) {
	var bad []verdict
	for _, key := range slices.Sorted(maps.Keys(from.found[v.spec])) {
		one := from.found[v.spec][key]
		if k := from.seen[one]; k.read && !k.found {
			continue // deleted since the keys were counted
		}
		result := from.judge(one, local)
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

func (s *spec) exposeMatches(e *exposition, v *view, labels []label, _ bool, _ time.Time) {
	if c, counted := v.broker.counts[s.target]; counted && c.err == nil {
		e.add("sscli_match_keys", float64(c.n), labels...)
	}
}
