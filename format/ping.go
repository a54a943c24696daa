package format

import (
	"fmt"
	"strconv"
	"time"
)

// Ping is one round trip of `ping`.
type Ping struct {
	Seq  int
	Key  string
	RTT  time.Duration // 0: no answer, and Note says why
	Note string        // empty: none
}

func (p Ping) fields() object {
	return object{
		{"op", "ping"},
		{"seq", p.Seq},
		{"key", p.Key},
		{"rtt_ms", rtt(p.RTT)},
		{"note", nonEmpty(p.Note)},
	}
}

func (p Ping) human(dst []byte, s *style) []byte {
	dst = fmt.Appendf(dst, "seq=%d key=%s", p.Seq, Word(p.Key))
	if p.RTT != 0 {
		dst = append(appendMilliseconds(append(dst, " time="...), p.RTT), "ms"...)
	}
	if p.Note != "" {
		dst = append(append(dst, "  "...), s.warning.Sprint(string(appendText(nil, p.Note)))...)
	}
	return append(dst, '\n')
}

// raw writes SEQ, the time in milliseconds and, if there is one, the note.
func (p Ping) raw(dst []byte) []byte {
	dst = append(strconv.AppendInt(dst, int64(p.Seq), 10), '\t')
	dst = appendMilliseconds(dst, p.RTT)
	if p.Note != "" {
		dst = AppendEscape(append(dst, '\t'), p.Note)
	}
	return append(dst, '\n')
}

// PingSummary ends the output of `ping`.
type PingSummary struct {
	Sent, Lost         int
	Min, Avg, P99, Max time.Duration // of the answered ones
}

func (p PingSummary) fields() object {
	return object{
		{"op", "ping_summary"},
		{"sent", p.Sent},
		{"lost", p.Lost},
		{"min_ms", rtt(p.Min)},
		{"avg_ms", rtt(p.Avg)},
		{"p99_ms", rtt(p.P99)},
		{"max_ms", rtt(p.Max)},
	}
}

func (p PingSummary) human(dst []byte, s *style) []byte {
	lost := fmt.Sprintf("%d lost", p.Lost)
	if p.Lost > 0 {
		lost = s.warning.Sprint(lost)
	}
	dst = fmt.Appendf(dst, "%d sent, %d answered, %s\n", p.Sent, p.Sent-p.Lost, lost)
	if p.Lost >= p.Sent {
		return dst
	}
	dst = append(dst, "min/avg/p99/max "...)
	for i, d := range p.durations() {
		if i > 0 {
			dst = append(dst, '/')
		}
		dst = appendMilliseconds(dst, d)
	}
	return append(dst, " ms\n"...)
}

// raw begins with a word, which sets it apart from a Ping's number.
func (p PingSummary) raw(dst []byte) []byte {
	dst = fmt.Appendf(dst, "summary\t%d\t%d", p.Sent, p.Lost)
	for _, d := range p.durations() {
		dst = appendMilliseconds(append(dst, '\t'), d)
	}
	return append(dst, '\n')
}

func (p PingSummary) durations() [4]time.Duration {
	return [...]time.Duration{p.Min, p.Avg, p.P99, p.Max}
}

// appendMilliseconds appends a time, or - if d is 0: not measured.
func appendMilliseconds(dst []byte, d time.Duration) []byte {
	if d == 0 {
		return append(dst, '-')
	}
	return strconv.AppendFloat(dst, milliseconds(d), 'f', -1, 64)
}
