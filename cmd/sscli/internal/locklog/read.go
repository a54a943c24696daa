package locklog

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/format"
)

// End is the kind of the event with which a recorded stream ends. It has a time and no key.
const End client.EventKind = "end"

// A record is a line of a recorded stream: of `lock trace -o json` or `watch -o json`.
type record struct {
	Op         string         `json:"op"`
	What       string         `json:"what"`
	Event      string         `json:"event"`
	Name       *string        `json:"name"`
	NameB64    []byte         `json:"name_b64"`
	Key        *string        `json:"key"`
	KeyB64     []byte         `json:"key_b64"`
	Held       bool           `json:"held"`
	Found      bool           `json:"found"`
	Holder     *string        `json:"holder"`
	HolderB64  []byte         `json:"holder_b64"`
	Value      *string        `json:"value"`
	ValueB64   []byte         `json:"value_b64"`
	Word       *string        `json:"word"`
	WordB64    []byte         `json:"word_b64"`
	Why        *string        `json:"why"`
	WhyB64     []byte         `json:"why_b64"`
	Message    *string        `json:"message"`
	MessageB64 []byte         `json:"message_b64"`
	Token      client.Version `json:"token"`
	Version    client.Version `json:"version"`
	Continuity string         `json:"continuity"`
	From       time.Time      `json:"from"`
	To         time.Time      `json:"to"`
	Time       time.Time      `json:"time"`
}

// pick returns the bytes of a field of text, and whether there are any.
func pick(text *string, b64 []byte) (string, bool) {
	if text != nil {
		return *text, true
	}
	return string(b64), b64 != nil
}

// Read makes an event of a line that `lock trace -o json` or `watch -o json` printed. guard
// says that the line is about a guarded key. ok is false for a line that is about no key,
// such as a warning. The error says what was expected.
func Read(line []byte) (e client.Event, guard, ok bool, err error) {
	var r record
	if err := json.Unmarshal(line, &r); err != nil {
		return e, false, false, fmt.Errorf("want a JSON object, as lock trace -o json and watch -o json print: %w", err)
	}
	switch r.Op {
	case "lock_trace":
		return r.traced()
	case "lock_timeline", "warning", "notice", "unaudited":
		return e, false, false, nil
	case string(End):
		return client.Event{Kind: End, Time: r.Time}, false, true, r.dated()
	}
	e, err = r.watched()
	if r.Op == string(client.EventError) && e.Key == "" {
		return e, false, false, nil // the error that ended the command
	}
	return e, false, err == nil, err
}

func (r record) dated() error {
	if r.Time.IsZero() {
		return fmt.Errorf("the field time of %s is missing", format.Quote(r.Op))
	}
	return nil
}

// watched reads an event of watch.
func (r record) watched() (client.Event, error) {
	e := client.Event{Kind: client.EventKind(r.Op), Time: r.Time, Version: r.Version, Continuity: client.Continuity(r.Continuity), From: r.From, To: r.To}
	switch e.Kind {
	case client.EventInitial, client.EventSet, client.EventDelete, client.EventOther, client.EventGap, client.EventResync:
	case client.EventError:
		text, _ := pick(r.Message, r.MessageB64)
		e.Err = errors.New(text)
	default:
		return e, fmt.Errorf("the operation %s: want a line of lock trace -o json or watch -o json", format.Quote(r.Op))
	}
	e.Key, _ = pick(r.Key, r.KeyB64)
	value, has := pick(r.Value, r.ValueB64)
	e.Value, e.HasValue = []byte(value), has
	e.Word, _ = pick(r.Word, r.WordB64)
	if e.Key == "" && e.Kind != client.EventError {
		return e, fmt.Errorf("the field key of %s is missing", format.Quote(r.Op))
	}
	return e, r.dated()
}

// whats are the statements that See makes.
var whats = [...]string{Held, Free, Acquired, Renewed, Released, Expired, Deleted, TakenOver, ChangedHands, Rewritten, Gap, Lost, Other, Written, Removed}

// traced reads a statement, and gives back the event that it was made of.
func (r record) traced() (e client.Event, guard, ok bool, err error) {
	if !slices.Contains(whats[:], r.What) {
		return e, false, false, fmt.Errorf("the statement %s: want one of lock trace", format.Quote(r.What))
	}
	e = client.Event{Kind: client.EventKind(r.Event), Time: r.Time, Version: r.Token, Continuity: client.Continuity(r.Continuity), From: r.From, To: r.To}
	e.Key, ok = pick(r.Name, r.NameB64)
	if !ok {
		e.Key, guard = pick(r.Key, r.KeyB64)
	}
	if e.Key == "" {
		return e, false, false, errors.New("the field name of a lock is missing")
	}
	holder, has := pick(r.Holder, r.HolderB64)
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
		e.Word, _ = pick(r.Word, r.WordB64)
	case client.EventError:
		text, _ := pick(r.Why, r.WhyB64)
		e.Err = errors.New(text)
	default:
		return e, false, false, fmt.Errorf("the event %s: want one of watch", format.Quote(r.Event))
	}
	return e, guard, true, r.dated()
}
