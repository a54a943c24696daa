package bench

import (
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/sscli/sscli/format"
)

// A measurement holds the latencies of successful requests, and counts the failed ones.
type measurement struct {
	mu      sync.Mutex
	latency *hdrhistogram.Histogram // microseconds
	errors  int64
}

// maxLatency is the highest latency that a measurement records. Higher latencies count as maxLatency.
const maxLatency = time.Hour

func newMeasurement() *measurement {
	return &measurement{latency: hdrhistogram.New(1, maxLatency.Microseconds(), 3)}
}

func (m *measurement) add(took time.Duration, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err != nil {
		m.errors++
		return
	}
	_ = m.latency.RecordValue(min(max(took, time.Microsecond), maxLatency).Microseconds()) // the value is in range
}

func (m *measurement) result(verb string, elapsed time.Duration) format.Bench {
	r := format.Bench{Verb: verb, Count: m.latency.TotalCount(), Errors: m.errors, Elapsed: elapsed}
	if r.Count == 0 {
		return r
	}
	us := func(n int64) time.Duration { return time.Duration(n) * time.Microsecond }
	r.Latency = format.Latency{
		Min:  us(m.latency.Min()),
		Mean: time.Duration(m.latency.Mean() * float64(time.Microsecond)),
		P50:  us(m.latency.ValueAtQuantile(50)),
		P90:  us(m.latency.ValueAtQuantile(90)),
		P99:  us(m.latency.ValueAtQuantile(99)),
		P999: us(m.latency.ValueAtQuantile(99.9)),
		Max:  us(m.latency.Max()),
	}
	return r
}
