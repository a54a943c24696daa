package format

import (
	"fmt"
	"time"
	"unicode/utf8"
)

// Fault is an error, for standard error.
type Fault struct {
	Code       int    // exit code
	Kind       string // identifies the kind of error for programs
	Message    string
	StoreError string // the store's error text, if the store refused
	Hint       string // the next thing to try; empty: none
	Outcome    string // "unknown" for a write that may have been applied or not; empty: none
	Line       int    // of a batch, counted from 1; 0: none
}

func (f Fault) fields() object {
	return object{
		{"op", "error"},
		{"code", f.Code},
		{"kind", nonEmpty(f.Kind)},
		{"outcome", nonEmpty(f.Outcome)},
		{"line", when(f.Line > 0, f.Line)},
		{"message", valid(f.Message)},
		{"store_error", nonEmpty(f.StoreError)},
		{"hint", nonEmpty(valid(f.Hint))},
	}
}

func (f Fault) human(dst []byte, s *style) []byte {
	return f.lines(dst, s.fail.Sprint("sscli:"))
}

func (f Fault) raw(dst []byte) []byte { return f.lines(dst, "sscli:") }

func (f Fault) lines(dst []byte, prefix string) []byte {
	return appendHint(appendText(appendLine(append(append(dst, prefix...), ' '), f.Line), f.Message), f.Hint)
}

func appendLine(dst []byte, line int) []byte {
	if line > 0 {
		dst = fmt.Appendf(dst, "line %d: ", line)
	}
	return dst
}

// Warning is a warning, for standard error. It does not change the exit code.
type Warning struct {
	Message string
	Hint    string    // the next thing to try; empty: none
	Line    int       // of a batch, counted from 1; 0: none
	Time    time.Time // when it happened; zero: not shown
}

func (w Warning) fields() object {
	return object{
		{"op", "warning"},
		{"line", when(w.Line > 0, w.Line)},
		{"message", valid(w.Message)},
		{"hint", nonEmpty(valid(w.Hint))},
		{"time", when(!w.Time.IsZero(), w.Time)},
	}
}

func (w Warning) human(dst []byte, s *style) []byte {
	return w.lines(dst, "sscli: "+s.warning.Sprint("warning:"))
}

func (w Warning) raw(dst []byte) []byte { return w.lines(dst, "sscli: warning:") }

func (w Warning) lines(dst []byte, prefix string) []byte {
	dst = appendMoment(append(append(dst, prefix...), ' '), w.Time)
	return appendHint(appendText(appendLine(dst, w.Line), w.Message), w.Hint)
}

// appendMoment appends a time and a space, or nothing for the zero Time.
func appendMoment(dst []byte, t time.Time) []byte {
	if t.IsZero() {
		return dst
	}
	return append(appendTime(dst, t), ' ')
}

func appendHint(dst []byte, hint string) []byte {
	if hint != "" {
		dst = appendText(append(dst, "\n  try: "...), hint)
	}
	return append(dst, '\n')
}

// isDiagnostic reports whether a result is for standard error. A user's template, which
// is written for results, does not apply to it.
func isDiagnostic(r Result) bool {
	switch r.(type) {
	case Fault, Warning, Notice, BatchSummary, ExportSummary, DryRunSummary, DiffSummary, EditConflict, Elapsed, Aside, Request, Expiry, Connection, Remark:
		return true
	}
	return false
}

// valid escapes a message that is not UTF-8. So its JSON field keeps its name: the exact
// bytes of a message are not worth a field in base64.
func valid(message string) string {
	if utf8.ValidString(message) {
		return message
	}
	return string(appendText(nil, message))
}
