package wire

// The texts of the store's errors, without the leading `-ERR ` (protocol.md 5).
const (
	TextClockAhead         = "the request timestamp is too far in the future; ensure that the client and broker system clocks are synchronized"
	TextFenceRequired      = "a fencing token is required for this request"
	TextFenceAhead         = "the request fencing token timestamp is too far in the future; ensure that the client and broker system clocks are synchronized"
	TextFenceLower         = "the request fencing token is a lower version than the fencing token protecting the resource"
	TextQuota              = "the quota has been exceeded"
	TextSyntax             = "syntax error"
	TextNotAuthorized      = "not authorized"
	TextUnknownCommand     = "unknown command"
	TextWrongArguments     = "wrong number of arguments"
	TextMissingTimestamp   = "missing timestamp"
	TextMalformedTimestamp = "malformed timestamp"
	TextEmptyKey           = "the key length is zero"

	// textFenceLowerTypo is TextFenceLower with the typo in the published protocol.
	textFenceLowerTypo = "the request fencing token is a lower version that the fencing token protecting the resource"
)

// ErrorKind identifies a kind of store error. The values are stable, so programs may rely on them.
type ErrorKind string

// The kinds of errors that the store is known to return. ErrorUnknown is any other error.
const (
	ErrorClockAhead         ErrorKind = "clock_ahead"
	ErrorFenceRequired      ErrorKind = "fencing_required"
	ErrorFenceAhead         ErrorKind = "fencing_ahead"
	ErrorFenceLower         ErrorKind = "fencing_lower"
	ErrorQuota              ErrorKind = "quota"
	ErrorSyntax             ErrorKind = "syntax"
	ErrorNotAuthorized      ErrorKind = "key_not_authorized"
	ErrorUnknownCommand     ErrorKind = "unknown_command"
	ErrorWrongArguments     ErrorKind = "wrong_arguments"
	ErrorMissingTimestamp   ErrorKind = "timestamp_missing"
	ErrorMalformedTimestamp ErrorKind = "timestamp_malformed"
	ErrorEmptyKey           ErrorKind = "key_empty"
	ErrorUnknown            ErrorKind = "store_error"
)

// A StoreError is an error that the store answered with.
type StoreError struct {
	Text string // as the store wrote it, without the leading ERR; not empty
}

func (e *StoreError) Error() string { return "the store answered: " + e.Text }

// Is reports whether target is an error for errors of this kind.
func (e *StoreError) Is(target error) bool {
	t, ok := target.(interface{ HasKind(ErrorKind) bool })
	return ok && t.HasKind(e.Kind())
}

// Text returns the text of an error of this kind, or "" for an unknown kind.
func (k ErrorKind) Text() string {
	for _, known := range errorKinds {
		if k == known.kind {
			return known.text
		}
	}
	return ""
}

// Kind returns the kind of e, or ErrorUnknown for an unknown text.
func (e *StoreError) Kind() ErrorKind {
	for _, known := range errorKinds {
		if e.Text == known.text {
			return known.kind
		}
	}
	return ErrorUnknown
}

var errorKinds = [...]struct {
	text string
	kind ErrorKind
}{
	{TextClockAhead, ErrorClockAhead},
	{TextFenceRequired, ErrorFenceRequired},
	{TextFenceAhead, ErrorFenceAhead},
	{TextFenceLower, ErrorFenceLower},
	{textFenceLowerTypo, ErrorFenceLower},
	{TextQuota, ErrorQuota},
	{TextSyntax, ErrorSyntax},
	{TextNotAuthorized, ErrorNotAuthorized},
	{TextUnknownCommand, ErrorUnknownCommand},
	{TextWrongArguments, ErrorWrongArguments},
	{TextMissingTimestamp, ErrorMissingTimestamp},
	{TextMalformedTimestamp, ErrorMalformedTimestamp},
	{TextEmptyKey, ErrorEmptyKey},
}
