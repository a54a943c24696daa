package client

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/sscli/sscli/client/mqtt"
	"github.com/sscli/sscli/client/wire"
)

// A Result is the store's answer to a [Command]. Its type depends on the function that
// made the command: a [Get] has a [GetResult], a [Set] a [SetResult], and so on with
// [DelResult], [VDelResult], [ScanResult] and [CallResult]. There are no others.
//
//	r, err := client.Once(ctx, o, client.Get("setpoint"))
//	…
//	value := r.(client.GetResult).Value
//
// The methods of [Session] that are named after a verb return its type.
type Result interface {
	// Info returns what the results of all commands have.
	Info() ReplyInfo
	isResult()
}

// ReplyInfo is what the results of all commands have.
type ReplyInfo struct {
	// Version is the version of the key (protocol.md 3.6); zero if the store gave none.
	// That of a lock's key is its fencing token.
	Version Version

	RTT      time.Duration // from the request's handover to the reply's arrival
	Warnings []string      // what the operator should know
	Notes    []string      // harmless departures from the protocol
}

// Info returns i.
func (i ReplyInfo) Info() ReplyInfo { return i }

// typed returns the result of a command whose type is known.
func typed[R Result](r Result, err error) (R, error) {
	if err != nil {
		var none R
		return none, err
	}
	return r.(R), nil
}

// newResult reads an answer in the order of protocol.md 1.7. now is the local time
// for judging the store's clock. The result shares no memory with m.
func newResult(c Command, m *mqtt.Publication, rtt time.Duration, now time.Time) (Result, error) {
	info := ReplyInfo{RTT: rtt}
	if v, ok := m.Property(wire.PropProtocol); ok && string(v) != "1" && !bytes.HasPrefix(v, []byte("1.")) {
		return nil, &AnswerError{fmt.Errorf("unsupported protocol version %.32q, want 1.x", v)}
	}
	status, err := statusOf(m, &info)
	if err != nil {
		return nil, err
	}
	payload := bytes.Clone(m.Payload)
	answer, err := wire.ParseReply(payload)
	if err == nil && answer.StoreError() != nil {
		return nil, answer.StoreError()
	}
	if status != 200 && status != 204 {
		text, _ := m.Property(wire.PropStatusMessage)
		return nil, &StatusError{Status: status, Message: string(text)}
	}
	if err != nil {
		return nil, &AnswerError{err}
	}
	if answer.Note != "" {
		info.Notes = append(info.Notes, "the answer is "+answer.Note)
	}
	if text, ok := m.Property(wire.PropTimestamp); ok {
		if info.Version, err = wire.ParseVersion(string(text)); err != nil {
			return nil, &AnswerError{err}
		}
	} else if c.Verb() == wire.VerbSet && isOK(answer.Value) || c.Verb() == wire.VerbGet && answer.Value.Kind == wire.Blob {
		info.Warnings = append(info.Warnings, "the store sent no version")
	}
	if ahead := info.Version.Time().Sub(now); ahead > wire.MaxDrift {
		info.Warnings = append(info.Warnings, fmt.Sprintf("the version is %v ahead of the local clock: the local clock is slow, or one of the store's writers was fast", ahead.Round(time.Millisecond)))
	}
	if ct := string(m.ContentType); ct != "" && ct != wire.ContentType && !strings.HasPrefix(ct, wire.ContentType+";") && !strings.HasPrefix(ct, wire.ContentType+"+") {
		info.Notes = append(info.Notes, fmt.Sprintf("the answer's content type is %.80q", ct))
	}
	r := c.read(answer.Value, info)
	if r == nil {
		return nil, &AnswerError{fmt.Errorf("%s was answered with %.80q", c.Verb(), payload)}
	}
	return r, nil
}

// statusOf reads `__stat`, which the published protocol does not promise.
func statusOf(m *mqtt.Publication, info *ReplyInfo) (int, error) {
	text, ok := m.Property(wire.PropStatus)
	if !ok {
		info.Notes = append(info.Notes, "the answer has no "+wire.PropStatus)
		return 200, nil
	}
	if string(text) == wire.StatusOK {
		return 200, nil
	}
	status, err := strconv.Atoi(string(text))
	if err != nil {
		return 0, &AnswerError{fmt.Errorf("%s is %.32q, want a number", wire.PropStatus, text)}
	}
	return status, nil
}
