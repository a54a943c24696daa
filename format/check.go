package format

import (
	"fmt"
	"strings"
	"time"
)

// The outcomes of a Check.
const (
	Pass = "pass"
	Warn = "warn"
	Fail = "fail"
	Skip = "skip" // not checked; Message says why
)

// Check is the result of one check of `doctor`.
type Check struct {
	Name    string // identifies the check for programs
	Status  string // Pass, Warn, Fail or Skip
	Message string
	Hint    string        // the next thing to try; empty: none
	Took    time.Duration // 0: not measured
	Facts   []Fact
}

// A Fact is a detail that a check found.
type Fact struct {
	Name, Value string
	Source      string // of a setting: where its value comes from
}

func (c Check) fields() object {
	var facts list
	for _, f := range c.Facts {
		facts = append(facts, object{{"name", f.Name}, {"value", nonEmpty(f.Value)}, {"source", nonEmpty(f.Source)}})
	}
	return object{
		{"op", "check"},
		{"check", c.Name},
		{"status", c.Status},
		{"message", valid(c.Message)},
		{"hint", nonEmpty(valid(c.Hint))},
		{"took_ms", rtt(c.Took)},
		{"facts", when(len(facts) > 0, facts)},
	}
}

func (c Check) human(dst []byte, s *style) []byte {
	mark := strings.ToUpper(c.Status)
	switch c.Status {
	case Warn:
		mark = s.warning.Sprint(mark)
	case Fail:
		mark = s.fail.Sprint(mark)
	case Skip:
		mark = s.faint.Sprint(mark)
	}
	dst = append(append(dst, mark...), "  "...)
	dst = fmt.Appendf(dst, "%-13s  ", c.Name)
	dst = appendText(dst, c.Message)
	if c.Took != 0 {
		dst = append(dst, s.faint.Sprint("  "+string(appendMilliseconds(nil, c.Took))+" ms")...)
	}
	if c.Hint != "" {
		dst = appendText(append(dst, "\n      try: "...), c.Hint)
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
		dst = append(append(dst, "\n      "...), s.faint.Sprint(string(appendText(nil, line)))...)
	}
	return append(dst, '\n')
}

// raw writes the status, the name, the message and, if there is one, the hint.
func (c Check) raw(dst []byte) []byte {
	dst = append(append(append(append(dst, c.Status...), '\t'), c.Name...), '\t')
	dst = AppendEscape(dst, c.Message)
	if c.Hint != "" {
		dst = AppendEscape(append(dst, '\t'), c.Hint)
	}
	return append(dst, '\n')
}

// CheckSummary ends the output of `doctor`.
type CheckSummary struct {
	Passed, Warned, Failed, Skipped int
}

func (c CheckSummary) fields() object {
	return object{
		{"op", "check_summary"},
		{"passed", c.Passed},
		{"warned", c.Warned},
		{"failed", c.Failed},
		{"skipped", c.Skipped},
	}
}

func (c CheckSummary) human(dst []byte, s *style) []byte {
	count := func(n int, paint func(a ...any) string, one, many string) string {
		text := fmt.Sprintf("%d %s", n, many)
		if n == 1 {
			text = "1 " + one
		}
		if n > 0 {
			return paint(text)
		}
		return text
	}
	return fmt.Appendf(dst, "%d passed, %s, %s, %d not checked\n", c.Passed,
		count(c.Warned, s.warning.Sprint, "warning", "warnings"), count(c.Failed, s.fail.Sprint, "failure", "failures"), c.Skipped)
}

// raw begins with a word that is not a status.
func (c CheckSummary) raw(dst []byte) []byte {
	return fmt.Appendf(dst, "summary\t%d\t%d\t%d\t%d\n", c.Passed, c.Warned, c.Failed, c.Skipped)
}
