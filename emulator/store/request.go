package store

import "github.com/sscli/sscli/client/wire"

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
}

// The checks return the text of the refusal, or "".

// checkWords checks the number of words, verb included.
func (c *call) checkWords(least, most int) string {
	if len(c.words) < least || len(c.words) > most {
		return wire.TextWrongArguments
	}
	return ""
}

// checkKey reads the key and checks that the client may use it.
func (s *Store) checkKey(c *call, write bool) string {
	c.key = c.words[1]
	if len(c.key) == 0 {
		return wire.TextEmptyKey
	}
	if !s.Allowed(c.ClientID, c.Username, c.key, write) {
		return wire.TextNotAuthorized
	}
	return ""
}

// checkHLCs reads and checks `__ts`, and `__ft` if the verb takes a fencing token (protocol.md
// 3.2, 4 rows 12 and 13).
func (s *Store) checkHLCs(c *call, needTimestamp, takesFence bool) string {
	check := needTimestamp || s.opts.Variants.TimestampOnAll
	switch {
	case needTimestamp && c.Timestamp == nil:
		return wire.TextMissingTimestamp
	case c.Timestamp == nil:
	case check || takesFence: // else the request writes nothing
		ts, ok := parseHLC(c.Timestamp)
		switch ahead := ok && s.ahead(ts); {
		case !ok && check:
			return wire.TextMalformedTimestamp
		case ahead && check:
			return wire.TextClockAhead
		case ok && !ahead:
			c.timestamp = ts
		}
	}
	if !takesFence || c.Fence == nil {
		return ""
	}
	ft, ok := parseHLC(c.Fence)
	if !ok {
		return wire.TextMalformedTimestamp
	}
	if s.ahead(ft) {
		return wire.TextFenceAhead
	}
	c.fence = ft
	return ""
}

// ahead reports whether a reading is more than a minute ahead of the store.
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
