package format

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// BatchSummary is what became of the lines of a batch, for standard error. The
// counts are of lines; together they are those that ran.
type BatchSummary struct {
	Applied int // done, yes
	No      int
	Refused int // by the store, by the broker, or because they make no sense
	Unknown int // sent, and nobody can say what became of them
	Skipped int // with nothing to load
	Elapsed time.Duration

	// Resume is the line to go on from when the batch ended before its input did, or
	// 0. Ahead are the lines behind it that have had their results all the same.
	Resume int
	Ahead  []LineRange
}

// A LineRange is the lines from First to Last.
type LineRange struct{ First, Last int }

func (r LineRange) String() string {
	if r.First == r.Last {
		return strconv.Itoa(r.First)
	}
	return fmt.Sprintf("%d-%d", r.First, r.Last)
}

func (s BatchSummary) lines() int { return s.Applied + s.No + s.Refused + s.Unknown + s.Skipped }

// rate is in lines a second.
func (s BatchSummary) rate() int64 {
	if s.Elapsed <= 0 {
		return 0
	}
	return int64(float64(s.lines())/s.Elapsed.Seconds() + 0.5)
}

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

func (s BatchSummary) text(dst []byte, prefix string) []byte {
	dst = fmt.Appendf(append(dst, prefix...), " %s: %d applied, %d no, %d refused, %d unknown",
		plural(s.lines(), "line"), s.Applied, s.No, s.Refused, s.Unknown)
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

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
