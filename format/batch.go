package format

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// BatchSummary counts the lines of a batch by outcome, for standard error. The sum of the
// counts is the number of lines that ran.
type BatchSummary struct {
	Applied int // done; the answer was yes
	No      int // done; the answer was no
	Refused int // by the store or the broker, or invalid
	Unknown int // sent, with unknown outcome
	Skipped int // nothing to load
	Elapsed time.Duration

	// Resume is the line to continue from if the batch ended before its input, else 0.
	// Ahead are the lines after it that have had their results already.
	Resume int
	Ahead  []LineRange
}

// A LineRange is the lines from First to Last, inclusive.
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

func (s BatchSummary) fields() object {
	ahead := make(list, len(s.Ahead))
	for i, r := range s.Ahead {
		ahead[i] = list{r.First, r.Last}
	}
	return object{
		{"op", "batch"},
		{"lines", s.lines()},
		{"applied", s.Applied},
		{"no", s.No},
		{"refused", s.Refused},
		{"unknown", s.Unknown},
		{"skipped", when(s.Skipped > 0, s.Skipped)},
		{"elapsed_ms", milliseconds(s.Elapsed)},
		{"rate", s.rate()},
		{"resume_line", when(s.Resume > 0, s.Resume)},
		{"ahead", when(len(ahead) > 0, ahead)},
	}
}

func (s BatchSummary) human(dst []byte, st *style) []byte {
	return s.text(dst, st.faint.Sprint("sscli:"))
}

func (s BatchSummary) raw(dst []byte) []byte { return s.text(dst, "sscli:") }

// text is the human and the raw form, which differ in the prefix.
func (s BatchSummary) text(dst []byte, prefix string) []byte {
	dst = fmt.Appendf(append(dst, prefix...), " %s: %d applied, %d no, %d refused, %d unknown",
		Count(s.lines(), "line"), s.Applied, s.No, s.Refused, s.Unknown)
	if s.Skipped > 0 {
		dst = fmt.Appendf(dst, ", %d skipped", s.Skipped)
	}
	dst = fmt.Appendf(dst, "; %ss, %d/s\n", strconv.FormatFloat(s.Elapsed.Seconds(), 'f', 3, 64), s.rate())
	if s.Resume == 0 {
		return dst
	}
	dst = fmt.Appendf(append(dst, prefix...), " ended before its input did: --from-line %d goes on\n", s.Resume)
	if len(s.Ahead) > 0 {
		ranges := make([]string, len(s.Ahead))
		for i, r := range s.Ahead {
			ranges[i] = r.String()
		}
		dst = fmt.Appendf(append(dst, prefix...), " behind it these lines have had their results and run again then: %s\n", strings.Join(ranges, ", "))
	}
	return dst
}

// Count is a number and a noun, which gets an s unless the number is 1.
func Count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
