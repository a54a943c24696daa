package format

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// BatchSummary counts the lines of a batch by outcome, for standard error. The sum of Applied,
// No, Refused, Unknown and Skipped is the number of lines that the batch handled.
type BatchSummary struct {
	Applied int // done, with a positive reply
	No      int // done, with a negative reply, such as "the key exists"
	Refused int // invalid, or refused by the store or the broker
	Unknown int // sent, but the outcome is unknown
	Skipped int // contained nothing to load
	Newer   int // the lines in Applied that replaced a newer value; only for an import
	Elapsed time.Duration

	// Resume is the line to continue from if the batch stopped before the end of its input,
	// else 0. Ahead holds the later lines that have already run without an error. NotRun is the number of
	// later lines that were not run; More means that there may be more of them.
	Resume int
	Ahead  []LineRange
	NotRun int
	More   bool
}

// A LineRange is the range of lines from First to Last, inclusive.
type LineRange struct{ First, Last int }

func (r LineRange) String() string {
	if r.First == r.Last {
		return strconv.Itoa(r.First)
	}
	return fmt.Sprintf("%d-%d", r.First, r.Last)
}

func (s BatchSummary) lines() int { return s.Applied + s.No + s.Refused + s.Unknown + s.Skipped }

// rate returns the lines per second, rounded.
func (s BatchSummary) rate() int64 { return perSecond(s.lines(), s.Elapsed) }

func (s BatchSummary) fields(o *objectWriter) {
	s.write(o, "batch", "no")
	o.add("not_run", when(s.Resume > 0, s.NotRun))
	o.add("more", when(s.More, true))
}

// write adds the fields to o. op is the value of the field op; no is the name of the field that
// holds s.No.
func (s BatchSummary) write(o *objectWriter, op, no string) {
	ahead := make(list, len(s.Ahead))
	for i, r := range s.Ahead {
		ahead[i] = list{r.First, r.Last}
	}
	o.add("op", op)
	o.add("lines", s.lines())
	o.add("applied", s.Applied)
	o.add(no, s.No)
	o.add("refused", s.Refused)
	o.add("unknown", s.Unknown)
	o.add("skipped", when(s.Skipped > 0, s.Skipped))
	o.add("elapsed_ms", s.Elapsed)
	o.add("rate", s.rate())
	o.add("resume_line", when(s.Resume > 0, s.Resume))
	o.add("ahead", when(len(ahead) > 0, ahead))
}

func (BatchSummary) diagnostic() {}

// notRun returns a text about the later lines that were not run; empty if there are none.
func (s BatchSummary) notRun() string {
	more := ""
	switch {
	case s.NotRun == 0 && !s.More:
		return ""
	case s.NotRun == 0:
		return ", later lines may follow"
	case s.More:
		more = "at least "
	}
	were := "were"
	if s.NotRun == 1 {
		were = "was"
	}
	return fmt.Sprintf(", %s%s %s not run", more, Count(s.NotRun, "later line"), were)
}

func (s BatchSummary) human(w *writer) {
	w.program("%s: %d applied, %d no, %d refused, %d unknown", Count(s.lines(), "line"), s.Applied, s.No, s.Refused, s.Unknown)
	w.counts(count{s.Skipped, "skipped"})
	w.printf("; %s, %d/s\n", seconds(s.Elapsed), s.rate())
	if s.Resume == 0 {
		return
	}
	w.program("stopped early%s; continue with --from-line %d\n", s.notRun(), s.Resume)
	if len(s.Ahead) > 0 {
		ranges := make([]string, len(s.Ahead))
		for i, r := range s.Ahead {
			ranges[i] = r.String()
		}
		w.program("these later lines have run already, and will run again: %s\n", strings.Join(ranges, ", "))
	}
}

// A count is a number of keys or lines, and what happened to them.
type count struct {
	n    int
	what string
}

// counts writes each count that is not 0, after a comma.
func (w *writer) counts(counts ...count) {
	for _, c := range counts {
		if c.n > 0 {
			w.printf(", %d %s", c.n, c.what)
		}
	}
}

// List joins names in words: List([]string{"a", "b", "c"}, "or") returns "a, b or c".
func List(names []string, last string) string {
	n := len(names) - 1
	if n < 1 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:n], ", ") + " " + last + " " + names[n]
}

// Count returns n and the noun, with an s added unless n is 1.
func Count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
