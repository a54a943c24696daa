package store

import (
	"bytes"
	"slices"

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

// replyProperties are what every reply carries (protocol.md 1.6). Only the version differs from
// one reply to the next.
type replyProperties struct {
	bare      []Property // of replies without a version
	versioned []Property // of replies with one
	version   *Property  // in versioned
}

func newReplyProperties(v Variants) (p replyProperties) {
	if !v.NoStatus {
		p.bare = append(p.bare, Property{wire.PropStatus, []byte(wire.StatusOK)})
	}
	at := len(p.bare)
	if !v.NoProtocolVersion {
		p.bare = append(p.bare, Property{wire.PropProtocol, []byte(wire.ProtocolVersion)})
	}
	p.versioned = slices.Insert(slices.Clone(p.bare), at, Property{Name: wire.PropTimestamp})
	p.version = &p.versioned[at]
	return p
}

// of returns the properties of a reply. They are good until the next call.
func (p *replyProperties) of(version []byte) []Property {
	if len(version) == 0 {
		return p.bare
	}
	p.version.Value = version
	return p.versioned
}

// word is how a verb or option word counts.
func (s *Store) word(w []byte) []byte {
	if s.opts.Variants.AnyCase {
		return bytes.ToUpper(w)
	}
	return w
}
