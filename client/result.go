package client

import (
	"bytes"
	"fmt"
	"strconv"
	"time"

	"github.com/sscli/sscli/internal/mqtt"
	"github.com/sscli/sscli/internal/wire"
)

// A Result is the store's reply to a [Command]. Its type depends on the function that
// returned the command: the result of a [Get] is a [GetResult], the result of a [Set] is a
// [SetResult], and so on for [DelResult], [VDelResult], [ScanResult] and [CallResult]. A caller
// never gets any other type.
//
// [As] converts a Result to its type.
//
// Methods of [Session] that are named after a verb, such as [Session.Get], return the concrete type.
type Result interface {
	// Info returns the fields that all results have.
	Info() ReplyInfo
	isResult()
}

// ReplyInfo holds the fields that all results have.
type ReplyInfo struct {
	// Version is the version of the key; zero if the store sent none. The
	// version of a lock's key is the fencing token.
	Version Version

	RTT      time.Duration // time between sending the request and receiving the reply
	Warnings []string      // problems that the operator should know about
	Notes    []string      // harmless deviations from the protocol
}

// Info returns i.
func (i ReplyInfo) Info() ReplyInfo { return i }

func (ReplyInfo) isResult() {}

// As converts what [Session.Do] or [InFlight.Wait] returned to the type of result that the command has:
//
//	get, err := client.As[client.GetResult](s.Do(ctx, client.Get("setpoint")))
//
// The error is err or, if the command has another type of result, a *[ReplyError]: the command was carried out.
func As[R Result](r Result, err error) (R, error) {
	result, ok := r.(R)
	if err == nil && !ok {
		err = &ReplyError{fmt.Errorf("it is a %T, not a %T", r, result)}
	}
	return result, err
}

// newResult converts the reply m to a result, with the checks in this order, and
// completes info. at is when the reply arrived. The result shares no memory with m, except for the
// value of a GetResult if the value is larger than mqtt.ReusedSize.
func newResult(c *Command, m *mqtt.Publication, info *ReplyInfo, at time.Time) (Result, error) {
	p := readProperties(m)
	if v := p.protocol; v != nil && string(v) != "1" && !bytes.HasPrefix(v, []byte("1.")) {
		return nil, &ReplyError{fmt.Errorf("unsupported protocol version %.32q, expected 1.x", v)}
	}
	status, err := p.statusCode(info)
	if err != nil {
		return nil, err
	}
	reply, err := wire.ParseReply(m.Payload)
	if err == nil && reply.StoreError() != nil {
		return nil, reply.StoreError()
	}
	if status != 200 && status != 204 {
		return nil, &StatusError{Status: status, Message: string(p.message)}
	}
	if err != nil {
		return nil, &ReplyError{err}
	}
	if reply.Note != "" {
		info.Notes = append(info.Notes, "the reply is "+reply.Note)
	}
	if p.timestamp != nil {
		if info.Version, err = ParseVersion(string(p.timestamp)); err != nil {
			return nil, &ReplyError{err}
		}
	} else if c.Verb() == wire.VerbSet && isOK(reply.Value) || c.Verb() == wire.VerbGet && reply.Value.Kind == wire.Blob {
		info.Warnings = append(info.Warnings, "the store sent no version")
	}
	if !isNear(info.Version, at) {
		ahead := info.Version.Time().Sub(at)
		info.Warnings = append(info.Warnings, fmt.Sprintf("the version is %v ahead of the local clock: the local clock is slow, or one of the store's writers was fast", ahead.Round(time.Millisecond)))
	}
	if ct := m.ContentType; len(ct) > 0 && string(ct) != wire.ContentType && !bytes.HasPrefix(ct, []byte(wire.ContentType+";")) && !bytes.HasPrefix(ct, []byte(wire.ContentType+"+")) {
		info.Notes = append(info.Notes, fmt.Sprintf("the reply's content type is %.80q", ct))
	}
	result := c.read(reply.Value, info)
	if result == nil {
		return nil, &ReplyError{fmt.Errorf("%s was answered with %.80q", c.Verb(), m.Payload)}
	}
	return result, nil
}

// replyProperties are the user properties of a reply. A field is nil if the reply does not have
// the property; the other fields share the memory of the reply.
type replyProperties struct {
	timestamp, status, message, protocol []byte
}

// readProperties reads the properties of a reply. If several have the same name, the first one
// counts.
func readProperties(m *mqtt.Publication) (p replyProperties) {
	for name, value := range m.Properties() {
		var to *[]byte
		switch string(name) {
		case wire.PropTimestamp:
			to = &p.timestamp
		case wire.PropStatus:
			to = &p.status
		case wire.PropStatusMessage:
			to = &p.message
		case wire.PropProtocol:
			to = &p.protocol
		default:
			continue
		}
		if *to == nil {
			*to = value
		}
	}
	return p
}

// statusCode returns the value of `__stat`. The published protocol does not promise this property,
// so a reply without it has the status 200.
func (p *replyProperties) statusCode(info *ReplyInfo) (int, error) {
	if p.status == nil {
		info.Notes = append(info.Notes, "the reply has no "+wire.PropStatus)
		return 200, nil
	}
	status, err := strconv.Atoi(string(p.status))
	if err != nil {
		return 0, &ReplyError{fmt.Errorf("%s is %.32q, expected a number", wire.PropStatus, p.status)}
	}
	return status, nil
}
