package check

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
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

	// At most one of these is set. If none is, the check is about the broker.
	key, lock, match string

	conditions map[string]bool // the names of the conditions that are set, see conditions

	valueMatches, holder *regexp.Regexp
	field                jsonfield.Path
	equals               string
	limits               map[string]limit
	changes              rate
}

// A label is added to every series of a check.
type label struct{ name, value string }

// The kinds of what a check looks at.
const (
	aKey    = "key"
	aLock   = "lock"
	aMatch  = "match"
	aBroker = "broker"
)

func (s *spec) kind() string {
	switch {
	case s.key != "":
		return aKey
	case s.lock != "":
		return aLock
	case s.match != "":
		return aMatch
	}
	return aBroker
}

// target returns the key that a check reads, or "".
func (s *spec) target() string { return s.key + s.lock }

// A limit has a value from which a check warns and one from which it is critical.
type limit struct {
	warning, critical float64 // in seconds, bytes or a number; warning is NaN if there is none
	warningText, text string  // as the user wrote them
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
}

// conditions returns all conditions, in the order of help.
func conditions() []condition {
	keys, locks := []string{aKey}, []string{aLock}
	both := []string{aKey, aLock}
	return []condition{
		{"exists", "", "the key exists (the default)", keys, nil},
		{"missing", "", "the key does not exist", keys, nil},
		limitOf("max-age", "AGE", "the last write is at most `AGE` ago", seconds, up, keys...),
		limitOf("min-age", "AGE", "the last write is at least `AGE` ago", seconds, down, keys...),
		limitOf("max-size", "SIZE", "the value has at most `SIZE` bytes", size, up, keys...),
		{"value-matches", "RE", "the value matches the regular expression `RE`", keys, func(s *spec, text string) error { return compile(&s.valueMatches, text) }},
		{"json", "FIELD", "the value is JSON and has `FIELD`, to which min, max and equals apply", keys, func(s *spec, text string) (err error) {
			if !strings.HasPrefix(text, ".") {
				text = "." + text
			}
			s.field, err = jsonfield.ParsePath(text)
			return err
		}},
		limitOf("min", "N", "the value, or the field of json, is at least `N`", number, down, keys...),
		limitOf("max", "N", "the value, or the field of json, is at most `N`", number, up, keys...),
		{"equals", "VALUE", "the value, or the field of json, is `VALUE`", keys, func(s *spec, text string) error {
			s.equals = text
			return nil
		}},
		{"dataset", "", "the value is a data set", keys, nil},
		{"value", "", "show the value, and export it if it is a number", keys, nil},
		{"held", "", "the lock is held", locks, nil},
		{"free", "", "the lock is free", locks, nil},
		limitOf("held-max", "TIME", "the same holder has the lock for at most `TIME`", seconds, up, locks...),
		{"holder", "RE", "the holder matches the regular expression `RE`", locks, func(s *spec, text string) error { return compile(&s.holder, text) }},
		{"changes-max", "N/TIME", "at most `N/TIME` changes: of the value, or of the lock's holder", both, func(s *spec, text string) (err error) {
			s.changes, err = parseRate(text)
			return err
		}},
		limitOf("fence-ahead", "TIME", "the version, a lock's fencing token, is at most `TIME` ahead of this machine's clock", seconds, up, both...),
		limitOf("count-min", "N", "at least `N` keys match", number, down, aMatch),
		limitOf("count-max", "N", "at most `N` keys match", number, up, aMatch),
		limitOf("rtt", "TIME", "a round trip to the store takes at most `TIME`", seconds, up, aBroker),
		limitOf("skew", "TIME", "this machine's clock and the store's differ by at most `TIME`", seconds, up, aBroker),
		limitOf("cert-expires", "TIME", "the certificates are valid for at least `TIME`", seconds, down, aBroker),
		limitOf("token-expires", "TIME", "the service-account token is valid for at least `TIME`", seconds, down, aBroker),
	}
}

// The units of limits.
const (
	seconds = "s"
	size    = "B"
	number  = ""
)

// A direction is where a limit lies.
type direction int

// The directions of limits.
const (
	up   direction = iota // a larger value is worse
	down                  // a smaller value is worse
)

func limitOf(name, value, usage, unit string, way direction, on ...string) condition {
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
	}}
}

func compile(re **regexp.Regexp, text string) (err error) {
	*re, err = regexp.Compile(text)
	return err
}

