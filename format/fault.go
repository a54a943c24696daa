package format

import "unicode/utf8"

// Fault is an error message for standard error.
type Fault struct {
	Code       int    `json:"code"`             // exit code
	Kind       string `json:"kind,omitzero"`    // the kind of error, for programs; empty = none
	Outcome    string `json:"outcome,omitzero"` // "unknown" for a write that may or may not have been applied; otherwise empty
	Line       int    `json:"line,omitzero"`    // line number in the batch, from 1; 0 = none
	Message    string `json:"message"`
	StoreError string `json:"store_error,omitzero"` // the store's error text, if the store refused
	Hint       string `json:"hint,omitzero"`        // the next thing to try; empty = none
}

func (Fault) diagnostic() {}

func (f Fault) fields(o *objectWriter) {
	f.Message, f.Hint = valid(f.Message), valid(f.Hint)
	o.result("error", f)
}

func (f Fault) human(w *writer) {
	w.print(w.fail.Sprint("sscli:"), " ")
	w.message(f.Line, f.Message, f.Hint)
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
