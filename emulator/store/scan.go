package store

import (
	"bytes"

	"github.com/sscli/sscli/client/wire"
)

// scan replies with one page of keys in the order of their bytes (protocol.md 9). A token is
// tokenMark and the last key of the page before, so it stays valid when the store changes. Keys
// that the client may not read are left out (assumed).
func (s *Store) scan(c *call) Response {
	if text := c.checkWords(2, 3); text != "" {
		return s.refuse(c, text)
	}
	pattern := c.words[1]
	if len(pattern) == 0 || len(pattern) > maxPattern {
		return s.refuse(c, wire.TextSyntax)
	}
	var after []byte
	if len(c.words) == 3 {
		var ok bool
		if after, ok = bytes.CutPrefix(c.words[2], []byte(tokenMark)); !ok {
			return s.refuse(c, wire.TextSyntax)
		}
	}
	if text := s.checkTimestamp(c, false, false); text != "" {
		return s.refuse(c, text)
	}
	if s.opts.Variants.ScanEmptyPage && len(c.words) == 2 {
		return Response{Payload: appendPage(c.dst, nil, []byte{}, true)}
	}
	found, last, more := s.matches(c, pattern, after)
	return Response{Payload: appendPage(c.dst, found, last, more)}
}

// maxExamined is the number of readable keys that one page of SCAN examines, whether they match
// or not. It bounds how long other requests wait. So a page may be empty and not the last.
const maxExamined = 10_000

// maxMatchSteps bounds the time that matching takes for one page, see [glob.Pattern.Cost].
const maxMatchSteps = 4_000_000

// matches collects a page: the entries after a key that match and may be read, the last key
// that was examined, and whether there may be more.
func (s *Store) matches(c *call, pattern, after []byte) (found []Entry, last []byte, more bool) {
	parsed := parseGlob(pattern)
	prefix := parsed.Prefix()
	start := after
	if bytes.Compare(prefix, after) > 0 {
		start = prefix
	}
	found = s.page[:0]
	seen, steps := 0, 0
	s.index.from(start, func(e Entry) bool {
		key := e.Key()
		switch {
		case !bytes.HasPrefix(key, prefix):
			return false // after the last key with the prefix
		case len(after) > 0 && bytes.Equal(key, after):
			return true
		case !s.Allowed(c.ClientID, c.Username, key, false):
			return true // before it could become a token
		}
		match := parsed.Match(key)
		if more = seen == maxExamined || steps > maxMatchSteps || match && len(found) == s.opts.ScanPage; more {
			return false
		}
		if match {
			found = append(found, e)
		}
		last = key
		seen++
		steps += parsed.Cost(len(key))
		return true
	})
	s.page = found
	return found, last, more
}

// tokenMark begins every token. It is not text: tokens are binary and opaque.
const tokenMark = "\x00\xff"

// appendPage appends a page of keys and, if there are more, the token for the next.
func appendPage(dst []byte, found []Entry, last []byte, more bool) []byte {
	items := []wire.Value{{Kind: wire.Array, Items: make([]wire.Value, len(found))}}
	for i, e := range found {
		items[0].Items[i] = wire.Value{Kind: wire.Blob, Text: e.Key()}
	}
	if more {
		items = append(items, wire.Value{Kind: wire.Blob, Text: append([]byte(tokenMark), last...)})
	}
	return wire.AppendValue(dst, wire.Value{Kind: wire.Array, Items: items})
}
