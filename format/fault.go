package format

import (
	"fmt"
	"unicode/utf8"
)

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

func (f Fault) human(dst []byte, s *style) []byte {
	dst = append(append(dst, s.fail.Sprint("sscli:")...), ' ')
	return appendHint(appendText(appendLineNumber(dst, f.Line), f.Message), f.Hint)
}

// appendLineNumber appends the number of a line of a batch, if there is one.
func appendLineNumber(dst []byte, line int) []byte {
	if line > 0 {
		dst = fmt.Appendf(dst, "line %d: ", line)
	}
	return dst
}

// appendHint appends a hint, if there is one, and ends the line.
func appendHint(dst []byte, hint string) []byte {
	if hint != "" {
		dst = appendText(append(dst, "\n  try: "...), hint)
	}
	return append(dst, '\n')
}

// valid escapes a message that is not UTF-8, so that its JSON field does not become one in
// base64 with another name.
func valid(message string) string {
	if utf8.ValidString(message) {
		return message
	}
	return string(appendText(nil, message))
}
