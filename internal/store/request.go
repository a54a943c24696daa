package store

import (
	"github.com/sscli/sscli/internal/observe"
	"github.com/sscli/sscli/internal/wire"
)

// Large is the size, in bytes, of the smallest value that the store keeps as it is given instead of
// copying it. A copy needs fresh memory, and its first use takes up to 2 ms for each MiB.
const Large = 1 << 20

// A Request is one request to the store. The store neither changes nor keeps its slices, except a value of
// [Large] bytes or more, which must not change after the call.
type Request struct {
	ClientID string
	Username string   // the authenticated user; for Options.Authorize
	Payload  []byte   // RESP3
	Words    [][]byte // the words of the request, which replace Payload; nil = the words come from Payload

	Timestamp []byte // `__ts`; nil = none was sent
	Fence     []byte // `__ft`; nil = none was sent
	Persist   bool   // whether `aio-persistence` is `true`
}

// SetProperty sets the field for a user property of the request. If a property is repeated, the
// first `__ts`, the first `__ft` and the last `aio-persistence` count (assumed). SetProperty
// ignores other properties.
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

// hasManyWords reports whether a payload is an array of more than 99 elements. No valid request has so
// many. A payload of 256 MB could have 40 million elements, and parsing them would take a second and a
// gigabyte of memory.
func hasManyWords(payload []byte) bool {
	const most = 99
	if len(payload) == 0 || wire.Kind(payload[0]) != wire.Array {
		return false
	}
	n := 0
	for _, digit := range payload[1:min(len(payload), 100)] {
		switch {
		case digit == '\r':
			return n > most
		case digit < '0' || digit > '9':
			return false
		}
		n = min(10*n+int(digit-'0'), most+1)
	}
	return n > most
}

// A call is a request that the store is answering.
type call struct {
	*Request
	words [][]byte
	key   []byte
	dst   []byte // the reply is appended here

	timestamp hlc // zero = there is no valid timestamp
	fence     hlc // zero = there is no fencing token

	outcome observe.Outcome // "" stands for observe.OK
	cause   string
}

// The methods whose names begin with check return the text of the refusal, or "".

func (c *call) checkWords(least, most int) string {
	if len(c.words) < least || len(c.words) > most {
		return wire.TextWrongArguments
	}
	return ""
}

// maxKey is the maximum length of a key, in bytes. Together with maxPattern it limits the time to match
// one key. The value is MQTT's maximum string length; the real store's limit is not known.
const maxKey = 65_535

const textLongKey = "the key is longer than 65535 bytes"

// maxValue is the maximum length of a value, in bytes. A reply or notification with such a value, the longest
// topic and the longest correlation data fits in an MQTT packet.
const maxValue = 255 << 20

const textLongValue = "the value is longer than 255 MiB"

// check parses and checks the key, the timestamp and the fencing token, in the order that the comment of
// [Store.Do] states. It ignores the fencing token unless write is set.
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

// checkTimestamp parses `__ts` (protocol.md 3.2, 4 rows 12 and 13). It refuses a bad timestamp only
// if the request requires a timestamp or Variants.TimestampOnAll is set. Otherwise it ignores a bad
// timestamp.
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

// checkFence checks a request's fencing token against the fence of the key at r (protocol.md 4). The
// zero hlc stands for a request without a token.
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
