// Package goal is what the benchmarks have in common: each compares programs in rounds
// with a goal, says whether it is met, and ends with 1 if one is missed.
package goal

import (
	"context"
	"fmt"
	"os"
	"slices"
	"time"
)

// Goals remembers whether one was missed.
type Goals struct{ missed bool }

// Verdict prints a result and whether it meets its goal.
func (g *Goals) Verdict(met bool, form string, args ...any) {
	word := "met"
	if !met {
		word, g.missed = "MISSED", true
	}
	fmt.Printf("  %s: %s\n\n", fmt.Sprintf(form, args...), word)
}

// Miss notes that a goal was missed which prints nothing of its own.
func (g *Goals) Miss() { g.missed = true }

// MedianRatio is the median of the ratios of a to b, round by round.
func MedianRatio(a, b []float64) float64 {
	ratios := make([]float64, len(a))
	for i := range a {
		ratios[i] = a[i] / b[i]
	}
	return Median(ratios)
}

// Median is that of one value or more, which it sorts.
func Median(values []float64) float64 {
	slices.Sort(values)
	n := len(values)
	return (values[(n-1)/2] + values[n/2]) / 2
}

// Main runs a benchmark for limit at most and ends the process: with 2 if it could not
// be run, with 1 if it missed a goal.
func (g *Goals) Main(limit time.Duration, run func(context.Context) error) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	err := run(ctx)
	cancel()
	switch {
	case err != nil:
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(2)
	case g.missed:
		os.Exit(1)
	}
}
