package store

import (
	"bytes"

	"github.com/sscli/sscli/client/wire"
)

// What the verbs answer with (protocol.md 2.3).

func (s *Store) ok(c *call) Response {
	return Response{Payload: append(c.dst, "+OK\r\n"...)}
}

func (s *Store) count(c *call, n int64) Response {
	if n == -1 && s.opts.Variants.BareMinusOne {
		return Response{Payload: append(c.dst, "-1\r\n"...)}
	}
	return Response{Payload: wire.AppendValue(c.dst, wire.Value{Kind: wire.Integer, Int: n})}
}

func (s *Store) null(c *call) Response {
	if s.opts.Variants.NullUnderscore {
		return Response{Payload: append(c.dst, "_\r\n"...)}
	}
	return Response{Payload: wire.AppendValue(c.dst, wire.Value{Kind: wire.Null})}
}

func (s *Store) blob(c *call, value []byte) Response {
	payload := wire.AppendBlob(c.dst, value)
	if s.opts.Variants.BlobUnframed {
		payload = payload[:len(payload)-len("\r\n")]
	}
	return Response{Payload: payload}
}

func (s *Store) refuse(c *call, text string) Response {
	payload := wire.AppendError(c.dst, text)
	if s.opts.Variants.ErrorColon {
		payload = append(append(append(c.dst, "-ERR: "...), text...), "\r\n"...)
	}
	if s.opts.Variants.ErrorUnframed {
		payload = payload[:len(payload)-len("\r\n")]
	}
	return Response{Payload: payload}
}

func (r Response) with(version []byte) Response {
	r.Version = version
	return r
}

// The values of properties that do not change.
var (
	statusOK        = []byte(wire.StatusOK)
	protocolVersion = []byte(wire.ProtocolVersion)
)

// replyProperties returns what every reply carries (protocol.md 1.6).
func (s *Store) replyProperties(version []byte) []Property {
	p := s.properties[:0]
	if !s.opts.Variants.NoStatus {
		p = append(p, Property{wire.PropStatus, statusOK})
	}
	if len(version) > 0 {
		p = append(p, Property{wire.PropTimestamp, version})
	}
	if !s.opts.Variants.NoProtocolVersion {
		p = append(p, Property{wire.PropProtocol, protocolVersion})
	}
	return p
}

// word is how a verb or option word counts.
func (s *Store) word(w []byte) []byte {
	if s.opts.Variants.AnyCase {
		return bytes.ToUpper(w)
	}
	return w
}
