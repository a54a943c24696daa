package format

import (
	"fmt"
	"strings"
	"time"
)

// LockEvent is a line of `lock trace`: what happened to a lock, or to a key that it guards.
type LockEvent struct {
	What  string // see package locklog
	Event string // the event of the watch: initial, set, delete, other, gap, resync or error

	Name  string // of the lock or, if Guard, the key
	Guard bool

	Held     bool   // after the event
	Holder   string // the present holder of the lock or, if it is free, the last one
	NoHolder bool   // Holder is not known
	Before   string // the previous holder of a lock that changed hands
	Token    Version
	Time     time.Time

	For     time.Duration // how long the lock was held or free; for renewed and held, so far
	AtLeast bool          // For counts from the beginning of the trace, and the true time may be longer
	Unknown bool          // For is not known

	Renewals int           // by the holder that were seen
	Every    time.Duration // the mean time between renewals; 0: unknown

	Inferred bool   // the event alone does not prove What
	Why      string // the evidence for What, or the reason why it is uncertain; may be empty

	Word       string    // for other: the store's name of the operation
	Continuity string    // for gap and resync
	From, To   time.Time // for gap
}

// has reports whether the event concerns a holder.
func (e LockEvent) has() bool {
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
	o.add("holder", when(e.has(), e.Holder))
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

// whatWidth is the length of the longest of the words below.
const whatWidth = len("changed hands")

func (e LockEvent) human(dst []byte, s *style) []byte {
	what := strings.ReplaceAll(e.What, "_", " ")
	padded := what + strings.Repeat(" ", max(0, whatWidth-len(what)))
	switch e.What {
	case "expired", "taken_over", "changed_hands", "deleted", "gap", "lost", "other":
		padded = s.warning.Sprint(padded)
	}
	dst = append(dst, s.faint.Sprint(e.Time.UTC().Format("15:04:05.000"))...)
	dst = append(append(dst, "  "...), padded...)
	part := func(text string) { dst = append(append(dst, "  "...), text...) }
	part(s.key.Sprint(Word(e.Name)))
	if e.What == "gap" {
		part(s.warning.Sprint("continuity " + e.Continuity + ", not watched from " + e.From.UTC().Format("15:04:05.000") + " to " + e.To.UTC().Format("15:04:05.000")))
		return append(dst, '\n')
	}
	switch {
	case e.has() && e.Before != "":
		part("by " + Brief(e.Holder) + " from " + Brief(e.Before))
	case e.has():
		part("by " + Brief(e.Holder))
	case e.NoHolder && !e.Guard:
		part("by an unknown holder")
	}
	var notes []string
	if e.What == "renewed" || e.Renewals > 0 {
		notes = append(notes, renewedTimes(e.Renewals, e.Every))
	}
	if text := e.duration(); text != "" {
		notes = append(notes, text)
	}
	if e.Why != "" {
		why := string(appendText(nil, e.Why))
		if e.Inferred {
			why = "inferred: " + why
		}
		notes = append(notes, why)
	}
	if len(notes) > 0 {
		part("(" + strings.Join(notes, "; ") + ")")
	}
	if !none(e.Token) {
		word := "token "
		if e.Guard {
			word = "version "
		}
		part(s.faint.Sprint(string(appendVersion([]byte(word), e.Token, ""))))
	}
	return append(dst, '\n')
}

// renewedTimes returns how often a lock was renewed, in words.
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

// Renewing returns one printable line about how often a lock was renewed and how long ago the
// last renewal was.
func (e LockEvent) Renewing(ago time.Duration) string {
	return BriefWord(e.Name) + " held by " + Brief(e.Holder) + ": " + renewedTimes(e.Renewals, e.Every) + ", last " + Age(ago)
}

// duration returns how long the lock was held or free, in words.
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
		return "before that " + text + Span(e.For)
	}
	return text + Span(e.For)
}

// raw writes what happened, the lock or key, the holder, the token, how long the lock was
// held or free in milliseconds, and `inferred` or `seen`. For a gap it writes the word, the
// lock, the continuity, and when the gap began and ended.
func (e LockEvent) raw(dst []byte) []byte {
	if e.What == "gap" {
		return appendRecord(dst, e.What, e.Name, e.Continuity, e.From, e.To)
	}
	source := "seen"
	if e.Inferred {
		source = "inferred"
	}
	return appendRecord(dst, e.What, e.Name, when(e.has(), e.Holder), e.Token, when(e.duration() != "", e.For.Milliseconds()), source)
}
