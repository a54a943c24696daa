package emulator

import (
	"github.com/sscli/sscli/client/wire"
)

// What the verbs answer with (protocol.md 2.3).

func (e *Engine) ok() Response {
	return Response{Payload: wire.AppendValue(nil, wire.Value{Kind: wire.SimpleString, Text: []byte("OK")})}
}

func (e *Engine) count(n int64) Response {
	if n == -1 && e.opts.Variants.BareMinusOne {
		return Response{Payload: []byte("-1\r\n")}
	}
	return Response{Payload: wire.AppendValue(nil, wire.Value{Kind: wire.Integer, Int: n})}
}

func (e *Engine) null() Response {
	if e.opts.Variants.NullUnderscore {
		return Response{Payload: []byte("_\r\n")}
	}
	return Response{Payload: wire.AppendValue(nil, wire.Value{Kind: wire.Null})}
}

func (e *Engine) blob(value []byte) Response {
	payload := wire.AppendValue(nil, wire.Value{Kind: wire.Blob, Text: value})
	if e.opts.Variants.BlobUnframed {
		payload = payload[:len(payload)-len("\r\n")]
	}
	return Response{Payload: payload}
}

func (e *Engine) refuse(text string) Response {
	payload := wire.AppendError(nil, text)
	if e.opts.Variants.ErrorColon {
		payload = append([]byte("-ERR: "), text+"\r\n"...)
	}
	if e.opts.Variants.ErrorUnframed {
		payload = payload[:len(payload)-len("\r\n")]
	}
	return Response{Payload: payload}
}

func (r Response) with(v wire.Version) Response {
	r.Version = v
	return r
}

// addProperties adds what every reply carries (protocol.md 1.6).
func (e *Engine) addProperties(r *Response) {
	if !e.opts.Variants.NoStatus {
		r.Properties = append(r.Properties, Property{wire.PropStatus, wire.StatusOK})
	}
	if !r.Version.IsZero() {
		r.Properties = append(r.Properties, Property{wire.PropTimestamp, r.Version.String()})
	}
	if !e.opts.Variants.NoProtocolVersion {
		r.Properties = append(r.Properties, Property{wire.PropProtocol, wire.ProtocolVersion})
	}
}
