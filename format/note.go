package format

import (
	"strconv"
	"time"
)

// A Note is a message for standard error that is not an error: it does not change the exit
// code.
type Note struct {
	Level   Level
	Line    int       `json:"line,omitzero"` // line number in the batch, from 1; 0 = none
	Message string    `json:"message"`
	Hint    string    `json:"hint,omitzero"` // the next thing to try; empty = none
	Time    time.Time `json:"time,omitzero"` // time of the event; zero = not shown
}

// A Level is the purpose of a Note. The json output prints the Level as the field op.
type Level string

// The levels of a Note. An Aside and a Remark have only a Message.
const (
	Warning Level = "warning" // something may be wrong
	Notice  Level = "notice"  // information: what sscli is doing or waiting for
	Aside   Level = "aside"   // the shell's comment on the last command
	Remark  Level = "say"     // an explanation of the next commands; the raw form omits it
)

func (Note) diagnostic() {}

func (n Note) fields(o *objectWriter) {
	n.Message, n.Hint = valid(n.Message), valid(n.Hint)
	if n.Level == Aside || n.Level == Remark {
		o.add("op", string(n.Level))
		o.add("text", n.Message)
		return
	}
	o.result(string(n.Level), n)
}

func (n Note) human(w *writer) {
	switch n.Level {
	case Aside:
		w.print(w.faint.Sprint("("+printable(n.Message)+")"), "\n")
	case Remark:
		w.print(w.key.Sprint(Escape(n.Message)), "\n")
	default:
		w.print("sscli: ")
		if n.Level == Warning {
			w.print(w.warning.Sprint("warning:"), " ")
		}
		if !n.Time.IsZero() {
			w.out = append(appendTime(w.out, n.Time), ' ')
		}
		w.message(n.Line, n.Message, n.Hint)
	}
}

func (n Note) raw(w *writer) {
	switch n.Level {
	case Aside:
		w.print(printable(n.Message), "\n")
	case Remark:
	default:
		n.human(w) // w has no colors in this output
	}
}

// Elapsed is the time that a command took, for standard error.
type Elapsed struct {
	Took time.Duration `json:"elapsed_ms"`
}

func (Elapsed) diagnostic() {}

func (e Elapsed) fields(o *objectWriter) { o.result("time", e) }

func (e Elapsed) human(w *writer) { w.print(w.faint.Sprint("took "+seconds(e.Took)), "\n") }

func (e Elapsed) raw(w *writer) { w.record("time", seconds(e.Took)) }

func seconds(d time.Duration) string {
	return strconv.FormatFloat(d.Seconds(), 'f', 3, 64) + "s"
}
