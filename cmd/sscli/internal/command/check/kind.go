package check

import "time"

// A kind is what a check looks at.
type kind struct {
	name    string // also of the field of a file that has the target
	operand string // how the command line names a target; empty = a check of this kind has none
	flag    string // the description of the flag for targets; empty = they are arguments

	// look returns what a check finds in the value of the key that is its target. If it is nil, no such key is read.
	// shown means that messages may show the value.
	look         func(s *spec, content []byte, shown bool) value
	changesHands bool // a change is another holder, whom the value names; else another version

	judge func(v *verdict, from *view, local time.Time) // the view is locked, and the store answers

	// expose adds the series of a check, unless it is nil. The view is locked. If the check reads a key, it was read.
	expose   func(s *spec, e *exposition, from *view, labels []label, watched bool, local time.Time)
	families func() []family // the metrics of expose; nil = none
}

// The names of the kinds.
const (
	aKey    = "key"
	aLock   = "lock"
	aMatch  = "match"
	aBroker = "broker"
)

func kinds() []kind { return []kind{keyKind(), lockKind(), matchKind(), brokerKind()} }

func kindOf(name string) kind {
	for _, k := range kinds() {
		if k.name == name {
			return k
		}
	}
	panic("no kind of check: " + name)
}

// targets returns the names of the kinds that have a target, and how the command line names these.
func targets() (names, operands []string) {
	for _, k := range kinds() {
		if k.operand != "" {
			names, operands = append(names, k.name), append(operands, k.operand)
		}
	}
	return names, operands
}

func (s *spec) reads() bool { return kindOf(s.kind).look != nil }
