package store

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"hash/fnv"
	"strconv"
	"unicode/utf8"

	"github.com/sscli/sscli/internal/glob"
	"github.com/sscli/sscli/internal/wire"
)

// scan replies with one page of keys (protocol.md 9). The store divides its keys into chains. The pages
// list one chain after the other, each in byte order, and omit keys that the client may not read
// (assumed).
func (s *Store) scan(c *call) Response {
	if text := c.checkWords(2, 3); text != "" {
		return s.refuse(c, text)
	}
	pattern := c.words[1]
	if len(pattern) == 0 || len(pattern) > maxPattern {
		return s.refuse(c, wire.TextSyntax)
	}
	parsed, ok := s.parseScan(pattern)
	if !ok {
		return s.refuse(c, wire.TextSyntax)
	}
	at := position{chain: 1}
	if len(c.words) == 3 {
		if at, ok = s.parseToken(c.words[2]); !ok {
			return s.refuse(c, wire.TextSyntax)
		}
	}
	if text := s.checkTimestamp(c, false, false); text != "" {
		return s.refuse(c, text)
	}
	var found []Entry
	more := true
	switch {
	case parsed == nil:
		more = false
	case !s.opts.Variants.ScanEmptyPage || len(c.words) == 3:
		found, at, more = s.matches(c, parsed, at)
	}
	var next []byte
	if more {
		next = s.appendToken(nil, at)
	}
	payload := appendPage(c.dst, found, next)
	clear(found) // they keep records in memory
	return Response{Payload: payload}
}

// A position is the point between two pages of SCAN: after a key in a chain, or at the beginning of a chain.
type position struct {
	chain  int    // number of the chain, from 1
	after  []byte // the last key that the page examined; nil = the position is the beginning of the chain
	hidden bool   // the client may not read the last key that the page examined
}

func (s *Store) chains() int {
	if s.opts.Variants.ScanChains {
		return 3
	}
	return 1
}

func (s *Store) chainOf(key []byte) int {
	n := s.chains()
	if n == 1 {
		return 1
	}
	h := fnv.New32a()
	_, _ = h.Write(key) // a hash never returns an error
	return 1 + int(h.Sum32()%uint32(n))
}

const (
	// maxExamined is the maximum number of keys that one page of SCAN examines, whether or not
	// they match. It limits how long other requests wait. A page may therefore be empty although
	// more pages follow.
	maxExamined = 10_000

	// maxScanSteps limits the estimated time for one page, in steps of about a nanosecond.
	maxScanSteps = 4_000_000

	// allowedSteps is the estimated number of steps that checking the authorization for one key takes,
	// in addition to one step for each byte of the key.
	allowedSteps = 2000
)

// matches collects one page of the entries that match the pattern and that the client may read, from
// the given position on. It returns the entries, the end of the page, and whether more pages may follow.
func (s *Store) matches(c *call, pattern *glob.Pattern, at position) (found []Entry, end position, more bool) {
	prefix := pattern.Prefix()
	start := at.after
	if bytes.Compare(prefix, start) > 0 {
		start = prefix
	}
	found, end = s.page[:0], at
	seen, steps := 0, 0
	s.index.from(start, func(e Entry) bool {
		key := e.Key()
		switch {
		case !bytes.HasPrefix(key, prefix):
			return false // after the last key with the prefix
		case at.after != nil && bytes.Equal(key, at.after):
			return true
		}
		if more = seen == maxExamined || steps > maxScanSteps; more {
			return false
		}
		hidden := !s.Allowed(c.ClientID, c.Username, key, false)
		match := !hidden && !e.due(s.micros) && s.chainOf(key) == at.chain && pattern.Match(key)
		if more = match && len(found) == s.opts.ScanPage; more {
			return false
		}
		if match {
			found = append(found, e)
		}
		end.after, end.hidden = key, hidden
		seen++
		steps += pattern.Cost(len(key))
		if s.Restricted() {
			steps += allowedSteps + len(key)
		}
		return true
	})
	s.page = found
	if !more && at.chain < s.chains() {
		end, more = position{chain: at.chain + 1}, true
	}
	return found, end, more
}

