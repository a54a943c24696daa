// Package ahead lets the producer of a sequence and its consumer work at the same time.
package ahead

import (
	"context"
	"iter"
	"sync"
)

// Seq returns the elements of a sequence, which runs in its own goroutine: while the caller handles
// size elements, the sequence prepares the next size elements. When the caller leaves the loop, the
// context of the sequence ends, and the loop waits until the sequence has ended too.
func Seq[V any](ctx context.Context, size int, seq func(context.Context) iter.Seq2[V, error]) iter.Seq2[V, error] {
	type element struct {
		value V
		err   error
	}
	return func(yield func(V, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		ready, left := make(chan []element), make(chan struct{})
		var producer sync.WaitGroup
		producer.Go(func() {
			defer close(ready)
			var batch, spare []element
			send := func() bool {
				select {
				case ready <- batch: // the caller asked for it, so it no longer uses spare
					batch, spare = spare[:0], batch
					return true
				case <-left:
					return false
				}
			}
			for value, err := range seq(ctx) {
				batch = append(batch, element{value, err})
				if len(batch) == size && !send() {
					return
				}
			}
			send()
		})
		defer producer.Wait()
		defer close(left)
		defer cancel()
		for batch := range ready {
			for _, e := range batch {
				if !yield(e.value, e.err) {
					return
				}
			}
		}
	}
}
