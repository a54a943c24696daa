package client

import (
	"bytes"
	"context"
	"errors"
	"iter"

	"github.com/sscli/sscli/client/wire"
)

// Scan asks for a page of the keys that match a pattern, the first one with a nil
// token (protocol.md 9). [Reply.Page] has the keys and the token of the next page.
// Not every broker knows SCAN: one that does not answers with a
// *[wire.StoreError] of the kind wire.ErrorUnknownCommand.
func Scan(pattern string, token []byte) Command {
	c := Command{words: []string{wire.VerbScan, pattern}, accepts: isPage}
	if token != nil {
		c.words = append(c.words, string(token))
	}
	if pattern == "" {
		c.err = &InvalidError{errEmptyPattern}
	}
	return c
}

var errEmptyPattern = errors.New("the pattern is empty, * is that of all keys")

// Page returns what Scan found: keys, of which there may be none on any page, and
// the token of the next page, nil behind the last. The token is any bytes, and
// stays good when its request gets no answer.
func (r Reply) Page() (keys []string, next []byte) {
	for _, item := range r.Value.Items {
		switch item.Kind {
		case wire.Array:
			keys = make([]string, 0, len(item.Items))
			for _, key := range item.Items {
				keys = append(keys, string(key.Text))
			}
		case wire.Blob:
			next = append([]byte{}, item.Text...)
		}
	}
	return keys, next
}

// isPage accepts an array of the array of keys and, if there is more, the token.
func isPage(v wire.Value) bool {
	if v.Kind != wire.Array || len(v.Items) < 1 || len(v.Items) > 2 || v.Items[0].Kind != wire.Array {
		return false
	}
	for _, key := range v.Items[0].Items {
		if key.Kind != wire.Blob {
			return false
		}
	}
	return len(v.Items) == 1 || v.Items[1].Kind == wire.Blob
}

// Scan asks for page after page of the keys that match a pattern, each when the
// one before has been taken, and each within the time that [Session.Do] has. A page
// may be empty. Whether a key that is written or deleted meanwhile is among them,
// their order, and whether a key comes only once is the store's affair
// (protocol.md 9). An error is the last pair.
func (s *Session) Scan(ctx context.Context, pattern string) iter.Seq2[[]string, error] {
	return func(yield func([]string, error) bool) {
		var token []byte
		for {
			r, err := s.Do(ctx, Scan(pattern, token))
			if err != nil {
				yield(nil, err)
				return
			}
			keys, next := r.Page()
			if next != nil && token != nil && bytes.Equal(next, token) {
				yield(nil, &AnswerError{errSameToken})
				return
			}
			if !yield(keys, nil) || next == nil {
				return
			}
			token = next
		}
	}
}

// errSameToken ends what would never end.
var errSameToken = errors.New("SCAN was answered with the token that it was asked with")
