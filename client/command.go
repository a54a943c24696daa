package client

import (
	"cmp"

	"github.com/sscli/sscli/internal/wire"
)

// A Command is a request as a value: a verb with its arguments. [Get], [Set], [Del],
// [VDel], [Scan] and [Call] each return a Command.
type Command struct {
	first   [3]string // the verb, the key and the value, if the command has them
	count   int       // number of words in first
	more    []string  // the remaining words
	fence   string    // the `__ft` to send; empty = none
	persist bool
	effect  effect
	read    reader
	err     error // why the command cannot be sent; nil = it can

	timestamp *Version // the `__ts` to send; nil = the clock's next reading
}

// A reader converts a reply to a result. It returns nil if the reply is not valid for the
// verb. The result may share memory with a reply larger than mqtt.ReusedSize, but not with a
// smaller one, whose memory is reused.
type reader func(wire.Value, *ReplyInfo) Result

// An effect says in which state a command leaves its key.
type effect byte

const (
	effectNone    effect = iota // the command only reads
	effectPut                   // the key holds the value
	effectDelete                // the key is gone
	effectUnknown               // the verb is unknown
)

// Verb returns the first word of the request.
func (c Command) Verb() string { return c.first[0] }

// Key returns the word after the verb: the key or, for a [Scan], the pattern; empty if there is
// none.
func (c Command) Key() string { return c.first[1] }

// Value returns the word after the key: the value of a [Set] or a [VDel].
func (c Command) Value() string { return c.first[2] }

// reads reports whether the command only reads, so that it may be sent any number of times.
func (c *Command) reads() bool { return c.read != nil && c.effect == effectNone }

// words returns all words of c. The result shares c's memory if c.first holds all words, as it does
// for most commands.
func (c *Command) words() []string {
	if len(c.more) == 0 {
		return c.first[:c.count]
	}
	return append(c.first[:c.count:c.count], c.more...)
}

// Check returns why the command cannot be sent, or nil. The error is an
// *[InvalidError].
func (c Command) Check() error {
	if c.read == nil {
		return invalid("the zero Command is not a request; use Get, Set, Call or another function that returns a Command")
	}
	if c.err == nil && c.fence != "" {
		// A string that MQTT cannot carry would end the connection, and with it the requests of others.
		if err := wire.CheckFence(c.fence); err != nil {
			return &InvalidError{err}
		}
	}
	return c.err
}

// newCommand returns a command with these words, the verb first. If the key is empty, which the store
// always refuses, Check returns an error.
func newCommand(effect effect, read reader, words ...string) Command {
	c := Command{effect: effect, read: read}
	c.count = copy(c.first[:], words)
	if c.first[1] == "" {
		c.err = invalid("the key is empty: it must have at least one byte")
	}
	return c
}

// WriteOptions are the options of every command that writes.
type WriteOptions struct {
	// Fence is the fencing token; the zero Version means none. It is sent exactly as it was
	// received. A key that was once written with a token is fenced: every later write needs one, until the key is
	// deleted or expires.
	Fence Version
}

// option returns the options of a call, which are none or one.
func option[O any](of []O) (o O, err error) {
	switch len(of) {
	case 0:
		return o, nil
	case 1:
		return of[0], nil
	}
	return o, invalid("%d values of %T: expected at most one", len(of), o)
}

// with adds options. err is the error of option.
func (c Command) with(o WriteOptions, err error) Command {
	c.err = cmp.Or(c.err, err)
	c.setFence(o.Fence)
	return c
}

// setFence sets the token to send, unless it is zero.
func (c *Command) setFence(token Version) {
	if !token.IsZero() {
		c.fence = token.String()
	}
}

// WithFence returns a copy of the command with this fencing token. The zero Version removes the
// token.
func (c Command) WithFence(token Version) Command {
	c.fence = ""
	c.setFence(token)
	return c
}

// Fence returns the fencing token as it is sent; empty if there is none.
func (c Command) Fence() string { return c.fence }

// isCount reports whether a reply is an integer from lowest to 1. The store answers DEL and VDEL
// with the number of deleted keys. It answers VDEL with -1 if the key holds another value.
func isCount(v wire.Value, lowest int64) bool {
	return v.Kind == wire.Integer && v.Int >= lowest && v.Int <= 1
}

// largeWord is the size in bytes from which a word of a request is not copied into the message.
const largeWord = 1 << 20

// appendRequest appends the payload of a request, but leaves out a large word, if there is one, which comes before
// payload[at:].
func appendRequest(dst []byte, words []string) (payload []byte, large string, at int) {
	for i, w := range words {
		if len(w) >= largeWord {
			payload, at = wire.AppendRequestAround(dst, words, i)
			return payload, w, at
		}
	}
	return wire.AppendRequest(dst, words...), "", 0
}
