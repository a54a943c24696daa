package store

import (
	"github.com/sscli/sscli/client/wire"
	"github.com/sscli/sscli/observe"
)

// A Request is one request to the store. The store changes none of its slices and keeps
// none.
type Request struct {
	ClientID string
	Username string // as the client logged in; for Options.Authorize
	Payload  []byte // RESP3

	Timestamp []byte // `__ts`; nil: none was sent
	Fence     []byte // `__ft`; nil: none was sent
	Persist   bool   // `aio-persistence` is `true`
}

// SetProperty reads a user property of the request. The first `__ts` and the first `__ft` count,
// and the last `aio-persistence` (assumed). Other properties are ignored.
func (r *Request) SetProperty(name, value []byte) {
	switch {
	case string(name) == wire.PropTimestamp && r.Timestamp == nil:
		r.Timestamp = value
	case string(name) == wire.PropFence && r.Fence == nil:
		r.Fence = value
	case string(name) == wire.PropPersist:
		r.Persist = string(value) == "true"
	}
}

// call is a request while the store answers it.
type call struct {
	*Request
	words [][]byte
	key   []byte
	dst   []byte // the reply is appended here

	timestamp hlc // zero if none came
	fence     hlc // zero if no fencing token came

	outcome observe.Outcome // "" stands for observe.OK
	cause   string
}

// The checks return the text of the refusal, or "".

// checkWords checks the number of words, verb included.
func (c *call) checkWords(least, most int) string {
	if len(c.words) < least || len(c.words) > most {
		return wire.TextWrongArguments
	}
	return ""
}

// maxKey is the length in bytes of the longest key. With maxPattern it bounds the time of one match. It
// is the length of the longest string in MQTT; that of the real store is not known.
const maxKey = 65_535

const textLongKey = "the key is longer than 65535 bytes"

// check reads the key and the HLCs of a request, in the order of Do's checks. Only a write takes a
// fencing token.
func (s *Store) check(c *call, write, needTimestamp bool) string {
	c.key = c.words[1]
	switch {
	case len(c.key) == 0:
		return wire.TextEmptyKey
	case len(c.key) > maxKey && (write || s.Restricted()):
		return textLongKey
	}
	if !s.Allowed(c.ClientID, c.Username, c.key, write) {
		return wire.TextNotAuthorized
	}
	if text := s.checkTimestamp(c, write, needTimestamp); text != "" || !write || c.Fence == nil {
		return text
	}
	fence, ok := parseHLC(c.Fence)
	switch {
	case !ok:
		return wire.TextMalformedTimestamp
	case s.ahead(fence):
		return wire.TextFenceAhead
	}
	c.fence = fence
	return ""
}

// checkTimestamp reads `__ts` (protocol.md 3.2, 4 rows 12 and 13). Where it is not required, only a
// variant of the store refuses a bad one.
func (s *Store) checkTimestamp(c *call, write, required bool) string {
	strict := required || s.opts.Variants.TimestampOnAll
	switch {
	case required && c.Timestamp == nil:
		return wire.TextMissingTimestamp
	case c.Timestamp == nil || !strict && !write:
		return ""
	}
	ts, ok := parseHLC(c.Timestamp)
	switch ahead := ok && s.ahead(ts); {
	case !ok && strict:
		return wire.TextMalformedTimestamp
	case ahead && strict:
		return wire.TextClockAhead
	case ok && !ahead:
		c.timestamp = ts
	}
	return ""
}

// ahead reports whether a timestamp or token is more than a minute ahead of the store's clock.
func (s *Store) ahead(v hlc) bool {
	return v.wall > s.millis+wire.MaxDrift.Milliseconds()
}

// checkFence checks a token, the zero hlc if there is none, against the key's fence
// (protocol.md 4).
func (s *Store) checkFence(token hlc, r ref) string {
	if r == 0 {
		return ""
	}
	fence, fenced := parseHLC(s.index.entry(r).Fence())
	switch {
	case !fenced:
		return ""
	case !token.given():
		return wire.TextFenceRequired
	}
	if s.opts.Variants.FenceIgnoresNode {
		token.node, fence.node = nil, nil
	}
	if token.compare(fence) < 0 {
		return wire.TextFenceLower
	}
	return ""
}
