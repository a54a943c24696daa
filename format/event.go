package format

import "time"

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
}

// isState reports whether the event is the state of the key rather than a change.
func (e Event) isState() bool { return e.Op == "initial" || e.Op == "resync" }

// isTrouble reports whether the event is about the watch, rather than about the key.
func (e Event) isTrouble() bool { return e.Op == "error" || e.Op == "unaudited" }

func (e Event) fields() object {
	o := append(make(object, 0, 9), // room for these and the time
		field{"op", e.Op},
		field{"key", when(e.Op != "unaudited", e.Key)},
		field{"found", when(e.isState(), e.HasValue)},
		field{"value", when(e.HasValue, string(e.Value))},
		field{"word", nonEmpty(e.Word)},
		field{"version", versionField(e.Version)},
		field{"continuity", nonEmpty(e.Continuity)},
		field{"message", nonEmpty(e.Message)},
	)
	if e.Op == "gap" {
		o = append(o, field{"from", e.From}, field{"to", e.To}, field{"outage_ms", milliseconds(e.To.Sub(e.From))})
	}
	return append(o, field{"time", e.Time})
}

func (e Event) human(dst []byte, s *style) []byte {
	clock := func(t time.Time) string { return t.UTC().Format("15:04:05.000") }
	dst = append(dst, s.faint.Sprint(clock(e.Time))...)
	dst = append(dst, "  "...)
	op := e.Op
	for len(op) < len("initial") {
		op += " "
	}
	if e.Op == "gap" {
		op = s.warning.Sprint(op)
	}
	if e.isTrouble() {
		op = s.warning.Sprint(op)
	}
	dst = append(dst, op...)
	part := func(text string) { dst = append(append(dst, "  "...), text...) }
	if e.Op != "unaudited" {
		part(s.key.Sprint(Word(e.Key)))
	}
	switch {
	case e.isTrouble():
		part(s.warning.Sprint(Escape(e.Message)))
		return append(dst, '\n')
	case e.Op == "gap":
		part(s.warning.Sprint("continuity " + e.Continuity + ", not watched from " + clock(e.From) + " to " + clock(e.To)))
		return append(dst, '\n')
	case e.HasValue:
		part(Quote(e.Value))
	case e.isState():
		part("(nil)")
	case e.Op == "set":
		part("(value not sent)")
	case e.Word != "":
		part(Quote(e.Word))
	}
	if e.HasValue || !e.isState() {
		part(s.faint.Sprint(string(appendVersion(nil, e.Version, "version unknown"))))
	}
	if e.Continuity != "" {
		part(s.faint.Sprint("(" + e.Continuity + ")"))
	}
	return append(dst, '\n')
}

// raw writes OP, KEY and VERSION, then Word or the value if there is one. For a gap it
// writes OP, KEY, the continuity, and when the gap began and ended; for error OP, KEY and
// the message, for unaudited OP and the message.
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
	if e.HasValue {
		dst = AppendEscape(append(dst, '\t'), e.Value)
	}
	return append(dst, '\n')
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
	return append(append(dst, s.faint.Sprintf("%s  end      %s, changes: %d", e.Time.UTC().Format("15:04:05.000"), e.Reason, e.Events)...), '\n')
}

func (e End) raw(dst []byte) []byte {
	return append(append(append(dst, "end\t"...), e.Reason...), '\n')
}
