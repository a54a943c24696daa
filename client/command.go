package client

import (
	"errors"

	"github.com/sscli/sscli/client/wire"
)

// A Command is a request as a value: a verb with its arguments. Make one with
// Get, Set, Del, VDel, Scan or Call.
type Command struct {
	words   []string // verb first
	fence   string   // the `__ft` to send; empty = none
	persist bool
	effect  effect
	read    reader
	err     error // why it cannot be sent

	timestamp Version // the `__ts` to send; zero = the clock's next
}

// A reader makes the result of an answer, nil if the verb cannot have that answer.
type reader func(wire.Value, ReplyInfo) Result

// effect is what a command that was perhaps applied leaves behind.
type effect int

const (
	effectNone    effect = iota // it only reads
	effectPut                   // the key holds the value
	effectDelete                // the key is gone
	effectUnknown               // nobody here knows the verb
)

// Verb is the first word of the request.
func (c Command) Verb() string {
	if len(c.words) == 0 {
		return ""
	}
	return c.words[0]
}

// Key is the key that the command is about, if it has one.
func (c Command) Key() string {
	if len(c.words) < 2 {
		return ""
	}
	return c.words[1]
}

// Check tells why the command cannot be sent; the error is an *[InvalidError].
func (c Command) Check() error { return c.err }

// newCommand refuses what the store is known to refuse in any case.
func newCommand(effect effect, read reader, verb, key string, rest ...string) Command {
	c := Command{
		words:  append([]string{verb, key}, rest...),
		effect: effect,
		read:   read,
	}
	if key == "" {
		c.err = &InvalidError{errEmptyKey}
	}
	return c
}

var errEmptyKey = errors.New("the key is empty, the store wants at least one byte")

// WriteOptions go with every command that writes.
type WriteOptions struct {
	// Fence is the fencing token; the zero Version means none. Its text is sent
	// as it was received (protocol.md 4).
	Fence Version
}

func (c Command) with(o WriteOptions) Command {
	if !o.Fence.IsZero() {
		c.fence = o.Fence.String()
	}
	return c
}

// WithFence returns the command with another fencing token; the zero Version means
// none.
func (c Command) WithFence(token Version) Command {
	c.fence = ""
	return c.with(WriteOptions{Fence: token})
}

// Fence is the fencing token as it is sent; empty = none.
func (c Command) Fence() string { return c.fence }

func isCount(v wire.Value, lowest int64) bool { return v.Kind == wire.Integer && v.Int >= lowest }
