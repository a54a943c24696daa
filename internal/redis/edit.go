package redis

import (
	"bytes"
	"math"
	"math/big"
	"net"

	"github.com/sscli/sscli/internal/socket"
)

// editCommands returns the commands that edit a value, and GETBIT.
func editCommands() []*command {
	const write = writes | denyOOM | usesStore | needsLocal
	return []*command{
		{name: "setrange", arity: 4, flags: write | tells | costly, keys: oneKey, value: 3, run: runSetRange, since: "2.2.0", args: "key:key offset:integer value:string", summary: "Overwrite part of a string at key starting at the specified offset"},
		{name: "append", arity: 3, flags: write | tells | fast, keys: oneKey, value: 2, run: runAppend, since: "2.0.0", args: "key:key value:string", summary: "Append a value to a key"},
		{name: "incr", arity: 2, flags: write | tells | fast, keys: oneKey, run: runIncr, since: "1.0.0", args: "key:key", summary: "Increment the integer value of a key by one"},
		{name: "decr", arity: 2, flags: write | tells | fast, keys: oneKey, run: runIncr, since: "1.0.0", args: "key:key", summary: "Decrement the integer value of a key by one"},
		{name: "incrby", arity: 3, flags: write | tells | fast, keys: oneKey, run: runIncr, since: "1.0.0", args: "key:key increment:integer", summary: "Increment the integer value of a key by the given amount"},
		{name: "decrby", arity: 3, flags: write | tells | fast, keys: oneKey, run: runIncr, since: "1.0.0", args: "key:key decrement:integer", summary: "Decrement the integer value of a key by the given number"},
		{name: "setbit", group: "bitmap", arity: 4, flags: write | tells | costly, keys: oneKey, value: 3, run: runSetBit, since: "2.2.0", args: "key:key offset:integer value:integer", summary: "Set or clear the bit at offset in the string value stored at key"},
		{name: "getbit", group: "bitmap", arity: 3, flags: reads | usesStore | fast, keys: oneKey, run: runGetBit, since: "2.2.0", args: "key:key offset:integer", summary: "Get the bit value at offset in the string value stored at key"},
		{name: "incrbyfloat", arity: 3, flags: write | tells | fast, keys: oneKey, run: runIncrByFloat, since: "2.6.0", args: "key:key increment:double", summary: "Increment the float value of a key by the given amount"},
	}
}

// edit sets a key to a new value, keeps the key's expiry, and sends an event. old is the result of a lookup
// of the key.
func (c *conn) edit(old Op, value []byte, encoding Encoding, event string) error {
	return c.put(&Op{Key: old.Key, Value: value, Expires: old.Entry.Expires, Encoding: encoding}, classString, event)
}

// copyValue returns a copy of old's value, extended with zeros to size bytes, with part at the offset at. Unless the copy
// is small or part of a transaction, the Local is unlocked meanwhile, and old is then looked up again. If the value was
// changed, ok is false, and the command must begin again.
func (c *conn) copyValue(old *Op, size int, part []byte, at int) (value []byte, ok bool, err error) {
	if c.executing && c.written+size > maxWritten {
		return nil, false, c.mayWrite(size)
	}
	if size < LargeValue || c.executing {
		value = make([]byte, size)
		copy(value, old.Entry.Value)
		copy(value[at:], part)
		return value, true, nil
	}
	from := valid(old.Entry.Value)
	if !c.chargeInput(len(c.in.buf) + size) {
		return nil, false, errMemory
	}
	c.yield()
	value = make([]byte, size)
	socket.Copy(value, from)
	socket.Copy(value[at:], part)
	c.lock()
	if c.out.closed.Load() {
		return nil, false, net.ErrClosed
	}
	now, err := c.lookup(old.Key)
	ok = now.Yes == old.Yes && same(now.Entry.Value, from)
	*old = now
	return value, ok, err
}

// same reports whether two values are equal. It may return false for equal large values, but not if only the expiry of
// a key was changed, because the Local then keeps the memory of the value.
func same(a, b []byte) bool {
	if len(a) < LargeValue {
		return bytes.Equal(a, b)
	}
	return len(a) == len(b) && &a[0] == &b[0]
}

func runSetRange(c *conn, args [][]byte) error {
	offset, err := integerArg(args[2])
	if err != nil {
		return err
	}
	if offset < 0 {
		return &Error{Text: "offset is out of range"}
	}
	old, err := c.lookupShown(args[1])
	if err != nil {
		return err
	}
	part, n := args[3], int64(len(old.Entry.Value))
	switch {
	case len(part) == 0:
		return c.reply(n)
	case offset > maxBulk || offset+int64(len(part)) > maxBulk:
		return errTooLong
	}
	size := max(n, offset+int64(len(part)))
	if err := c.mayWrite(int(size)); err != nil {
		return err
	}
	value, ok, err := c.copyValue(&old, int(size), part, int(offset))
	switch {
	case err != nil:
		return err
	case !ok:
		return runSetRange(c, args)
	}
	err = c.edit(old, value, EncodingRaw, "setrange")
	c.integer(int64(len(value)))
	return err
}

