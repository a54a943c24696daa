package format

import (
	"strconv"
	"time"
)

// Bench is a result of `bench`, for one verb or for all.
type Bench struct {
	Verb    string        `json:"verb"`   // get, set, del, or all
	Count   int64         `json:"count"`  // successful requests
	Errors  int64         `json:"errors"` // requests with an error, or without a reply
	Elapsed time.Duration `json:"elapsed_ms"`
	Latency Latency
}

// Latency holds statistics about the durations of the successful requests.
type Latency struct {
	Min  time.Duration `json:"min_ms,omitzero"`
	Mean time.Duration `json:"mean_ms,omitzero"`
	P50  time.Duration `json:"p50_ms,omitzero"`
	P90  time.Duration `json:"p90_ms,omitzero"`
	P99  time.Duration `json:"p99_ms,omitzero"`
	P999 time.Duration `json:"p99_9_ms,omitzero"`
	Max  time.Duration `json:"max_ms,omitzero"`
}

func (l Latency) all() [7]time.Duration {
	return [...]time.Duration{l.Min, l.Mean, l.P50, l.P90, l.P99, l.P999, l.Max}
}

// latencies returns names for the values that Latency.all returns, in the same order.
func latencies() [7]string { return [...]string{"min", "mean", "p50", "p90", "p99", "p99.9", "max"} }

func (b Bench) perSecond() float64 {
	if b.Elapsed <= 0 {
		return 0
	}
	return float64(b.Count) / b.Elapsed.Seconds()
}

func (b Bench) fields(o *objectWriter) {
	o.result("bench", b)
	o.add("per_second", float64(int64(b.perSecond()*10))/10)
	o.structure(b.Latency)
}

func (b Bench) human(w *writer) {
	w.print(w.key.Sprintf("%-4s", b.Verb))
	w.printf("  %d in %v, %.0f/s", b.Count, b.Elapsed.Round(time.Millisecond), b.perSecond())
	if b.Errors > 0 {
		w.print(", ", w.fail.Sprintf("%d failed", b.Errors))
	}
	if b.Count > 0 {
		w.print("\n     ")
		for i, d := range b.Latency.all() {
			w.printf(" %s %.3f", latencies()[i], float64(d)/float64(time.Millisecond))
		}
		w.print(" ms")
	}
	w.print("\n")
}

// raw writes the verb, the numbers of successful and failed requests, the successful requests per
// second, and the latencies in milliseconds.
func (b Bench) raw(w *writer) {
	l := b.Latency
	w.record(b.Verb, b.Count, b.Errors, strconv.FormatFloat(b.perSecond(), 'f', 1, 64), l.Min, l.Mean, l.P50, l.P90, l.P99, l.P999, l.Max)
}
