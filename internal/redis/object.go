package redis

import (
	"bytes"
	"strconv"
)

// This file implements OBJECT and MEMORY. The state store keeps every value as bytes. These commands
// describe how Redis would store the value, for clients and tests that need the answer.

func objectCommands() []*command {
	const read = reads | usesStore
	object := func(name, since, summary string, describe func(c *conn, e Entry) error) *command {
		run := func(c *conn, args [][]byte) error {
			op, err := c.do(Op{Verb: Get, Key: args[2]}) // not c.get: Redis sends no event
			if err != nil || !op.Yes {
				c.null()
				return err
			}
			return describe(c, op.Entry)
		}
		return &command{name: name, arity: 3, flags: read, keys: subKey, run: run, since: since, args: "key:key", summary: summary}
	}
	return []*command{
		{name: "object", arity: -2, since: "2.2.3", summary: "A container for object introspection commands", subs: []*command{
			object("encoding", "2.2.3", "Show how Redis would store the value", func(c *conn, e Entry) error { c.text(e.encoding()); return nil }),
			object("refcount", "2.2.3", "Get the number of references that Redis would have to the value", func(c *conn, e Entry) error { c.integer(e.references()); return nil }),
			object("idletime", "2.2.3", "Get the seconds since the last write", func(c *conn, e Entry) error { c.integer(e.idle(c.now())); return nil }),
			object("freq", "4.0.0", "Refused: accesses are not counted", func(*conn, Entry) error { return errNoFrequency }),
			help("object"),
		}},
		{name: "memory", arity: -2, group: "server", since: "4.0.0", summary: "A container for memory diagnostics commands", subs: []*command{
			{name: "usage", arity: -3, flags: read, keys: subKey, run: runMemoryUsage, since: "4.0.0", args: "key:key [count:integer]", summary: "Estimate the memory usage of a key"},
			help("memory"),
		}},
	}
}

var errNoFrequency = &Error{Text: "An LFU maxmemory policy is not selected, access frequency not tracked. Please note that when switching between policies at runtime LRU and LFU data will take some time to adjust."}

const (
	maxEmbstr         = 44        // bytes of the longest string that Redis stores together with its header
	sharedIntegers    = 10000     // Redis shares the integers from 0 to sharedIntegers-1 between keys
	sharedReferences  = 1<<31 - 1 // number of references to a shared integer
	memoryOfOneRecord = 40        // estimated bytes of a key without its name, value and version
)

// encoding returns the name of the encoding in which Redis would store the value.
func (e Entry) encoding() string {
	_, isInt := parseInt(e.Value)
	switch {
	case e.Encoding == EncodingRaw || len(e.Value) > maxEmbstr:
		return "raw"
	case isInt && e.Encoding != EncodingText:
		return "int"
	default:
		return "embstr"
	}
}

// references returns how many references Redis would have to the value.
func (e Entry) references() int64 {
	if n, isInt := parseInt(e.Value); isInt && e.Encoding == EncodingAuto && n >= 0 && n < sharedIntegers {
		return sharedReferences
	}
	return 1
}

// idle returns the seconds since the value was written. now is in milliseconds since the Unix
// epoch. Reads do not count, because they are not recorded.
func (e Entry) idle(now int64) int64 {
	wall, _, _ := bytes.Cut(e.Version, []byte{':'})
	written, err := strconv.ParseInt(string(wall), 10, 64)
	if err != nil {
		return 0
	}
	return max(now-written, 0) / 1000
}

func runMemoryUsage(c *conn, args [][]byte) error {
	for i := 3; i < len(args); i += 2 {
		if !equalFold(args[i], "samples") || i+1 == len(args) {
			return errSyntax
		}
		n, err := integerArg(args[i+1])
		if err != nil {
			return err
		}
		if n < 0 {
			return errSyntax
		}
	}
	op, err := c.do(Op{Verb: Get, Key: args[2]})
	if err != nil || !op.Yes {
		c.null()
		return err
	}
	return c.reply(memoryOfOneRecord + len(args[2]) + len(op.Entry.Value) + len(op.Entry.Version))
}
