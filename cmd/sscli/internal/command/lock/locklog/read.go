package locklog

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/format"
)

// End is the kind of the last event in a recorded stream, which has a time but no key.
const End client.EventKind = "end"

// A record is a parsed line of `lock trace -o json` or `watch -o json`.
type record struct {
	Op, What, Event, Continuity string
	Held                        bool
	Token, Version              client.Version
	From, To, Time              time.Time

	fields map[string]json.RawMessage
}

// text returns the text of the named field, and reports whether the record has the field. If the
// text is not UTF-8, it is encoded in base64, in a field with the suffix _b64.
func (r record) text(name string) (string, bool) {
	var text *string
	if err := json.Unmarshal(r.fields[name], &text); err == nil && text != nil {
		return *text, true
	}
	var b []byte
	err := json.Unmarshal(r.fields[name+"_b64"], &b)
	return string(b), err == nil && b != nil
}

// ErrIncomplete is the error for a line that ends in the middle of a JSON object.
var ErrIncomplete = errors.New("unexpected end of JSON input")

// Read parses a line that `lock trace -o json` or `watch -o json` printed. guard reports whether the
// event is about a guarded key. ok is false for a line without an event, such as a warning. The error
// says what was expected.
func Read(line []byte) (e client.Event, guard, ok bool, err error) {
	var r record
	if err = json.Unmarshal(line, &r); err == nil {
		err = json.Unmarshal(line, &r.fields)
	}
	if err != nil {
		if errors.Is(json.NewDecoder(bytes.NewReader(line)).Decode(new(json.RawMessage)), io.ErrUnexpectedEOF) {
			err = ErrIncomplete
		}
		return e, false, false, fmt.Errorf("expected a JSON object, as lock trace -o json and watch -o json print: %w", err)
	}
	switch r.Op {
	case "lock_trace":
		return r.lockEvent()
	case "lock_timeline", "warning", "notice", "ready", "unaudited":
		return e, false, false, nil
	case string(End):
		return client.Event{Kind: End, Time: r.Time}, false, true, r.checkTime()
	}
	e, err = r.watchEvent()
	if r.Op == string(client.EventError) && e.Key == "" {
		return e, false, false, nil // not an event: the error that ended the command
	}
	return e, false, err == nil, err
}

func (r record) checkTime() error {
	if r.Time.IsZero() {
		return fmt.Errorf("the field time of %s is missing", format.Quote(r.Op))
	}
	return nil
}

func (r record) watchEvent() (client.Event, error) {
	e := client.Event{Kind: client.EventKind(r.Op), Time: r.Time, Version: r.Version, Continuity: client.Continuity(r.Continuity), From: r.From, To: r.To}
	switch e.Kind {
	case client.EventInitial, client.EventFound, client.EventSet, client.EventDelete, client.EventOther, client.EventGap, client.EventResync:
	case client.EventError:
		text, _ := r.text("message")
		e.Err = errors.New(text)
	default:
		return e, fmt.Errorf("the operation %s: expected a line of lock trace -o json or watch -o json", format.Quote(r.Op))
	}
	e.Key, _ = r.text("key")
	value, has := r.text("value")
	e.Value, e.HasValue = []byte(value), has
	e.Word, _ = r.text("word")
	if e.Key == "" && e.Kind != client.EventError {
		return e, fmt.Errorf("the field key of %s is missing", format.Quote(r.Op))
	}
	return e, r.checkTime()
}

// statements are the values of LockEvent.What.
var statements = [...]string{Held, Free, Acquired, Renewed, Released, Expired, Deleted, TakenOver, ChangedHands, Rewritten, Gap, Lost, Other, Written, Removed}

// lockEvent returns the event in a line of lock trace. guard reports whether the event is about a
// guarded key.
func (r record) lockEvent() (e client.Event, guard, ok bool, err error) {
	if !slices.Contains(statements[:], r.What) {
		return e, false, false, fmt.Errorf("the statement %s: expected one of lock trace", format.Quote(r.What))
	}
	e = client.Event{Kind: client.EventKind(r.Event), Time: r.Time, Version: r.Token, Continuity: client.Continuity(r.Continuity), From: r.From, To: r.To}
	e.Key, ok = r.text("name")
	if !ok {
		e.Key, guard = r.text("key")
	}
	if e.Key == "" {
		return e, false, false, errors.New("the field name of a lock is missing")
	}
	holder, has := r.text("holder")
	switch e.Kind {
	case client.EventSet:
		e.Value, e.HasValue = []byte(holder), has
	case client.EventInitial, client.EventResync:
		e.Value, e.HasValue = []byte(holder), r.Held
		if guard {
			e.HasValue = r.What == Written
		}
	case client.EventDelete, client.EventGap:
	case client.EventOther:
		e.Word, _ = r.text("word")
	case client.EventError:
		text, _ := r.text("why")
		e.Err = errors.New(text)
	default:
		return e, false, false, fmt.Errorf("the event %s: expected one of watch", format.Quote(r.Event))
	}
	return e, guard, true, r.checkTime()
}
