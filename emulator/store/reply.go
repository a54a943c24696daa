package store

import (
	"bytes"

	"github.com/sscli/sscli/client/wire"
)

// The replies of the verbs (protocol.md 2.3). cause is for Response.Cause.

func (s *Store) ok(c *call, cause string) Response {
	return Response{Payload: append(c.dst, "+OK\r\n"...), Outcome: OutcomeOK, Cause: cause}
}

func (s *Store) count(c *call, n int64, cause string) Response {
	r := Response{Outcome: OutcomeOK, Cause: cause}
	if n <= 0 {
		r.Outcome = OutcomeNo
	}
	if n == -1 && s.opts.Variants.BareMinusOne {
		r.Payload = append(c.dst, "-1\r\n"...)
	} else {
		r.Payload = wire.AppendValue(c.dst, wire.Value{Kind: wire.Integer, Int: n})
	}
	return r
}

func (s *Store) null(c *call) Response {
	r := Response{Outcome: OutcomeNo, Cause: causeMissing}
	if s.opts.Variants.NullUnderscore {
		r.Payload = append(c.dst, "_\r\n"...)
	} else {
		r.Payload = wire.AppendValue(c.dst, wire.Value{Kind: wire.Null})
	}
	return r
}

func (s *Store) blob(c *call, value []byte) Response {
	payload := wire.AppendBlob(c.dst, value)
	if s.opts.Variants.BlobUnframed {
		payload = payload[:len(payload)-len("\r\n")]
	}
	return Response{Payload: payload, Outcome: OutcomeOK}
}

func (s *Store) refuse(c *call, text string) Response {
	payload := wire.AppendError(c.dst, text)
	if s.opts.Variants.ErrorColon {
		payload = append(append(append(c.dst, "-ERR: "...), text...), "\r\n"...)
	}
	if s.opts.Variants.ErrorUnframed {
		payload = payload[:len(payload)-len("\r\n")]
	}
	return Response{Payload: payload, Outcome: OutcomeRefused, Cause: text}
}

func (r Response) with(version []byte) Response {
	r.Version = version
	return r
}

// replyProperties returns the user properties of a reply with that version, or without one
// (protocol.md 1.6). They are valid until the next call.
func (s *Store) replyProperties(version []byte) []Property {
	v, p := s.opts.Variants, s.properties[:0]
	if !v.NoStatus {
		p = append(p, Property{wire.PropStatus, s.status})
	}
	if len(version) > 0 {
		p = append(p, Property{wire.PropTimestamp, version})
	}
	if !v.NoProtocolVersion {
		p = append(p, Property{wire.PropProtocol, s.protocol})
	}
	s.properties = p
	return p
}

// word returns a verb or option as it is compared.
func (s *Store) word(w []byte) []byte {
	if s.opts.Variants.AnyCase {
		return bytes.ToUpper(w)
	}
	return w
}
