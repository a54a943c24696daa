//go:build unix

package policy_test

import (
	"syscall"
	"testing"
	"time"
)

// bounded are the shapes of which a task compares each part with each other one, as far as a bound allows: check tries up to
// maxWork pairs of clients and entries, whose answers are as many, and compare asks for each client with its own tokens, or each
// list of client ids, what each entry of the other policy allows to it. A policy of this size does not reach the bounds, so it
// grows by the square.
var bounded = map[string]bool{
	"attributes: compare": true, "connects and topics: compare": true, "client ids and topics: check": true, "client ids and topics: infos": true,
}

// BenchmarkLinear fails unless eight times as large a policy takes about eight times as much of the processor, whatever its
// shape. 64 times would be quadratic. Less than 5 ms counts as 5 ms.
func BenchmarkLinear(b *testing.B) {
	const size, times, most = 50, 8, 24
	used := func(do func()) float64 {
		now := func() int64 {
			var u syscall.Rusage
			if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
				b.Fatal(err)
			}
			return u.Utime.Nano() + u.Stime.Nano()
		}
		began := now()
		do()
		return float64(now() - began)
	}
	large := shapes(times * size)
	for name, text := range shapes(size) {
		many := tasks(b, large[name], times*size)
		for task, do := range tasks(b, text, size) {
			if bounded[name+": "+task] {
				continue
			}
			ratio := 0.0
			for range 5 { // the collector of garbage may take more
				if ratio = used(many[task]) / max(used(do), float64(5*time.Millisecond)); ratio < most {
					break
				}
			}
			if ratio >= most {
				b.Errorf("%s: %s takes %.0f times as much", name, task, ratio)
			}
		}
	}
}
