package format

import (
	"fmt"
	"strings"
	"time"

	"github.com/fatih/color"
)

// LockEvent is a line of `lock trace`: what happened to a lock, or to a key that the lock guards.
type LockEvent struct {
	What  string // what happened: one of the constants of package locklog
	Event string // the event of the watch: initial, set, delete, other, gap, resync or error

	Name  string // of the lock or, if Guard is set, the key
	Guard bool

	Held     bool   // the lock is held after the event
	Holder   string // the current holder or, if the lock is free, the last one
	NoHolder bool   // Holder is not known
	Before   string // the previous holder, if another holder took the lock over; otherwise empty
	Token    Version
	Time     time.Time

	For     time.Duration // how long the lock had been held or free at the time of the event
	AtLeast bool          // For is a lower bound, because the trace did not see when the lock became held or free
	Unknown bool          // For is not known

	Renewals int           // number of renewals by the holder during the trace
	Every    time.Duration // the mean time between renewals; 0 = unknown

	Inferred bool   // the event alone does not prove What
	Why      string // the evidence for What, or why What is uncertain; may be empty

	Word       string    // for other: the store's name for the operation
	Continuity string    // for gap and resync
	From, To   time.Time // for gap
}

func (e LockEvent) knowsHolder() bool {
	return !e.Guard && !e.NoHolder && e.What != "free" && e.What != "gap" && e.What != "lost"
}

func (e LockEvent) fields(o *objectWriter) {
	name := "name"
	if e.Guard {
		name = "key"
	}
	known := e.What != "gap" && e.What != "lost" && !e.Guard
	was := "held_ms"
	if e.What == "acquired" || e.What == "taken_over" || e.What == "free" {
		was = "free_ms"
	}
	timed := known && !e.Unknown
	o.add("op", "lock_trace")
	o.add("what", e.What)
	o.add(name, e.Name)
	o.add("held", when(known, e.Held))
	o.add("holder", when(e.knowsHolder(), e.Holder))
	o.add("before", nonEmpty(e.Before))
	o.add("token", e.Token)
	o.add(was, when(timed, e.For))
	o.add("at_least", when(timed && e.AtLeast, true))
	o.add("renewals", when(known && e.Renewals > 0, e.Renewals))
	o.add("renewal_interval_ms", when(known && e.Every > 0, e.Every))
	o.add("inferred", e.Inferred)
	o.add("why", nonEmpty(e.Why))
	o.add("event", e.Event)
	o.add("word", nonEmpty(e.Word))
	o.add("continuity", nonEmpty(e.Continuity))
	o.add("from", when(!e.From.IsZero(), e.From))
	o.add("to", when(!e.To.IsZero(), e.To))
	o.add("time", e.Time)
}

// whatColumns is the width of the column that shows LockEvent.What.
const whatColumns = len("changed hands")

// whatText returns LockEvent.What as text. It calls a release "released or deleted", because a release
// by the holder and a deletion by another client look the same.
func whatText(what string) string {
	if what == "released" {
		return "released or deleted"
	}
	return strings.ReplaceAll(what, "_", " ")
}

// paint returns the color for e.What, or nil for no color.
func (e LockEvent) paint(s *style) *color.Color {
	switch e.What {
	case "expired", "taken_over", "changed_hands", "deleted", "gap", "lost", "other":
		return s.warning
	}
	return nil
}

func (e LockEvent) human(w *writer) {
	phrases := []part{
		{clock(e.Time), w.faint},
		{fmt.Sprintf("%-*s", whatColumns, whatText(e.What)), e.paint(&w.style)},
		{Word(e.Name), w.key},
	}
	if e.What == "gap" {
		w.phrases(append(phrases, part{"continuity " + e.Continuity + ", not watched from " + clock(e.From) + " to " + clock(e.To), w.warning}))
		return
	}
	if text := e.who(&w.style); text != "" {
		phrases = append(phrases, part{text: text})
	}
	if notes := e.notes(); len(notes) > 0 {
		phrases = append(phrases, part{text: "(" + strings.Join(notes, "; ") + ")"})
	}
	word := "token "
	if e.Guard {
		word = "version "
	}
	if !e.Token.IsZero() {
		phrases = append(phrases, part{word + versionText(e.Token, ""), w.faint})
	}
	w.phrases(phrases)
}

// who returns, in words, the holder that the event concerns, or "" if there is none. For a delete
// event, it returns "held by …", because the event does not say who deleted the key.
func (e LockEvent) who(s *style) string {
	by := "by "
	if e.Event == "delete" {
		by = "held by "
	}
	switch {
	case e.knowsHolder() && e.Before != "":
		return by + s.holder(e.Holder) + " from " + s.holder(e.Before)
	case e.knowsHolder():
		return by + s.holder(e.Holder)
	case e.NoHolder && !e.Guard:
		return by + "an unknown holder"
	}
	return ""
}

// notes returns, in words, how often the lock was renewed, how long it was held or free, and e.Why.
// It omits what is not known.
func (e LockEvent) notes() (notes []string) {
	if e.What == "renewed" || e.Renewals > 0 {
		notes = append(notes, renewedTimes(e.Renewals, e.Every))
	}
	if text := e.duration(); text != "" {
		notes = append(notes, text)
	}
	switch {
	case e.Why != "" && e.Inferred:
		notes = append(notes, "inferred: "+printable(e.Why))
	case e.Why != "":
		notes = append(notes, printable(e.Why))
	}
	return notes
}

// renewedTimes returns, in words, how often a lock was renewed. every is the mean time between two
// renewals; 0 = unknown.
func renewedTimes(n int, every time.Duration) string {
	text := "renewed once"
	if n != 1 {
		text = fmt.Sprintf("renewed %d times", n)
	}
	if every > 0 {
		text += ", every " + Span(every)
	}
	return text
}

// Renewing returns one printable line with the lock, its holder and the number of renewals. ago is
// the time since the last renewal.
func (e LockEvent) Renewing(ago time.Duration) string {
	return BriefWord(e.Name) + " held by " + Brief(e.Holder) + ": " + renewedTimes(e.Renewals, e.Every) + ", last " + Age(ago)
}

// duration returns, in words, how long the lock was held or free, or "" if that is not known.
func (e LockEvent) duration() string {
	if e.Unknown || e.Guard {
		return ""
	}
	state := "held"
	switch e.What {
	case "acquired", "taken_over", "free":
		state = "free"
	case "lost", "other":
		return ""
	}
	text := state + " for "
	if e.AtLeast {
		text += "at least "
	}
	if e.What == "changed_hands" {
		// How long it was held is not known: its deletion may have gone unnoticed.
		return "the previous holder was first seen " + Span(e.For) + " before"
	}
	return text + Span(e.For)
}

// raw writes e.What, the lock or key, the holder, the token, the time in milliseconds for which the
// lock was held or free, and `inferred` or `seen`. For a gap it writes `gap`, the lock,
// the continuity, and when the gap began and ended.
func (e LockEvent) raw(w *writer) {
	if e.What == "gap" {
		w.record(e.What, e.Name, e.Continuity, e.From, e.To)
		return
	}
	source := "seen"
	if e.Inferred {
		source = "inferred"
	}
	w.record(e.What, e.Name, when(e.knowsHolder(), e.Holder), e.Token, when(e.duration() != "", e.For.Milliseconds()), source)
}
