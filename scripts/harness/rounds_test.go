package harness

import (
	"errors"
	"slices"
	"testing"
)

// TestRounds takes turns, reverses each round, and returns figures by contender.
func TestRounds(t *testing.T) {
	var order []string
	contender := func(name string, figures ...float64) Contender {
		return Contender{name, func() (float64, error) {
			order = append(order, name)
			f := figures[0]
			figures = figures[1:]
			return f, nil
		}}
	}
	got, err := Rounds(3, contender("a", 30, 10, 20), contender("b", 10, 5, 1))
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"a", "b", "b", "a", "a", "b"}; !slices.Equal(order, want) {
		t.Errorf("order %v, want %v", order, want)
	}
	if want := (Figures{30, 10, 20}); !slices.Equal(got[0], want) {
		t.Errorf("figures %v, want %v", got[0], want)
	}
	if m := got[0].Median(); m != 20 {
		t.Errorf("median %v, want 20", m)
	}
	// The ratios are 3, 2 and 20; the ratio of the medians would be 4.
	if r := got[0].Over(got[1]); r != 3 {
		t.Errorf("median of the ratios %v, want 3", r)
	}
	if m := (Figures{4, 1}).Median(); m != 2.5 {
		t.Errorf("median of two %v, want 2.5", m)
	}
}

func TestRoundsEndsWithTheFirstError(t *testing.T) {
	broken := errors.New("broken")
	ran := false
	_, err := Rounds(2,
		Contender{"a", func() (float64, error) { return 0, broken }},
		Contender{"b", func() (float64, error) { ran = true; return 0, nil }})
	if !errors.Is(err, broken) || ran {
		t.Errorf("%v, and the next contender ran: %v", err, ran)
	}
}
