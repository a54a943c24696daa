package bench

import (
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/sscli/sscli/format"
)

// A measurement holds the latencies and errors of the requests with one verb.
type measurement struct {
	mu      sync.Mutex
	latency *hdrhistogram.Histogram // microseconds
	errors  int64
}

// longestLatency is the upper bound of a histogram. Longer latencies count as this.
const longestLatency = time.Hour

// newMeasurement returns an empty measurement.
func newMeasurement() *measurement {
	return &measurement{latency: hdrhistogram.New(1, longestLatency.Microseconds(), 3)}
}

// add counts a request.
func (t *measurement) add(took time.Duration, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err != nil {
		t.errors++
		return
	}
	// The value is within the range, so there is no error.
	_ = t.latency.RecordValue(min(max(took, time.Microsecond), longestLatency).Microseconds())
}

// result returns the measurement as it is printed.
func (t *measurement) result(verb string, elapsed time.Duration) format.Bench {
	r := format.Bench{Verb: verb, Count: t.latency.TotalCount(), Errors: t.errors, Elapsed: elapsed}
	if r.Count == 0 {
		return r
	}
	us := func(n int64) time.Duration { return time.Duration(n) * time.Microsecond }
	r.Latency = format.Latency{
		Min:  us(t.latency.Min()),
		Mean: time.Duration(t.latency.Mean() * float64(time.Microsecond)),
		P50:  us(t.latency.ValueAtQuantile(50)),
		P90:  us(t.latency.ValueAtQuantile(90)),
		P99:  us(t.latency.ValueAtQuantile(99)),
		P999: us(t.latency.ValueAtQuantile(99.9)),
		Max:  us(t.latency.Max()),
	}
	return r
}
