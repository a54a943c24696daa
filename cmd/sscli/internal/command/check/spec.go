package check

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/sscli/sscli/cmd/sscli/internal/config"
	"github.com/sscli/sscli/cmd/sscli/internal/jsonfield"
	"github.com/sscli/sscli/format"
	"github.com/sscli/sscli/internal/glob"
)

// A spec is one check: what it looks at, and what is expected.
type spec struct {
	name    string
	context string // empty = the connection of the command line
	labels  []label
	line    int // in the file; 0 = from the command line
	column  int

	kind   string // see kinds
	target string // the key, the lock or the pattern; empty for the broker
	of     *spec  // the check of a pattern that found this key; nil for other checks

	conditions map[string]bool // the names of the conditions that are set, see conditions
	required   need            // what they need
	onKeys     bool            // one of them is about a key

	valueMatches, holder *regexp.Regexp
	field                jsonfield.Path
	equals               string
	limits               map[string]limit
	changes              rate
}

// A label is added to every series of a check.
type label struct{ name, value string }

// A limit has a value from which a check warns and one from which it is critical, in seconds, bytes or a number.
type limit struct {
	warning, critical number
	warns             bool   // there is a warning
	warningText, text string // as the user wrote them
}

// A rate is a number of changes within a time.
type rate struct {
	warning, critical int // warning is -1 if there is none
	within            time.Duration
}

// A condition is a flag of the command line and a field of the file.
type condition struct {
	name  string
	value string // what follows it, in help; empty = nothing
	usage string
	on    []string // the kinds of check that may have it
	parse func(s *spec, text string) error
	needs need
}

// A need is what a condition requires besides the key itself.
type need int

// The needs of conditions.
const (
	memory need = 1 << iota // what earlier looks saw
	clock                   // the store's clock
	digits                  // the number that the value is
)

func (s *spec) needs(n need) bool { return s.required&n != 0 }

// needing returns the first condition of the check that has a need, or "".
func (s *spec) needing(n need) string {
	for _, c := range conditions() {
		if s.conditions[c.name] && c.needs&n != 0 {
			return c.name
		}
	}
	return ""
}

func conditions() []condition {
	alone, keys, locks, all := []string{aKey}, []string{aKey, aMatch}, []string{aLock}, []string{aKey, aLock, aMatch}
	return []condition{
		{"exists", "", "the key exists (the default)", alone, nil, 0},
		{"missing", "", "the key does not exist", alone, nil, 0},
		limitOf(clock, "max-age", "AGE", "the last write is at most `AGE` ago", seconds, up, keys...),
		limitOf(clock, "min-age", "AGE", "the last write is at least `AGE` ago", seconds, down, keys...),
		limitOf(0, "max-size", "SIZE", "the value has at most `SIZE` bytes", size, up, keys...),
		{"value-matches", "RE", "the value matches the regular expression `RE`", keys, func(s *spec, text string) error { return compile(&s.valueMatches, text) }, 0},
		{"json", "FIELD", "the value is JSON and has `FIELD`, to which min, max and equals apply", keys, func(s *spec, text string) (err error) {
			if !strings.HasPrefix(text, ".") {
				text = "." + text
			}
			s.field, err = jsonfield.ParsePath(text)
			return err
		}, 0},
		limitOf(digits, "min", "N", "the value, or the field of json, is at least `N`", amount, down, keys...),
		limitOf(digits, "max", "N", "the value, or the field of json, is at most `N`", amount, up, keys...),
		{"equals", "VALUE", "the value, or the field of json, is `VALUE`", keys, func(s *spec, text string) error {
			s.equals = text
			return nil
		}, 0},
		{"dataset", "", "the value is a data set", keys, nil, 0},
		{"value", "", "show the value, and export it if it is a number", keys, nil, digits},
		{"held", "", "the lock is held", locks, nil, 0},
		{"free", "", "the lock is free", locks, nil, 0},
		limitOf(memory|clock, "held-max", "TIME", "the same holder has the lock for at most `TIME`", seconds, up, locks...),
		{"holder", "RE", "the holder matches the regular expression `RE`", locks, func(s *spec, text string) error { return compile(&s.holder, text) }, 0},
		{"changes-max", "N/TIME", "at most `N/TIME` changes: of the value, or of the lock's holder", all, func(s *spec, text string) (err error) {
			s.changes, err = parseRate(text)
			return err
		}, memory},
		limitOf(0, "fence-ahead", "TIME", "the version, a lock's fencing token, is at most `TIME` ahead of this machine's clock", seconds, up, all...),
		limitOf(0, "count-min", "N", "at least `N` keys match", amount, down, aMatch),
		limitOf(0, "count-max", "N", "at most `N` keys match", amount, up, aMatch),
		limitOf(0, "rtt", "TIME", "a round trip to the store takes at most `TIME`", seconds, up, aBroker),
		limitOf(clock, "skew", "TIME", "this machine's clock and the store's differ by at most `TIME`", seconds, up, aBroker),
		limitOf(0, "cert-expires", "TIME", "the certificates are valid for at least `TIME`", seconds, down, aBroker),
		limitOf(0, "token-expires", "TIME", "the service-account token is valid for at least `TIME`", seconds, down, aBroker),
	}
}

// The units of limits.
const (
	seconds = "s"
	size    = "B"
	amount  = ""
)

// A direction is where a limit lies.
type direction int

// The directions of limits.
const (
	up   direction = iota // a larger value is worse
	down                  // a smaller value is worse
)

