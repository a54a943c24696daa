package format

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// Fault is an error message for standard error.
type Fault struct {
	Code       int      `json:"code"`             // exit code
	Kind       string   `json:"kind,omitzero"`    // the kind of error, for programs; empty = none
	Outcome    string   `json:"outcome,omitzero"` // "unknown" for a write that may or may not have been applied; otherwise empty
	Line       int      `json:"line,omitzero"`    // line number in the batch, from 1; 0 = none
	Message    string   `json:"message"`
	Details    []string // what follows Message, each after a semicolon, where there is room
	StoreError string   `json:"store_error,omitzero"` // the store's error text, if the store refused
	Hint       Hint     // what to try next; empty = none
}

// A Hint is what the user can try next: steps, each of which can be followed by itself.
type Hint []Step

// A Step of a hint is a sentence.
type Step struct {
	Text    string
	Command bool // the text names a command of sscli to run
}

// String returns the texts of the steps, with semicolons between them.
func (h Hint) String() string {
	texts := make([]string, len(h))
	for i, step := range h {
		texts[i] = step.Text
	}
	return strings.Join(texts, "; ")
}

// Text returns the message with its details.
func (f Fault) Text() string { return strings.Join(append([]string{f.Message}, f.Details...), "; ") }

func (Fault) diagnostic() {}

func (f Fault) fields(o *objectWriter) {
	f.Message = valid(f.Text())
	o.result("error", f)
	o.add("hint", when(len(f.Hint) > 0, valid(f.Hint.String())))
}

func (f Fault) human(w *writer) {
	w.print(w.fail.Sprint("sscli:"), " ")
	message, hint := f.fit()
	w.message(f.Line, message, hint)
}

// fit returns the message and the hint in at most three lines of 80 columns. From longer ones it leaves out details of
// the message, from the last, until the first step of the hint fits, which helps most, or else any step, and the steps that do
// not fit. It always keeps what is no detail, and one step. The json output has both whole.
func (f Fault) fit() (message, hint string) {
	const columns, lines = 80, 3
	more := Step{Text: "more: -o json", Command: true}
	before := "sscli: "
	if f.Line > 0 {
		before += fmt.Sprintf("line %d: ", f.Line)
	}
	rows := func(text string) int { return (Columns(printable(text)) + columns - 1) / columns }
	fits := func(message string, steps ...Step) bool {
		return len(steps) == 0 && rows(before+message) <= lines || rows(before+message)+rows("  try: "+Hint(steps).String()) <= lines
	}
	steps := f.Hint
	if fits(f.Text(), steps...) {
		return f.Text(), f.Hint.String()
	}
	repeats := f.Outcome == "" && f.Line == 0 // so that the user can ask for more
	for _, least := range []Hint{steps[:min(1, len(steps))], nil} {
		for n := len(f.Details); n >= 0; n-- {
			message = Fault{Message: f.Message, Details: f.Details[:n]}.Text()
			if !fits(message, least...) {
				continue
			}
			kept := slices.Clone(least)
			for _, step := range steps[len(least):] {
				with := append(slices.Clone(kept), step)
				if least == nil && repeats { // the first step is only there
					with = append(with, more)
				}
				if fits(message, with...) {
					kept = append(kept, step)
				}
			}
			if len(kept) == 0 && len(steps) > 0 {
				continue
			}
			leads := slices.ContainsFunc(kept, func(step Step) bool { return step.Command })
			if with := append(slices.Clone(kept), more); repeats && !leads && fits(message, with...) {
				kept = with
			}
			return message, kept.String()
		}
	}
	return f.Message, steps[:min(1, len(steps))].String()
}

// message writes a message. The line number of a batch precedes it unless line is 0, and the hint
// follows it unless hint is empty.
func (w *writer) message(line int, message, hint string) {
	if line > 0 {
		w.printf("line %d: ", line)
	}
	w.print(printable(message))
	if hint != "" {
		w.print("\n  try: ", printable(hint))
	}
	w.print("\n")
}

// valid returns message, escaped if it is not UTF-8. The json output would encode such a message in
// base64, in a field with another name.
func valid(message string) string {
	if utf8.ValidString(message) {
		return message
	}
	return printable(message)
}
