package exchange_test

import (
	"context"
	"errors"
	"iter"
	"slices"
	"testing"
	"time"

	"github.com/sscli/sscli/cmd/sscli/internal/exchange"
)

var errLast = errors.New("last")

// counting returns a sequence of the numbers below n, followed by n with an error.
func counting(n int) func(context.Context) iter.Seq2[int, error] {
	return func(context.Context) iter.Seq2[int, error] {
		return func(yield func(int, error) bool) {
			for i := range n {
				if !yield(i, nil) {
					return
				}
			}
			yield(n, errLast)
		}
	}
}

func TestOrder(t *testing.T) {
	t.Parallel()
	for _, size := range []int{1, 2, 3, 100} {
		for n := range 12 {
			var got, want []int
			for i, err := range exchange.Ahead(t.Context(), size, counting(n)) {
				got = append(got, i)
				if (err == errLast) != (i == n) {
					t.Errorf("size %d: element %d of %d has the error %v", size, i, n, err)
				}
			}
			for i := range n + 1 {
				want = append(want, i)
			}
			if !slices.Equal(got, want) {
				t.Errorf("size %d: %v, want %v", size, got, want)
			}
		}
	}
	for range exchange.Ahead(t.Context(), 2, func(context.Context) iter.Seq2[int, error] { return func(func(int, error) bool) {} }) {
		t.Error("an element of an empty sequence")
	}
}

// TestAhead: while the loop handles an element, the sequence prepares the next one.
func TestAhead(t *testing.T) {
	t.Parallel()
	prepared := make(chan int)
	seq := func(ctx context.Context) iter.Seq2[int, error] {
		return func(yield func(int, error) bool) {
			for i := range 3 {
				if i > 0 {
					select {
					case prepared <- i:
					case <-ctx.Done():
						return
					}
				}
				if !yield(i, nil) {
					return
				}
			}
		}
	}
	for i := range exchange.Ahead(t.Context(), 1, seq) {
		if i == 2 {
			break
		}
		select {
		case next := <-prepared:
			if next != i+1 {
				t.Errorf("while element %d is handled, element %d is prepared", i, next)
			}
		case <-time.After(time.Minute):
			t.Fatalf("while element %d is handled, nothing is prepared", i)
		}
	}
}

// TestLeave: leaving the loop ends the context of the sequence, and waits until the sequence has ended.
func TestLeave(t *testing.T) {
	t.Parallel()
	ended := false
	seq := func(ctx context.Context) iter.Seq2[int, error] {
		return func(yield func(int, error) bool) {
			defer func() { ended = true }()
			if yield(1, nil) {
				<-ctx.Done()
				yield(2, context.Cause(ctx))
			}
		}
	}
	for i := range exchange.Ahead(t.Context(), 1, seq) {
		if i != 1 {
			t.Errorf("got %d after the loop was left", i)
		}
		break
	}
	if !ended {
		t.Error("the loop ended before the sequence")
	}
}