func runAppend(c *conn, args [][]byte) error {
	old, err := c.lookupShown(args[1])
	if err != nil {
		return err
	}
	if old.Yes && len(old.Entry.Value)+len(args[2]) > maxBulk {
		return errTooLong
	}
	if err := c.mayWrite(len(old.Entry.Value)); err != nil {
		return err
	}
	encoding := EncodingRaw
	if !old.Yes {
		encoding = EncodingAuto
	}
	n := len(old.Entry.Value)
	value, ok, err := c.copyValue(&old, n+len(args[2]), args[2], n)
	switch {
	case err != nil:
		return err
	case !ok:
		return runAppend(c, args)
	}
	err = c.edit(old, value, encoding, "append")
	c.integer(int64(len(value)))
	return err
}

// runIncr implements INCR, DECR, INCRBY and DECRBY.
func runIncr(c *conn, args [][]byte) error {
	by := int64(1)
	if len(args) == 3 {
		var err error
		if by, err = integerArg(args[2]); err != nil {
			return err
		}
	}
	if name := args[0]; equalFold(name, "decr") || equalFold(name, "decrby") {
		if by == math.MinInt64 {
			return &Error{Text: "decrement would overflow"}
		}
		by = -by
	}
	old, err := c.lookupShown(args[1])
	n := int64(0)
	if err == nil && old.Yes {
		n, err = integerArg(old.Entry.Value)
	}
	if err != nil {
		return err
	}
	if by < 0 && n < math.MinInt64-by || by > 0 && n > math.MaxInt64-by {
		return &Error{Text: "increment or decrement would overflow"}
	}
	err = c.edit(old, []byte(itoa(n+by)), EncodingAuto, "incrby")
	c.integer(n + by)
	return err
}

func runIncrByFloat(c *conn, args [][]byte) error {
	old, err := c.lookupShown(args[1])
	if err != nil {
		return err
	}
	if err := c.look(digitsWork(len(old.Entry.Value)) + digitsWork(len(args[2]))); err != nil {
		return err
	}
	n, ok := new(big.Float).SetPrec(mantissaBits), true
	if old.Yes {
		n, ok = parseFloat(old.Entry.Value)
	}
	by, alsoOK := parseFloat(args[2])
	if !ok || !alsoOK {
		return &Error{Text: "value is not a valid float"}
	}
	if n.IsInf() || by.IsInf() || n.Add(n, by).IsInf() || n.MantExp(nil) > maxExponent {
		return &Error{Text: "increment would produce NaN or Infinity"}
	}
	if err := c.look(digitsWork(max(0, n.MantExp(nil)) / 3)); err != nil { // 3 bits are about a digit
		return err
	}
	value := formatFloat(n)
	err = c.edit(old, value, EncodingText, "incrbyfloat")
	c.bulk(value)
	return err
}

// parseBitOffset parses the offset of a bit in a value. It returns the index of the byte that holds the
// bit, and the bit's mask in that byte. Offset 0 is the most significant bit of the first byte.
func parseBitOffset(arg []byte) (at int, mask byte, err error) {
	n, ok := parseInt(arg)
	if !ok || n < 0 || n >= 1<<32 {
		return 0, 0, &Error{Text: "bit offset is not an integer or out of range"}
	}
	return int(n / 8), 0x80 >> (n % 8), nil
}

func bitAt(value []byte, at int, mask byte) bool { return at < len(value) && value[at]&mask != 0 }

func runGetBit(c *conn, args [][]byte) error {
	at, mask, err := parseBitOffset(args[2])
	if err != nil {
		return err
	}
	op, err := c.get(args[1])
	c.bool(bitAt(op.Entry.Value, at, mask))
	return err
}

// runSetBit writes nothing if the value already contains the bit and the bit has the requested state.
func runSetBit(c *conn, args [][]byte) error {
	at, mask, err := parseBitOffset(args[2])
	if err != nil {
		return err
	}
	on := string(args[3]) == "1"
	if !on && string(args[3]) != "0" {
		return &Error{Text: "bit is not an integer or out of range"}
	}
	old, err := c.lookupShown(args[1])
	if err != nil {
		return err
	}
	was := bitAt(old.Entry.Value, at, mask)
	if at >= maxBulk {
		return errTooLong
	}
	if at >= len(old.Entry.Value) || was != on {
		if err := c.mayWrite(max(len(old.Entry.Value), at+1)); err != nil {
			return err
		}
		value, ok, failed := c.copyValue(&old, max(len(old.Entry.Value), at+1), nil, 0)
		switch {
		case failed != nil:
			return failed
		case !ok:
			return runSetBit(c, args)
		}
		if value[at] &^= mask; on {
			value[at] |= mask
		}
		err = c.edit(old, value, EncodingRaw, "setbit")
	}
	c.bool(was)
	return err
}