// parseLimit parses "CRITICAL" or "WARNING,CRITICAL".
func parseLimit(text, unit string, way direction) (l limit, err error) {
	warning, critical, both := strings.Cut(text, ",")
	l = limit{warning: math.NaN(), warningText: strings.TrimSpace(warning), text: strings.TrimSpace(critical)}
	if !both {
		l.warningText, l.text = "", strings.TrimSpace(text)
	}
	if l.critical, err = parseAmount(l.text, unit); err != nil {
		return l, err
	}
	if both {
		if l.warning, err = parseAmount(l.warningText, unit); err != nil {
			return l, err
		}
	}
	if way == up && l.warning > l.critical || way == down && l.warning < l.critical {
		return l, fmt.Errorf("%.64q: the first limit warns, so it must be reached before the second", text)
	}
	return l, nil
}

func parseAmount(text, unit string) (float64, error) {
	switch unit {
	case seconds:
		d, err := parseTime(text)
		if err == nil && d < 0 {
			err = fmt.Errorf("%.32q: must not be negative", text)
		}
		return d.Seconds(), err
	case size:
		n, err := config.ParseSize(text)
		if err != nil {
			err = fmt.Errorf("%.32q: %w", text, err)
		}
		return float64(n), err
	}
	n, ok := parseNumber(text)
	if !ok {
		return 0, fmt.Errorf("%.32q: expected a number", text)
	}
	return n, nil
}

const day = 24 * time.Hour

// parseTime is config.ParseDuration, which also takes days, such as 14d.
func parseTime(text string) (time.Duration, error) {
	if days, ok := strings.CutSuffix(text, "d"); ok {
		n, err := strconv.ParseUint(days, 10, 16)
		if err != nil {
			return 0, fmt.Errorf("%.32q: expected days such as 14d", text)
		}
		return time.Duration(n) * day, nil
	}
	return config.ParseDuration(text)
}

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
	if r.within, err = parseTime(within); err != nil {
		return r, err
	}
	if r.within <= 0 || r.within > maxWithin {
		return r, fmt.Errorf("%.32q: the time must be at most 7d", text)
	}
	l, err := parseLimit(numbers, number, up)
	if err != nil {
		return r, err
	}
	if l.critical < 0 || l.critical > maxChanges || l.critical != math.Trunc(l.critical) || l.warning < 0 || l.warning != math.Trunc(l.warning) && !math.IsNaN(l.warning) {
		return r, fmt.Errorf("%.32q: expected a whole number of at most %d changes", text, maxChanges)
	}
	r.warning, r.critical = -1, int(l.critical)
	if !math.IsNaN(l.warning) {
		r.warning = int(l.warning)
	}
	return r, nil
}

// set sets a condition.
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
		if below && above && least.critical > most.critical {
			return fmt.Errorf("%s %s together with %s %s: no number is both", pair[0], least.text, pair[1], most.text)
		}
	}
	if _, ok := glob.Parse(s.match); !ok {
		return fmt.Errorf("match %.64q: [ without ]", s.match)
	}
	if s.conditions["missing"] && s.kind() == aKey && len(s.conditions) > 1 {
		return errors.New("missing: a missing key has no value, so no other condition can hold")
	}
	if s.kind() == aBroker && len(s.conditions) == 0 {
		return errors.New("nothing to check: expected key, lock or match, or a condition on the broker such as rtt")
	}
	return nil
}

// describe returns the name of a check: the given one, or what the check looks at.
func (s *spec) describe() string {
	switch {
	case s.name != "":
		return s.name
	case s.lock != "":
		return "lock " + format.Escape(s.lock)
	case s.match != "":
		return "match " + format.Escape(s.match)
	case s.key != "":
		return format.Escape(s.key)
	}
	return aBroker
}

// needsHistory returns a condition that a single look cannot decide, or "".
func (s *spec) needsHistory() string {
	for _, name := range []string{"held-max", "changes-max"} {
		if s.conditions[name] {
			return name
		}
	}
	return ""
}

// needsClock reports whether a check depends on the store's clock. metrics is set if the series of the check
// are wanted: they have its age.
func (s *spec) needsClock(metrics bool) bool {
	return s.wantsAge() || s.conditions["held-max"] || s.conditions["skew"] || metrics && s.target() != ""
}

// wantsAge reports whether the verdict depends on the age.
func (s *spec) wantsAge() bool { return s.conditions["max-age"] || s.conditions["min-age"] }
