package exchange

import (
	"context"
	"iter"
	"sync"
)

// Ahead returns a sequence with the elements of seq, which runs in its own goroutine. The caller gets
// the elements in batches of size: while it handles a batch, seq prepares the next one. When the
// caller leaves its loop, Ahead cancels the context that it passed to seq, and waits until seq has
// ended.
func Ahead[V any](ctx context.Context, size int, seq func(context.Context) iter.Seq2[V, error]) iter.Seq2[V, error] {
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
				case ready <- batch: // the caller has taken batch, so it no longer uses spare
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