func limitOf(needs need, name, value, usage, unit string, way direction, on ...string) condition {
	return condition{name, value, usage, on, func(s *spec, text string) error {
		l, err := parseLimit(text, unit, way)
		if err != nil {
			return err
		}
		if s.limits == nil {
			s.limits = make(map[string]limit)
		}
		s.limits[name] = l
		return nil
	}, needs}
}

func compile(re **regexp.Regexp, text string) (err error) {
	*re, err = regexp.Compile(text)
	return err
}

// parseLimit parses "CRITICAL" or "WARNING,CRITICAL".
func parseLimit(text, unit string, way direction) (l limit, err error) {
	if strings.ContainsAny(text, "@~:") {
		return l, fmt.Errorf("%.64q: a range, as other plugins have it: expected CRITICAL or WARNING,CRITICAL; the ends of a range are --min and --max", text)
	}
	warning, critical, both := strings.Cut(text, ",")
	if !both {
		warning, critical = "", text
	}
	l = limit{warns: both, warningText: strings.TrimSpace(warning), text: strings.TrimSpace(critical)}
	if l.critical, err = parseAmount(l.text, unit); err != nil || !both {
		return l, err
	}
	if l.warning, err = parseAmount(l.warningText, unit); err != nil {
		return l, err
	}
	if order := l.warning.compare(l.critical); way == up && order > 0 || way == down && order < 0 {
		return l, fmt.Errorf("%.64q: the first limit warns, so it must be reached before the second", text)
	}
	return l, nil
}

func parseAmount(text, unit string) (number, error) {
	switch unit {
	case seconds:
		d, err := config.ParseDuration(text)
		if err == nil && d < 0 {
			err = fmt.Errorf("%.32q: must not be negative", text)
		}
		return numberOf(d.Seconds()), err
	case size:
		n, err := config.ParseSize(text)
		if err != nil {
			err = fmt.Errorf("%.32q: %w", text, err)
		}
		return numberOf(float64(n)), err
	}
	n, ok := parseNumber(text)
	if !ok {
		return n, fmt.Errorf("%.32q: %s", text, expectedNumber(text))
	}
	return n, nil
}

const day = 24 * time.Hour

const (
	maxChanges = 1000 // per rate, because the times of the changes are kept
	maxWithin  = 7 * day
)

// parseRate parses "CRITICAL/TIME" or "WARNING,CRITICAL/TIME".
func parseRate(text string) (r rate, err error) {
	numbers, within, ok := strings.Cut(text, "/")
	if !ok {
		return r, fmt.Errorf("%.32q: expected a number and a time, such as 5/10m", text)
	}
	if r.within, err = config.ParseDuration(within); err != nil {
		return r, err
	}
	if r.within <= 0 || r.within > maxWithin {
		return r, fmt.Errorf("%.32q: the time must be at most 7d", text)
	}
	l, err := parseLimit(numbers, amount, up)
	if err != nil {
		return r, err
	}
	for _, n := range []float64{l.critical.float, l.warning.float} {
		if n < 0 || n > maxChanges || n != math.Trunc(n) {
			return r, fmt.Errorf("%.32q: expected a whole number of at most %d changes", text, maxChanges)
		}
	}
	r.warning, r.critical = -1, int(l.critical.float)
	if l.warns {
		r.warning = int(l.warning.float)
	}
	return r, nil
}

func (s *spec) set(c condition, text string) error {
	if c.parse != nil {
		if err := c.parse(s, text); err != nil {
			return err
		}
	}
	if s.conditions == nil {
		s.conditions = make(map[string]bool)
	}
	s.conditions[c.name] = true
	s.required |= c.needs
	s.onKeys = s.onKeys || slices.Contains(c.on, aKey)
	return nil
}

// check returns an error if the conditions of a spec do not go together.
func (s *spec) check() error {
	for _, pair := range [][2]string{{"exists", "missing"}, {"held", "free"}, {"equals", "min"}, {"equals", "max"}, {"dataset", "json"}} {
		if s.conditions[pair[0]] && s.conditions[pair[1]] {
			return fmt.Errorf("%s together with %s: use one or the other", pair[0], pair[1])
		}
	}
	for _, pair := range [][2]string{{"min", "max"}, {"min-age", "max-age"}, {"count-min", "count-max"}} {
		least, below := s.limits[pair[0]]
		most, above := s.limits[pair[1]]
		if below && above && least.critical.compare(most.critical) > 0 {
			return fmt.Errorf("%s %s together with %s %s: no number is both", pair[0], least.text, pair[1], most.text)
		}
	}
	if s.kind == aMatch {
		if _, ok := glob.Parse(s.target); !ok {
			return fmt.Errorf("match %.64q: [ without ]", s.target)
		}
	}
	if s.conditions["missing"] && len(s.conditions) > 1 {
		return errors.New("missing: a missing key has no value, so no other condition can hold")
	}
	if s.kind == aBroker && len(s.conditions) == 0 {
		names, _ := targets()
		return fmt.Errorf("nothing to check: expected %s, or a condition on the broker such as rtt", strings.Join(names, ", "))
	}
	return nil
}

// describe returns the name of a check: the given one, or what the check looks at.
func (s *spec) describe() string {
	switch {
	case s.name != "":
		return s.name
	case s.kind == aBroker:
		return aBroker
	case s.kind == aKey:
		return format.Escape(s.target)
	}
	return s.kind + " " + format.Escape(s.target)
}
