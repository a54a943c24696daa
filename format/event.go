package format

import (
	"time"

	"github.com/fatih/color"
)

// Event is an event of `watch`.
type Event struct {
	Op      string  // initial, found, set, delete, other, gap, resync, error or unaudited
	Key     string  // empty for unaudited
	Version Version // for gap and error: the last known version
	Time    time.Time

	Value    []byte
	HasValue bool   // false for a deletion, a missing key, and a set without a value
	Word     string // for other: the store's name for the operation

	Continuity string    // for found, gap and resync: proven, lost or unknown
	From, To   time.Time // for gap: only events between From and To may be missing; for found: the key appeared between From and To
	Message    string    // for error and unaudited: the reason

	Show Show // how the human form shows the value

	// Field is the change of the field that `watch --field` names. Without --field, Field.Path is
	// empty. If isState returns true, Field.Old is the last known value. For a set without a value,
	// the new value of the field is unknown.
	Field FieldChange
}

// isState reports whether the event shows the state of the key rather than a change.
func (e Event) isState() bool { return e.Op == "initial" || e.Op == "found" || e.Op == "resync" }

func (e Event) isChange() bool { return !e.isState() && !e.isTrouble() && e.Op != "gap" }

// isTrouble reports whether the event is about the watch, rather than about the key.
func (e Event) isTrouble() bool { return e.Op == "error" || e.Op == "unaudited" }

func (e Event) fields(o *objectWriter) {
	o.add("op", e.Op)
	o.add("key", when(e.Op != "unaudited", e.Key))
	o.add("found", when(e.isState(), e.HasValue))
	o.add("value", when(e.HasValue, e.Value))
	o.add("word", nonEmpty(e.Word))
	o.add("version", e.Version)
	o.add("continuity", nonEmpty(e.Continuity))
	o.add("message", nonEmpty(e.Message))
	if e.Field.Path != "" && !e.isTrouble() && e.Op != "gap" {
		e.Field.write(o, "field")
	}
	if e.Op == "gap" || e.Op == "found" {
		o.add("from", e.From)
		o.add("to", e.To)
	}
	if e.Op == "gap" {
		o.add("outage_ms", e.To.Sub(e.From))
	}
	o.add("time", e.Time)
}

func (e Event) human(w *writer) { w.row(e) }

// cells returns the time, the event, the key, the version, and the content.
func (e Event) cells(s *style) []cell {
	key, version := Word(e.Key), ""
	if e.Op == "unaudited" { // it concerns all keys
		key = ""
	}
	if e.isChange() || e.isState() && e.HasValue {
		version = versionText(e.Version, "version unknown")
	}
	return []cell{
		{text: clock(e.Time), paint: s.faint},
		{text: e.Op, paint: e.paint(s)},
		{text: key, paint: s.key, keep: true},
		{text: version, paint: s.faint, least: versionColumns, keep: true},
		e.content(s),
	}
}

// paint returns the color for e.Op, or nil for no color.
func (e Event) paint(s *style) *color.Color {
	switch {
	case e.isTrouble(), e.Op == "gap":
		return s.warning
	case e.Op == "set", e.Op == "found":
		return s.set
	case e.Op == "delete":
		return s.deleted
	}
	return nil
}

// content returns the last cell: the value or, if the event has none, a message.
func (e Event) content(s *style) cell {
	var text string
	switch {
	case e.isTrouble():
		return cell{text: Escape(e.Message), paint: s.warning, whole: true}
	case e.Op == "gap":
		return cell{text: "continuity " + e.Continuity + ", not watched from " + clock(e.From) + " to " + clock(e.To), paint: s.warning, whole: true}
	case e.Op == "set" && !e.HasValue:
		text = "(value not sent)"
	case e.Field.Path != "" && e.isState():
		text = e.Field.path() + "  " + fieldText(e.Field.New)
	case e.Field.Path != "":
		text = e.Field.path() + "  " + e.Field.arrow()
	case e.HasValue:
		text = ValueLine(e.Value, e.Show)
	case e.isState():
		text = "(nil)"
	case e.Word != "":
		text = Quote(e.Word)
	}
	switch {
	case e.Op == "found":
		text = "(unknown since " + clock(e.From) + ")  " + text
	case e.Continuity != "":
		text = "(" + e.Continuity + ")  " + text
	}
	return cell{text: text}
}

func clock(t time.Time) string { return t.UTC().Format("15:04:05.000Z") }

// raw writes these fields:
//   - unaudited: Op and Message
//   - error: Op, Key and Message
//   - gap: Op, Key, Continuity, From and To
//   - found: Op, Key, Version, Continuity, From, To and, if there is one, Value
//   - all other events: Op, Key, Version and, if they are set, Word and Value
//
// With --field, the old and the new JSON of the field replace Value. There, - stands for a missing
// field, and ? for an unknown one.
func (e Event) raw(w *writer) {
	switch e.Op {
	case "unaudited":
		w.record(e.Op, e.Message)
		return
	case "error":
		w.record(e.Op, e.Key, e.Message)
		return
	case "gap":
		w.record(e.Op, e.Key, e.Continuity, e.From, e.To)
		return
	}
	absent := "?"
	if e.isState() && !e.HasValue {
		absent = "-"
	}
	record := append(make([]any, 0, 8), e.Op, e.Key, versionOr(e.Version, absent))
	if e.Word != "" {
		record = append(record, e.Word)
	}
	if e.Op == "found" {
		record = append(record, e.Continuity, e.From, e.To)
	}
	switch {
	case e.Field.Path != "" && e.Op == "set" && !e.HasValue:
		record = append(record, nonEmpty(e.Field.Old), "?")
	case e.Field.Path != "":
		record = append(record, nonEmpty(e.Field.Old), nonEmpty(e.Field.New))
	case e.HasValue:
		record = append(record, e.Value)
	}
	w.record(record...)
}

// End is the line that `watch` and `lock trace` print after the last event.
type End struct {
	Reason string    `json:"reason"` // why the watch ended, in one word
	Events int       `json:"events"` // the number of changes
	Time   time.Time `json:"time"`
}

// Ready is the message that a watch of many keys has read all of them.
type Ready struct {
	Keys int       `json:"keys"` // the number of keys that are watched
	Time time.Time `json:"time"`
}

func (e Ready) fields(o *objectWriter) { o.result("ready", e) }

func (e Ready) human(w *writer) {
	w.print(w.faint.Sprintf("%s  ready    %s", clock(e.Time), Count(e.Keys, "key")), "\n")
}

func (e Ready) raw(w *writer) { w.record("ready", e.Keys) }

func (e End) fields(o *objectWriter) { o.result("end", e) }

func (e End) human(w *writer) {
	w.print(w.faint.Sprintf("%s  end      %s, changes: %d", clock(e.Time), e.Reason, e.Events), "\n")
}

func (e End) raw(w *writer) { w.record("end", e.Reason) }
