package format

import "unicode/utf8"

// Fault is an error, for standard error.
type Fault struct {
	Code       int    `json:"code"`             // exit code
	Kind       string `json:"kind,omitzero"`    // identifies the kind of error for programs
	Outcome    string `json:"outcome,omitzero"` // "unknown" for a write that may or may not have been applied; otherwise empty
	Line       int    `json:"line,omitzero"`    // of a batch, counted from 1; 0: none
	Message    string `json:"message"`
	StoreError string `json:"store_error,omitzero"` // the store's error text, if the store refused
	Hint       string `json:"hint,omitzero"`        // the next thing to try; empty: none
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

// message writes a message with the number of a line of a batch, if that is not 0, and then a hint,
// if there is one.
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

// valid escapes a message that is not UTF-8, so that its JSON field does not become one in
// base64 with another name.
func valid(message string) string {
	if utf8.ValidString(message) {
		return message
	}
	return printable(message)
}
