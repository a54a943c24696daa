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

// call is a request on its way through the checks.
type call struct {
	*Request
	words [][]byte
	key   []byte
	dst   []byte // the reply is appended here

	timestamp stamp // zero if none came
	fence     stamp // zero if no fencing token came
}

// arguments checks the number of words, verb included.
func (c *call) arguments(least, most int) string {
	if len(c.words) < least || len(c.words) > most {
		return wire.TextWrongArguments
	}
	return ""
}

// access takes the key and checks that the client may use it.
func (s *Store) access(c *call, write bool) string {
	c.key = c.words[1]
	if len(c.key) == 0 {
		return wire.TextEmptyKey
	}
	if !s.allowed(c.ClientID, c.Username, c.key, write) {
		return wire.TextNotAuthorized
	}
	return ""
}

func (s *Store) allowed(clientID, username string, key []byte, write bool) bool {
	return s.opts.Authorize == nil || s.opts.Authorize(clientID, username, string(key), write)
}

// stamps checks `__ts` and `__ft` (protocol.md 3.2, 4 rows 12 and 13).
func (s *Store) stamps(c *call, needTimestamp, takesFence bool) string {
	check := needTimestamp || s.opts.Variants.TimestampOnAll
	switch {
	case needTimestamp && c.Timestamp == nil:
		return wire.TextMissingTimestamp
	case c.Timestamp == nil:
	case !check && !takesFence: // a request that writes nothing
	default:
		ts, ok := parseStamp(c.Timestamp)
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
	ft, ok := parseStamp(c.Fence)
	if !ok {
		return wire.TextMalformedTimestamp
	}
	if s.ahead(ft) {
		return wire.TextFenceAhead
	}
	c.fence = ft
	return ""
}

// ahead tells whether a reading is more than a minute ahead of the store.
func (s *Store) ahead(v stamp) bool {
	return v.wall > s.millis+wire.MaxDrift.Milliseconds()
}

// guard checks a token, the zero stamp if there is none, against the key's fence
// (protocol.md 4).
func (s *Store) guard(token stamp, r ref) string {
	if r == 0 {
		return ""
	}
	text := s.index.entry(r).Fence()
	if len(text) == 0 {
		return ""
	}
	fence, fenced := parseStamp(text)
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
