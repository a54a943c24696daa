package harness

import (
	"fmt"
	"slices"
	"time"
)

// A Contender is one of the programs or clients that a benchmark compares.
type Contender struct {
	Name    string
	Measure func() (float64, error)
}

// Figures are what one contender measured, in the order of the rounds.
type Figures []float64

// Rounds measures each contender once in each of n rounds. Every round reverses the order of the
// previous round, so that two contenders take turns in being first. The figures are in the order
// of contenders.
func Rounds(n int, contenders ...Contender) ([]Figures, error) {
	figures := make([]Figures, len(contenders))
	order := make([]int, len(contenders))
	for i := range order {
		order[i] = i
	}
	for range n {
		for _, i := range order {
			figure, err := contenders[i].Measure()
			if err != nil {
				return nil, fmt.Errorf("%s: %w", contenders[i].Name, err)
			}
			figures[i] = append(figures[i], figure)
		}
		slices.Reverse(order)
	}
	return figures, nil
}

// Median returns the median of the figures. There must be at least one.
func (f Figures) Median() float64 {
	sorted := slices.Sorted(slices.Values(f))
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// Over returns the median of the ratios of f to other, round by round.
func (f Figures) Over(other Figures) float64 {
	ratios := make(Figures, len(f))
	for i := range f {
		ratios[i] = f[i] / other[i]
	}
	return ratios.Median()
}

// Rate calls request repeatedly for the duration long, and returns the number of calls per second.
func Rate(long time.Duration, request func() error) (float64, error) {
	begin := time.Now()
	n := 0
	for ; time.Since(begin) < long; n++ {
		if err := request(); err != nil {
			return 0, err
		}
	}
	return float64(n) / time.Since(begin).Seconds(), nil
}
