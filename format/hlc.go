package format

import (
	"math"
	"strconv"
	"strings"
	"time"
)

// Clock is the result of `hlc now` and `hlc parse`.
type Clock struct {
	Op      string  // "now" or "parse"
	Version Version `json:"version"`
}

func (c Clock) fields(o *objectWriter) { o.result("hlc_"+c.Op, c) }

func (c Clock) human(w *writer) {
	switch {
	case c.Version.IsZero():
		w.print("(nil)\n")
	case c.Op == "now":
		w.version(c.Version)
	default:
		w.versionAndAge(c.Version)
		w.printf("wall clock %d ms, counter %d, node %s\n", c.Version.Wall, c.Version.Counter, Quote(c.Version.Node))
	}
}

func (c Clock) raw(w *writer) {
	if c.Version.IsZero() || c.Op == "now" {
		w.record(c.Version)
		return
	}
	v := c.Version
	w.record(v.Wall, strconv.FormatUint(v.Counter, 10), v.Node, v.Time())
}

// Compare is the result of `hlc compare`.
type Compare struct {
	A, B  Version
	Order int // -1 = A is older; 0 = A and B are equal; 1 = A is newer
}

func (c Compare) fields(o *objectWriter) {
	o.add("op", "hlc_compare")
	o.add("a", c.A)
	o.add("b", c.B)
	o.add("order", c.Order)
	if ms, ok := c.wallDifference(); ok {
		o.add("wall_difference_ms", ms)
	}
}

// wallDifference returns by how many milliseconds the wall clock of A is ahead of that of B. ok is false if
// there is no A or no B, or if the number does not fit.
func (c Compare) wallDifference() (ms int64, ok bool) {
	if c.A.IsZero() || c.B.IsZero() {
		return 0, false
	}
	ms = c.A.Wall - c.B.Wall
	return ms, (ms < 0) == (c.A.Wall < c.B.Wall)
}

func (c Compare) human(w *writer) {
	than := [...]string{"older than", "the same as", "newer than"}[c.Order+1]
	w.printf("%s is %s %s\n", versionText(c.A, "nothing"), than, versionText(c.B, "nothing"))
	const most = math.MaxInt64 / int64(time.Millisecond) // of a Duration
	switch ms, ok := c.wallDifference(); {
	case !ok:
	case ms == 0:
		w.print("the wall clocks are the same\n")
	case -most <= ms && ms <= most:
		w.printf("the wall clocks differ by %v\n", (time.Duration(ms) * time.Millisecond).Abs())
	default:
		w.printf("the wall clocks differ by %s ms\n", strings.TrimPrefix(strconv.FormatInt(ms, 10), "-"))
	}
}

func (c Compare) raw(w *writer) { w.record(c.Order) }
