package client

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/sscli/sscli/client/mqtt"
	"github.com/sscli/sscli/client/wire"
)

// A Reply is the store's answer to a Command. It has only values that the
// command can have.
type Reply struct {
	Value   wire.Value
	Version wire.Version  // of the key, see protocol.md 3.6; zero if the store gave none
	RTT     time.Duration // from the request's handover to the reply's arrival

	// Warnings are things that the operator should know, Notes are departures
	// from the protocol that did no harm.
	Warnings, Notes []string
}

// Bytes returns the value that Get found; ok is false if the key is missing.
func (r Reply) Bytes() (value []byte, ok bool) {
	return r.Value.Text, r.Value.Kind == wire.Blob
}

// OK tells whether Set stored the value; if not, its condition was not met.
func (r Reply) OK() bool { return r.Value.Kind == wire.SimpleString }

// Count is the number that Del and VDel answered.
func (r Reply) Count() int64 { return r.Value.Int }

// newReply reads an answer in the order of protocol.md 1.7. now is the local
// time for judging the store's clock.
func newReply(c Command, m mqtt.Message, now time.Time) (Reply, error) {
	var r Reply
	if v, ok := m.Property(wire.PropProtocol); ok && v != "1" && !strings.HasPrefix(v, "1.") {
		return r, &AnswerError{fmt.Errorf("unsupported protocol version %.32q, want 1.x", v)}
	}
	status, err := statusOf(m, &r)
	if err != nil {
		return r, err
	}
	answer, err := wire.ParseReply(m.Payload)
	if err == nil && answer.StoreError() != nil {
		return r, answer.StoreError()
	}
	if status != 200 && status != 204 {
		text, _ := m.Property(wire.PropStatusMessage)
		return r, &StatusError{Status: status, Message: text}
	}
	if err != nil {
		return r, &AnswerError{err}
	}
	if answer.Note != "" {
		r.Notes = append(r.Notes, "the answer is "+answer.Note)
	}
	if !c.accepts(answer.Value) {
		return r, &AnswerError{fmt.Errorf("%s was answered with %.80q", c.Verb(), m.Payload)}
	}
	r.Value = answer.Value
	if text, ok := m.Property(wire.PropTimestamp); ok {
		if r.Version, err = wire.ParseVersion(text); err != nil {
			return r, &AnswerError{err}
		}
	} else if c.Verb() == wire.VerbSet && r.OK() || c.Verb() == wire.VerbGet && r.Value.Kind == wire.Blob {
		r.Warnings = append(r.Warnings, "the store sent no version")
	}
	if ahead := r.Version.Time().Sub(now); ahead > wire.MaxDrift {
		r.Warnings = append(r.Warnings, fmt.Sprintf("the version is %v ahead of the local clock: the local clock is slow, or one of the store's writers was fast", ahead.Round(time.Millisecond)))
	}
	if ct := m.ContentType; ct != "" && ct != wire.ContentType && !strings.HasPrefix(ct, wire.ContentType+";") && !strings.HasPrefix(ct, wire.ContentType+"+") {
		r.Notes = append(r.Notes, fmt.Sprintf("the answer's content type is %.80q", ct))
	}
	return r, nil
}

// statusOf reads `__stat`, which the published protocol does not promise.
func statusOf(m mqtt.Message, r *Reply) (int, error) {
	text, ok := m.Property(wire.PropStatus)
	if !ok {
		r.Notes = append(r.Notes, "the answer has no "+wire.PropStatus)
		return 200, nil
	}
	status, err := strconv.Atoi(text)
	if err != nil {
		return 0, &AnswerError{fmt.Errorf("%s is %.32q, want a number", wire.PropStatus, text)}
	}
	return status, nil
}
