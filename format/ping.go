package format

import (
	"fmt"
	"time"
)

// Ping is one round trip of `ping`.
type Ping struct {
	Seq  int           `json:"seq"`
	Key  string        `json:"key"`
	RTT  time.Duration `json:"rtt_ms,omitzero"` // 0 = no reply; Note says why
	Note string        `json:"note,omitzero"`   // empty = none
}

func (p Ping) fields(o *objectWriter) { o.result("ping", p) }

func (p Ping) human(w *writer) {
	w.printf("seq=%d key=%s", p.Seq, Word(p.Key))
	if p.RTT != 0 {
		w.printf(" time=%sms", appendMilliseconds(nil, p.RTT))
	}
	if p.Note != "" {
		w.print("  ", w.warning.Sprint(printable(p.Note)))
	}
	w.print("\n")
}

// raw writes the sequence number, the time in milliseconds and, if there is one, the note.
func (p Ping) raw(w *writer) {
	if p.Note == "" {
		w.record(p.Seq, p.RTT)
	} else {
		w.record(p.Seq, p.RTT, p.Note)
	}
}

// PingSummary ends the output of `ping`.
type PingSummary struct {
	Sent int           `json:"sent"`
	Lost int           `json:"lost"`
	Min  time.Duration `json:"min_ms,omitzero"` // over the pings that got a reply, like the next three fields
	Avg  time.Duration `json:"avg_ms,omitzero"`
	P99  time.Duration `json:"p99_ms,omitzero"`
	Max  time.Duration `json:"max_ms,omitzero"`
}

func (p PingSummary) fields(o *objectWriter) { o.result("ping_summary", p) }

func (p PingSummary) human(w *writer) {
	lost := fmt.Sprintf("%d lost", p.Lost)
	if p.Lost > 0 {
		lost = w.warning.Sprint(lost)
	}
	w.printf("%d sent, %d answered, %s\n", p.Sent, p.Sent-p.Lost, lost)
	if p.Lost < p.Sent {
		ms := func(d time.Duration) []byte { return appendMilliseconds(nil, d) }
		w.printf("min/avg/p99/max %s/%s/%s/%s ms\n", ms(p.Min), ms(p.Avg), ms(p.P99), ms(p.Max))
	}
}

// raw writes the word summary first, so that programs can tell this line from a Ping, which begins with
// a number.
func (p PingSummary) raw(w *writer) { w.record("summary", p.Sent, p.Lost, p.Min, p.Avg, p.P99, p.Max) }
