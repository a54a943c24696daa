package store

import (
	"bytes"
	"slices"

	"github.com/sscli/sscli/internal/observe"
	"github.com/sscli/sscli/internal/wire"
)

// The methods ok, count, null, blob and refuse build replies (protocol.md 2.3). For Options.Observe, they
// also set c.outcome and c.cause; an outcome or a cause that they do not set stays empty.

func (s *Store) ok(c *call, cause string) Response {
	c.cause = cause
	return Response{Payload: append(c.dst, "+OK\r\n"...)}
}

func (s *Store) count(c *call, n int64, cause string) Response {
	c.cause = cause
	if n <= 0 {
		c.outcome = observe.No
	}
	if n == -1 && s.opts.Variants.BareMinusOne {
		return Response{Payload: append(c.dst, "-1\r\n"...)}
	}
	return Response{Payload: wire.AppendValue(c.dst, wire.Value{Kind: wire.Integer, Int: n})}
}

func (s *Store) null(c *call) Response {
	c.outcome, c.cause = observe.No, causeMissing
	if s.opts.Variants.NullUnderscore {
		return Response{Payload: append(c.dst, "_\r\n"...)}
	}
	return Response{Payload: wire.AppendValue(c.dst, wire.Value{Kind: wire.Null})}
}

func (s *Store) blob(c *call, value []byte) Response {
	tail := "\r\n"
	if s.opts.Variants.BlobUnframed {
		tail = ""
	}
	if len(value) >= Large && tail == ValueEnd {
		return Response{Payload: wire.AppendBlobHeader(c.dst, len(value)), Value: value}
	}
	payload := wire.AppendBlobHeader(slices.Grow(c.dst, len(value)+32), len(value))
	return Response{Payload: append(append(payload, value...), tail...)}
}

func (s *Store) refuse(c *call, text string) Response {
	c.outcome, c.cause = observe.Refused, text
	payload := wire.AppendError(c.dst, text)
	if s.opts.Variants.ErrorColon {
		payload = append(append(append(c.dst, "-ERR: "...), text...), "\r\n"...)
	}
	if s.opts.Variants.ErrorUnframed {
		payload = payload[:len(payload)-len("\r\n")]
	}
	return Response{Payload: payload}
}

// Refuse returns the response to a request that is refused with a text, without processing it. It appends the reply to
// dst.
func (s *Store) Refuse(dst []byte, text string) Response {
	r := s.refuse(&call{dst: dst}, text)
	r.Properties = s.bare
	return r
}

func (r Response) with(version []byte) Response {
	r.Version = version
	return r
}

// replyProperties returns the user properties of a reply (protocol.md 1.6). If versioned is set, they
// include a version, which Do fills in.
func replyProperties(v Variants, versioned bool) (p []Property) {
	if !v.NoStatus {
		p = append(p, Property{wire.PropStatus, []byte(wire.StatusOK)})
	}
	if versioned {
		p = append(p, Property{Name: wire.PropTimestamp})
	}
	if !v.NoProtocolVersion {
		p = append(p, Property{wire.PropProtocol, []byte(wire.ProtocolVersion)})
	}
	return p
}

// maxVerb is more than the length of every verb and option, in bytes. A word may be as long as a value.
const maxVerb = 32

// word returns a verb or option as the store compares it: in upper case if Variants.AnyCase is set, and
// otherwise unchanged.
func (s *Store) word(w []byte) []byte {
	if s.opts.Variants.AnyCase && len(w) <= maxVerb {
		return bytes.ToUpper(w)
	}
	return w
}
