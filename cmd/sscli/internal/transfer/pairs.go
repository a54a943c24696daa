package transfer

import (
	"context"
	"io"
	"iter"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/cmd/sscli/internal/bulkread"
	"github.com/sscli/sscli/cmd/sscli/internal/verb"
)

// A side is what one of the two compared stores has of a key. The other store is read for the
// same key.
type side struct {
	key     string
	here    bool
	value   []byte
	version client.Version
	line    int   // of a file
	store   bool  // it was listed by a store
	err     error // why it could not be read
}

// A pair is a key on both sides.
type pair struct {
	key string
	old side
	now bulkread.Entry
}

// pairs reads a store for the keys of a side.
type pairs struct {
	r      *bulkread.Reader
	olds   chan side // whose keys r has been given
	cancel context.CancelFunc
	name   func(error) error // names the store in an error of reading it; nil: not
}

// compare reads a store for each key of the old side. The order is that of the old side.
func compare(ctx context.Context, s *client.Session, old iter.Seq2[side, error], o bulkread.Options) *pairs {
	ctx, cancel := context.WithCancel(ctx)
	p := &pairs{olds: make(chan side, 2*bulkread.Window), cancel: cancel}
	p.r = bulkread.Read(ctx, s, bulkread.Of(func(yield func(string, error) bool) {
		for side, err := range old {
			if err != nil {
				yield("", err)
				return
			}
			// Before the key, so that next finds it.
			select {
			case p.olds <- side:
			case <-ctx.Done():
				return
			}
			if !yield(side.key, nil) {
				return
			}
		}
	}), o)
	return p
}

// next returns the next pair, and io.EOF after the last. The error names the key that it is
// about.
func (p *pairs) next() (pair, error) {
	now, err := p.r.Next()
	if err == io.EOF {
		return pair{}, err
	}
	if err != nil && now.Key != "" && p.name != nil {
		return pair{}, p.name(verb.ReadError(now, err))
	}
	if err != nil {
		return pair{}, verb.ReadError(now, err)
	}
	old := <-p.olds
	return pair{key: old.key, old: old, now: now}, nil
}

func (p *pairs) close() {
	p.cancel()
	p.r.Close()
}
