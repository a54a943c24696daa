package check

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/cmd/sscli/internal/fault"
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

// judge decides a check. v.mu is held.
func (v *view) judge(s *spec, local time.Time) verdict {
	result, kind := verdict{spec: s}, kindOf(s.kind)
	b, k := &v.broker, v.seen[s]
	switch {
	case errors.Is(b.err, errNotYet), b.err != nil && b.code == fault.CodeUsage: // a file of ours cannot be read
		result.problem(unknown, "%v", b.err)
	case b.err != nil:
		result.problem(critical, "%v", b.err)
	case kind.look != nil && k.err != nil:
		result.problem(unknown, "%v", k.err)
	case kind.look != nil && !k.read:
		result.problem(unknown, "not read yet")
	default:
		kind.judge(&result, v, local)
	}
	return result
}

// ahead judges how far the version is ahead of the local clock.
func (v *verdict) ahead(k *seen, local time.Time) {
	if v.spec.conditions["fence-ahead"] && !k.version.IsZero() {
		v.measure(lasting("ahead", max(0, k.version.Time().Sub(local))), "the version is %s ahead of this machine's clock", "", "fence-ahead")
	}
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