// A SCAN token has three parts, separated by semicolons (protocol.md 9, a draft): the number of the
// chain, the number 1, and the position in the chain. The position is empty at the beginning of the
// chain. Otherwise it is tokenPlain and the last examined key or, if the client may not read this
// key, tokenSealed and the encrypted key. Tokens stay valid when keys change.
const (
	tokenPlain  = '>'
	tokenSealed = '#'
)

func (s *Store) appendToken(dst []byte, at position) []byte {
	dst = append(strconv.AppendInt(dst, int64(at.chain), 10), ";1;"...)
	switch {
	case at.after == nil:
		return dst
	case at.hidden:
		return s.sealer().Seal(append(dst, tokenSealed), nil, at.after, nil)
	}
	return append(append(dst, tokenPlain), at.after...)
}

// maxToken is more than the length of every token, in bytes: a key, its encryption and the number of its chain.
const maxToken = maxKey + 64

func (s *Store) parseToken(token []byte) (at position, ok bool) {
	if len(token) > maxToken {
		return at, false
	}
	chain, rest, found := bytes.Cut(token, []byte{';'})
	number, rest, again := bytes.Cut(rest, []byte{';'})
	n, err := strconv.Atoi(string(chain))
	if !found || !again || err != nil || n < 1 || n > s.chains() || string(number) != "1" {
		return at, false
	}
	at.chain = n
	switch {
	case len(rest) == 0:
		return at, true
	case rest[0] == tokenPlain:
		at.after = rest[1:]
		return at, true
	case rest[0] == tokenSealed:
		at.after, err = s.sealer().Open(nil, nil, rest[1:], nil)
		return at, err == nil
	}
	return at, false
}

// sealer returns the cipher that encrypts hidden keys in tokens.
func (s *Store) sealer() cipher.AEAD {
	if s.seal == nil {
		key := make([]byte, 16)
		_, _ = rand.Read(key)                           // Read never returns an error
		block, _ := aes.NewCipher(key)                  // the length is valid
		s.seal, _ = cipher.NewGCMWithRandomNonce(block) // AES has the block size that GCM requires
	}
	return s.seal
}

// appendPage appends a page of keys and, unless next is nil, the token for the next page.
func appendPage(dst []byte, found []Entry, next []byte) []byte {
	items := []wire.Value{{Kind: wire.Array, Items: make([]wire.Value, len(found))}}
	for i, e := range found {
		items[0].Items[i] = wire.Value{Kind: wire.Blob, Text: e.Key()}
	}
	if next != nil {
		items = append(items, wire.Value{Kind: wire.Blob, Text: next})
	}
	return wire.AppendValue(dst, wire.Value{Kind: wire.Array, Items: items})
}

// parseScan parses a SCAN pattern. ok is false if the pattern is malformed. A nil pattern matches
// nothing.
func (s *Store) parseScan(pattern []byte) (p *glob.Pattern, ok bool) {
	switch {
	case s.opts.Variants.ScanGlobBytes:
		return parseGlob(pattern), true
	case !utf8.Valid(pattern):
		return nil, true
	}
	return glob.Parse(string(pattern))
}

// maxPattern is the maximum length of a SCAN pattern, in bytes. Together with maxKey it limits the
// time to match one key to a few milliseconds.
const maxPattern = 1024

// parseGlob parses a pattern in the syntax that the broker documents for
// its authorization rules (protocol.md 7.6, 9): `*` matches any number of bytes, `?` matches one
// byte, and `[0-9]` or `[abc]` matches one byte of a range or list. There is no escape character.
// Brackets that are empty or not closed match themselves.
func parseGlob(pattern []byte) *glob.Pattern {
	p := &glob.Pattern{Bytes: true}
	closing := bytes.LastIndexByte(pattern, ']') // brackets after the last ] are not closed
	for i := 0; i < len(pattern); i++ {
		switch c := pattern[i]; {
		case c == '*':
			p.Star()
		case c == '?':
			p.One(true)
		case c == '[' && i+1 < closing && pattern[i+1] != ']':
			end := i + bytes.IndexByte(pattern[i:], ']')
			p.One(false, glob.Ranges(pattern[i+1:end])...)
			i = end
		default:
			p.Literal(rune(c))
		}
	}
	p.Compile()
	return p
}
