package redis

import "bytes"

func bitCommands() []*command {
	return []*command{
		{name: "setbit", arity: 4, flags: writes | denyOOM | usesStore | inOneStep, first: 1, last: 1, step: 1, run: runSetBit,
			group: "bitmap", since: "2.2.0", args: "key:key offset:integer value:integer", summary: "Set or clear the bit at offset in the string value stored at key"},
		{name: "getbit", arity: 3, flags: reads | usesStore | fast, first: 1, last: 1, step: 1, run: runGetBit,
			group: "bitmap", since: "2.2.0", args: "key:key offset:integer", summary: "Get the bit value at offset in the string value stored at key"},
	}
}

// bitOffset reads where a bit is; ok is false after an error reply. The first bit of a byte is its
// highest.
func (c *conn) bitOffset(arg []byte) (at int, mask byte, ok bool) {
	n, ok := parseInt(arg)
	if !ok || n < 0 || n/8 >= maxBulk {
		c.error("bit offset is not an integer or out of range")
		return 0, 0, false
	}
	return int(n / 8), 0x80 >> (n % 8), true
}

func runGetBit(c *conn, args [][]byte) {
	at, mask, ok := c.bitOffset(args[2])
	if !ok {
		return
	}
	if e, _, ok := c.read(args[1]); ok {
		c.yes(at < len(e.Value) && e.Value[at]&mask != 0)
	}
}

// runSetBit writes nothing if the bit is there and has that value.
func runSetBit(c *conn, args [][]byte) {
	at, mask, ok := c.bitOffset(args[2])
	if !ok {
		return
	}
	on := string(args[3]) == "1"
	if !on && string(args[3]) != "0" {
		c.error("bit is not an integer or out of range")
		return
	}
	e, found := c.s.engine.Lookup(args[1])
	was := at < len(e.Value) && e.Value[at]&mask != 0
	if at >= len(e.Value) || was != on {
		value := bytes.Clone(e.Value)
		if missing := at + 1 - len(value); missing > 0 {
			value = append(value, make([]byte, missing)...)
		}
		if value[at] &^= mask; on {
			value[at] |= mask
		}
		if !c.putMade(Edited, args[1], value, e.Expires, !found) {
			return
		}
		c.event(strings_, "setbit", args[1])
	}
	c.yes(was)
}
