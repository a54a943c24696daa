package format

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/fatih/color"
)

// The outcomes of a Check.
const (
	Pass = "pass"
	Warn = "warn"
	Fail = "fail"
	Skip = "skip" // not checked; Message says why
)

// Check is the result of one check of `doctor` or `check`.
type Check struct {
	Name    string        `json:"check"`  // the name of the check
	Status  string        `json:"status"` // Pass, Warn, Fail or Skip
	Message string        `json:"message"`
	Hint    string        `json:"hint,omitzero"`    // the next thing to try; empty = none
	Took    time.Duration `json:"took_ms,omitzero"` // 0 = not measured
	Facts   []Fact        `json:"facts,omitempty"`
}

// A Fact is a detail that a check found.
type Fact struct {
	Name   string
	Value  string
	Number json.RawMessage // in place of Value; the name has the unit
	Source string          // where the value of a setting comes from
}

func (f Fact) fields(o *objectWriter) {
	o.add("name", f.Name)
	if f.Number != nil {
		o.add("value", f.Number)
	} else {
		o.add("value", nonEmpty(f.Value))
	}
	o.add("source", nonEmpty(f.Source))
}

func (c Check) fields(o *objectWriter) {
	c.Message, c.Hint = valid(c.Message), valid(c.Hint)
	o.result("check", c)
}

func (c Check) human(w *writer) {
	mark := strings.ToUpper(c.Status)
	switch c.Status {
	case Warn:
		mark = w.warning.Sprint(mark)
	case Fail:
		mark = w.fail.Sprint(mark)
	case Skip:
		mark = w.faint.Sprint(mark)
	}
	w.printf("%s  %-13s  %s", mark, c.Name, printable(c.Message))
	if c.Took != 0 {
		w.print(w.faint.Sprint("  " + string(appendMilliseconds(nil, c.Took)) + " ms"))
	}
	if c.Hint != "" {
		w.print("\n      try: ", printable(c.Hint))
	}
	width := 0
	for _, f := range c.Facts {
		width = max(width, len(f.Name))
	}
	for _, f := range c.Facts {
		line := fmt.Sprintf("%-*s", width, f.Name)
		if f.Value != "" {
			line += "  " + f.Value
		}
		if f.Source != "" {
			line += "  from " + f.Source
		}
		w.print("\n      ", w.faint.Sprint(printable(line)))
	}
	w.print("\n")
}

// raw writes the status, the name, the message and, if there is one, the hint.
func (c Check) raw(w *writer) {
	if c.Hint == "" {
		w.record(c.Status, c.Name, c.Message)
	} else {
		w.record(c.Status, c.Name, c.Message, c.Hint)
	}
}

// CheckSummary ends the output of `doctor` and `check`.
type CheckSummary struct {
	Passed  int `json:"passed"`
	Warned  int `json:"warned"`
	Failed  int `json:"failed"`
	Skipped int `json:"skipped"`
}

func (c CheckSummary) fields(o *objectWriter) { o.result("check_summary", c) }

func (c CheckSummary) human(w *writer) {
	count := func(n int, noun string, paint *color.Color) string {
		if n == 0 {
			return Count(n, noun)
		}
		return paint.Sprint(Count(n, noun))
	}
	w.printf("%d passed, %s, %s, %d not checked\n", c.Passed,
		count(c.Warned, "warning", w.warning), count(c.Failed, "failure", w.fail), c.Skipped)
}

// raw writes the word summary, which is not a status, so that programs can tell this line from a
// Check, and then the counts.
func (c CheckSummary) raw(w *writer) { w.record("summary", c.Passed, c.Warned, c.Failed, c.Skipped) }
