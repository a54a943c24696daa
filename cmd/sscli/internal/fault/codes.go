package fault

import "github.com/sscli/sscli/client"

// Exit codes. Scripts rely on them, so they must not change. [Codes] returns their meanings. Those of errors of the
// client are the values of [client.Class].
const (
	CodeNo         = int(client.ClassNo)
	CodeUsage      = int(client.ClassInvalid)
	CodeConnection = int(client.ClassConnection)
	CodeLogin      = int(client.ClassLogin)
	CodeStore      = int(client.ClassStore)
	CodeFencing    = int(client.ClassFencing)
	CodeClock      = int(client.ClassClock)
	CodeLockLost   = int(client.ClassLockLost)
	codeAnswer     = int(client.ClassReply)
	codeContinuity = int(client.ClassContinuity)
	CodeUnknown    = int(client.ClassUnknown)
	CodeOutput     = 12
	CodeData       = 13
	CodePartial    = 14
	codeOtherStore = 15
	codeTimeout    = int(client.ClassTimeout)
)

// A Code is a row of the table of exit codes in help and docs.
type Code struct {
	Code    string // "3"; "128+N" for a range
	Meaning string
}

// Codes returns the table of exit codes, in the order of their numbers.
func Codes() []Code {
	return []Code{
		{"0", "done, yes"},
		{"1", "no: key missing, condition not met, value differs, lock busy"},
		{"2", "usage or configuration; nothing was sent"},
		{"3", "broker unreachable, connection lost, taken over (0x8E), busy (0x97), no state store (0x10)"},
		{"4", "TLS verification, refused login, not authorized"},
		{"5", "the store refused: syntax, unknown command, quota, …"},
		{"6", "fencing: token missing, lower, too far ahead, malformed"},
		{"7", "clock: request timestamp too far ahead"},
		{"8", "lock lost while held, or not held (renew, release)"},
		{"9", "invalid reply from the store (bad RESP3, bad HLC)"},
		{"10", "watch continuity lost, or its buffer is full"},
		{"11", "outcome unknown: a write was sent, no reply came, and reading back was inconclusive"},
		{"12", "done, but the result could not be printed (full disk, closed pipe, template)"},
		{"13", "serve: the file of --data cannot be used (in use, damaged, no room, a disk error)"},
		{"14", "apply, import, batch --load, del --match, serve --load --data: a mistake after writes"},
		{"15", "serve --attach: another state store serves on the broker"},
		{"124", "timed out with nothing applied"},
		{"125", "the child could not be set up, or its guard was killed"},
		{"126", "the child is not executable"},
		{"127", "the child was not found"},
		{"128+N", "ended by signal N"},
	}
}
