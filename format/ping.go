package format

import (
	"fmt"
	"time"
)

// Ping is one round trip of `ping`.
type Ping struct {
	Seq  int           `json:"seq"`
	Key  string        `json:"key"`
	RTT  time.Duration `json:"rtt_ms,omitzero"` // 0: no answer, and Note says why
	Note string        `json:"note,omitzero"`   // empty: none
}

func (p Ping) fields(o *objectWriter) { o.result("ping", p) }

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
	if p.Note == "" {
		return appendRecord(dst, p.Seq, p.RTT)
	}
	return appendRecord(dst, p.Seq, p.RTT, p.Note)
}

// PingSummary ends the output of `ping`.
type PingSummary struct {
	Sent int           `json:"sent"`
	Lost int           `json:"lost"`
	Min  time.Duration `json:"min_ms,omitzero"` // of the answered pings, like the next three fields
	Avg  time.Duration `json:"avg_ms,omitzero"`
	P99  time.Duration `json:"p99_ms,omitzero"`
	Max  time.Duration `json:"max_ms,omitzero"`
}

func (p PingSummary) fields(o *objectWriter) { o.result("ping_summary", p) }

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
	for i, d := range []time.Duration{p.Min, p.Avg, p.P99, p.Max} {
		if i > 0 {
			dst = append(dst, '/')
		}
		dst = appendMilliseconds(dst, d)
	}
	return append(dst, " ms\n"...)
}

// raw begins with a word, whereas a Ping begins with a number.
func (p PingSummary) raw(dst []byte) []byte {
	return appendRecord(dst, "summary", p.Sent, p.Lost, p.Min, p.Avg, p.P99, p.Max)
}
