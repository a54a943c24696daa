package format

import (
	"time"

	"github.com/fatih/color"
)

// Event is an event of `watch`.
type Event struct {
	Op      string  // initial, set, delete, other, gap, resync, error or unaudited
	Key     string  // empty for unaudited
	Version Version // for gap and error: the last known version
	Time    time.Time

	Value    []byte
	HasValue bool   // false for a deletion, a missing key, and a set without a value
	Word     string // for other: the store's name of the operation

	Continuity string    // for gap and resync: proven, lost or unknown
	From, To   time.Time // for gap: when the watch was interrupted
	Message    string    // for error and unaudited: the reason

	Show Show // how the human form shows the value

	// Field is the field that `watch --field` is about, if it has a path. Of a state, Old is
	// what was known before; of a set without a value, New is not known.
	Field FieldChange
}

// isState reports whether the event is the state of the key rather than a change.
func (e Event) isState() bool { return e.Op == "initial" || e.Op == "resync" }

// isChange reports whether the event is a change of the key.
func (e Event) isChange() bool { return !e.isState() && !e.isTrouble() && e.Op != "gap" }

// isTrouble reports whether the event is about the watch, rather than about the key.
func (e Event) isTrouble() bool { return e.Op == "error" || e.Op == "unaudited" }

func (e Event) fields() object { return collect(e) }

func (e Event) members(m *members) {
	m.text("op", e.Op)
	if e.Op != "unaudited" {
		m.text("key", e.Key)
	}
	if e.isState() {
		m.bool("found", e.HasValue)
	}
	if e.HasValue {
		m.bytes("value", e.Value)
	}
	if e.Word != "" {
		m.text("word", e.Word)
	}
	m.version("version", e.Version)
	if e.Continuity != "" {
		m.text("continuity", e.Continuity)
	}
	if e.Message != "" {
		m.text("message", e.Message)
	}
	if c := e.Field; c.Path != "" && !e.isTrouble() && e.Op != "gap" {
		m.text("field", c.Path)
		if c.Old != "" {
			m.add("old", jsonText(c.Old))
		}
		if c.New != "" {
			m.add("new", jsonText(c.New))
		}
	}
	if e.Op == "gap" {
		m.time("from", e.From)
		m.time("to", e.To)
		m.float("outage_ms", milliseconds(e.To.Sub(e.From)))
	}
	m.time("time", e.Time)
}

func (e Event) human(dst []byte, s *style) []byte { return s.row(dst, e) }

// cells are the time, the event, the key, the version where there is room for it, and what
// the event says.
func (e Event) cells(s *style) []cell {
	key, version := Word(e.Key), ""
	if e.Op == "unaudited" { // it is about all keys
		key = ""
	}
	if e.isChange() || e.isState() && e.HasValue {
		version = string(appendVersion(nil, e.Version, "version unknown"))
	}
	row := []cell{{text: clock(e.Time), paint: s.faint}, {text: e.Op, paint: e.paint(s)}, {text: key, paint: s.key}}
	if s.isWide() {
		row = append(row, cell{text: version, paint: s.faint, least: versionColumns})
	}
	return append(row, e.content(s))
}

// paint returns the color of the word for the event.
func (e Event) paint(s *style) *color.Color {
	switch {
	case e.isTrouble(), e.Op == "gap":
		return s.warning
	case e.Op == "set":
		return s.set
	case e.Op == "delete":
		return s.deleted
	}
	return nil
}

// content returns the last cell.
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
	if e.Continuity != "" {
		text = "(" + e.Continuity + ")  " + text
	}
	return cell{text: text}
}

func clock(t time.Time) string { return t.UTC().Format("15:04:05.000") }

// raw writes OP, KEY and VERSION, then Word or the value if there is one. For a gap it
// writes OP, KEY, the continuity, and when the gap began and ended; for error OP, KEY and
// the message, for unaudited OP and the message. With a Field the old and the new JSON of it
// stand in place of the value: - if the field is missing, ? if it is not known.
func (e Event) raw(dst []byte) []byte {
	dst = append(append(dst, e.Op...), '\t')
	if e.Op != "unaudited" {
		dst = append(AppendEscape(dst, e.Key), '\t')
	}
	if e.isTrouble() {
		return append(AppendEscape(dst, e.Message), '\n')
	}
	if e.Op == "gap" {
		dst = append(append(dst, e.Continuity...), '\t')
		dst = append(appendTime(dst, e.From), '\t')
		return append(appendTime(dst, e.To), '\n')
	}
	absent := "?"
	if e.isState() && !e.HasValue {
		absent = "-"
	}
	dst = appendVersion(dst, e.Version, absent)
	if e.Word != "" {
		dst = AppendEscape(append(dst, '\t'), e.Word)
	}
	switch {
	case e.Field.Path != "":
		now := rawField(e.Field.New)
		if e.Op == "set" && !e.HasValue {
			now = "?"
		}
		dst = AppendEscape(append(dst, '\t'), rawField(e.Field.Old))
		dst = AppendEscape(append(dst, '\t'), now)
	case e.HasValue:
		dst = AppendEscape(append(dst, '\t'), e.Value)
	}
	return append(dst, '\n')
}

func rawField(value string) string {
	if value == "" {
		return "-"
	}
	return value
}

// End is the last line of `watch`.
type End struct {
	Reason string // why the watch ended, in one word
	Events int    // the number of changes
	Time   time.Time
}

func (e End) fields() object {
	return object{{"op", "end"}, {"reason", e.Reason}, {"events", e.Events}, {"time", e.Time}}
}

func (e End) human(dst []byte, s *style) []byte {
	return append(append(dst, s.faint.Sprintf("%s  end      %s, changes: %d", clock(e.Time), e.Reason, e.Events)...), '\n')
}

func (e End) raw(dst []byte) []byte {
	return append(append(append(dst, "end\t"...), e.Reason...), '\n')
}
