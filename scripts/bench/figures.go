//go:build linux

package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/sscli/sscli/scripts/harness"
)

// A contender is one of the programs that are compared.
type contender struct {
	name    string
	measure func() float64
}

// figures are what one contender measured, in the order of the rounds.
type figures []float64

// rounds measures each contender once in each of n rounds, and prints the range of its figures.
// Every round reverses the order of the previous round, so that two contenders take turns in being
// first. The figures are in the order of contenders.
func rounds(ctx context.Context, n int, contenders ...contender) []figures {
	all := make([]figures, len(contenders))
	order := make([]int, len(contenders))
	for i := range order {
		order[i] = i
	}
	for range n {
		for _, i := range order {
			harness.Check(ctx.Err())
			all[i] = append(all[i], contenders[i].measure())
		}
		slices.Reverse(order)
	}
	for i, f := range all {
		fmt.Fprintf(os.Stderr, "  %-10s min %s, median %s, max %s of %d\n", contenders[i].name, figure(slices.Min(f)), figure(f.median()), figure(slices.Max(f)), n)
	}
	return all
}

// median returns the median of the figures. There must be at least one.
func (f figures) median() float64 {
	sorted := slices.Sorted(slices.Values(f))
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// over returns the median of the ratios of f to other, round by round.
func (f figures) over(other figures) float64 {
	ratios := make(figures, len(f))
	for i := range f {
		ratios[i] = f[i] / other[i]
		if f[i] == other[i] {
			ratios[i] = 1 // also if both are 0
		}
	}
	return ratios.median()
}

// figure rounds f to three significant digits, or to an integer if f is at least 100.
func figure(f float64) string {
	if f >= 100 {
		return fmt.Sprintf("%.0f", f)
	}
	return fmt.Sprintf("%.3g", f)
}

// rate calls request repeatedly for the duration long, and returns the number of calls per second.
func rate(long time.Duration, request func()) float64 {
	begin := time.Now()
	n := 0
	for ; time.Since(begin) < long; n++ {
		request()
	}
	return float64(n) / time.Since(begin).Seconds()
}

// worst calls request repeatedly, with a millisecond in between, until done returns true, and
// returns the longest time that it took, in milliseconds.
func worst(done func() bool, request func()) float64 {
	longest := time.Duration(0)
	for !done() {
		begin := time.Now()
		request()
		longest = max(longest, time.Since(begin))
		time.Sleep(time.Millisecond)
	}
	return ms(longest)
}

func ms(d time.Duration) float64 { return d.Seconds() * 1000 }
