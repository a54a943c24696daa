package redis

import (
	"bytes"
	"strconv"
)

// What OBJECT and MEMORY say about a key. Values are bytes here: the encodings are those that Redis
// would choose, for clients and tests that ask for them.

func objectCommands() []*command {
	const read = reads | usesStore
	object := func(name, since, summary string, run func(c *conn, e Entry)) *command {
		return &command{name: name, arity: 3, flags: read, first: 2, last: 2, step: 1, group: "generic", since: since, args: "key:key", summary: summary,
			run: func(c *conn, args [][]byte) {
				if e, there := c.peek(args[2]); there {
					run(c, e)
				}
			}}
	}
	return []*command{
		{name: "object", arity: -2, group: "generic", since: "2.2.3", summary: "A container for object introspection commands", subs: []*command{
			object("encoding", "2.2.3", "Tell how Redis would store the value", func(c *conn, e Entry) { c.text(e.encoding()) }),
			object("refcount", "2.2.3", "Get the number of references that Redis would have to the value", func(c *conn, e Entry) { c.integer(e.references()) }),
			object("idletime", "2.2.3", "Get the seconds since the last write", func(c *conn, e Entry) { c.integer(e.idle(c.now())) }),
			object("freq", "4.0.0", "Refused: accesses are not counted", func(c *conn, _ Entry) { c.error(textNoFrequency) }),
			objectHelp(),
		}},
		{name: "memory", arity: -2, group: "server", since: "4.0.0", summary: "A container for memory diagnostics commands", subs: []*command{
			{name: "usage", arity: -3, flags: read, first: 2, last: 2, step: 1, run: runMemoryUsage,
				group: "server", since: "4.0.0", args: "key:key [count:integer]", summary: "Estimate the memory usage of a key"},
			memoryHelp(),
		}},
	}
}

const textNoFrequency = "An LFU maxmemory policy is not selected, access frequency not tracked. Please note that when switching between policies at runtime LRU and LFU data will take some time to adjust."

// peek looks a key up without an event. If it is not there, peek replies with nil or with the
// error.
func (c *conn) peek(key []byte) (e Entry, there bool) {
	ok := true
	if c.s.engine == nil {
		e, there, ok = c.remoteRead(key)
	} else {
		e, there = c.s.engine.Lookup(key)
	}
	if ok && !there {
		c.null()
	}
	return e, there
}

const (
	longestEmbedded = 44    // bytes of a string that Redis stores beside its header
	sharedIntegers  = 10000 // from 0 on, which Redis has once for all keys

	sharedReferences = 1<<31 - 1
)

// encoding is how Redis would store the value.
func (e Entry) encoding() string {
	_, isInt := parseInt(e.Value)
	switch {
	case e.Made == Edited || len(e.Value) > longestEmbedded:
		return "raw"
	case isInt && e.Made != Counted:
		return "int"
	default:
		return "embstr"
	}
}

// references is how many references Redis would have to the value.
func (e Entry) references() int64 {
	if n, isInt := parseInt(e.Value); isInt && e.Made == Whole && n >= 0 && n < sharedIntegers {
		return sharedReferences
	}
	return 1
}

// idle is how many seconds ago the value was written, at a time in milliseconds: reads are not
// remembered.
func (e Entry) idle(now int64) int64 {
	wall, _, _ := bytes.Cut(e.Version, []byte{':'})
	written, err := strconv.ParseInt(string(wall), 10, 64)
	if err != nil {
		return 0
	}
	return max(now-written, 0) / 1000
}

// entryOverhead is about what a key needs beside its bytes.
const entryOverhead = 40

func runMemoryUsage(c *conn, args [][]byte) {
	for i := 3; i < len(args); i += 2 {
		if !equalFold(args[i], "samples") || i+1 == len(args) {
			c.error(textSyntax)
			return
		}
		n, ok := c.integerArg(args[i+1])
		if !ok {
			return
		}
		if n < 0 {
			c.error(textSyntax)
			return
		}
	}
	if e, there := c.peek(args[2]); there {
		c.integer(int64(entryOverhead + len(args[2]) + len(e.Value) + len(e.Version)))
	}
}
