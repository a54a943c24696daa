package client

import (
	"bytes"
	"context"
	"errors"
	"iter"

	"github.com/sscli/sscli/internal/wire"
)

// ScanResult is the reply to [Scan]: one page of keys.
type ScanResult struct {
	ReplyInfo
	Keys []string // may be empty although there are more pages
	Next []byte   // the token of the next page, arbitrary bytes; nil on the last page
}

// Scan returns a command that reads one page of the keys that match a pattern; its
// result is a [ScanResult]. The token is nil for the first page, and the previous page's
// ScanResult.Next for each later page. If a request was not answered, its token can be used again. A
// broker that does not support SCAN answers with a *[StoreError] of the kind
// [ErrorUnknownCommand]. According to a draft of Microsoft's SDK, the store matches keys as UTF-8
// text: it does not list keys that are not UTF-8, and a pattern that is not UTF-8 matches nothing.
func Scan(pattern string, token []byte) Command {
	c := Command{first: [3]string{wire.VerbScan, pattern}, count: 2, read: readPage}
	if token != nil {
		c.first[2], c.count = string(token), 3
	}
	if pattern == "" {
		c.err = invalid("the pattern is empty; * matches any key")
	}
	return c
}

// readPage converts the reply to a SCAN: an array that holds the array of keys and, if there are more
// pages, the token of the next page.
func readPage(v wire.Value, info *ReplyInfo) Result {
	if v.Kind != wire.Array || len(v.Items) < 1 || len(v.Items) > 2 || v.Items[0].Kind != wire.Array {
		return nil
	}
	r := ScanResult{ReplyInfo: *info, Keys: make([]string, 0, len(v.Items[0].Items))}
	for _, key := range v.Items[0].Items {
		if key.Kind != wire.Blob {
			return nil
		}
		r.Keys = append(r.Keys, string(key.Text))
	}
	if len(v.Items) == 2 {
		if v.Items[1].Kind != wire.Blob {
			return nil
		}
		r.Next = append([]byte{}, v.Items[1].Text...)
	}
	return r
}

// Scan lists the keys that match a pattern, page by page. It requests a page only after the
// previous one was consumed, and each request has the time limit of [Session.Do]. A page may be
// empty. The store decides the order of the keys, whether it lists a key twice, and whether it
// lists keys that are written or deleted during the scan. An error ends the
// scan and is yielded last.
func (s *Session) Scan(ctx context.Context, pattern string) iter.Seq2[ScanResult, error] {
	return s.ScanFrom(ctx, pattern, nil)
}

// Keys yields the keys that match a pattern; * matches any key. It lists them with [Session.Scan], whose
// comment says what the store promises. An error ends the iteration and is yielded last.
func (s *Session) Keys(ctx context.Context, pattern string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for page, err := range s.Scan(ctx, pattern) {
			if err != nil {
				yield("", err)
				return
			}
			for _, key := range page.Keys {
				if !yield(key, nil) {
					return
				}
			}
		}
	}
}

// ScanFrom resumes a scan at a token, for example after the connection was lost. The token is the
// ScanResult.Next of the last page that was read.
func (s *Session) ScanFrom(ctx context.Context, pattern string, token []byte) iter.Seq2[ScanResult, error] {
	return func(yield func(ScanResult, error) bool) {
		token := token // each loop over the pages begins at the same one
		for {
			page, err := As[ScanResult](s.Do(ctx, Scan(pattern, token)))
			if err == nil && token != nil && bytes.Equal(page.Next, token) {
				// Continuing would read the same page forever.
				err = &ReplyError{errors.New("SCAN returned the same token that the request had")}
			}
			if err != nil {
				yield(ScanResult{}, err)
				return
			}
			if !yield(page, nil) || page.Next == nil {
				return
			}
			token = page.Next
		}
	}
}
