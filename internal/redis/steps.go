package redis

import (
	"net"
	"slices"
)

// maxKeysInStep is the maximum number of keys that inSteps handles in one step.
const maxKeysInStep = 1000

// eachKey carries out an operation on each key, and calls done after each operation, in the order of the
// keys. If a Local would refuse the operation on one of the keys, eachKey carries out no operation.
func (c *conn) eachKey(verb Verb, keys [][]byte, done func(*Op)) error {
	if err := c.checkKeys(verb, keys); err != nil {
		return err
	}
	return c.inSteps(verb, keys, func(ops []Op) error { return c.eachChecked(ops, done) })
}

// checkKeys returns an error if the Local would refuse the operation on one of the keys. For a remote
// store, it returns nil.
func (c *conn) checkKeys(verb Verb, keys [][]byte) error {
	if c.s.local == nil {
		return nil
	}
	return c.inSteps(verb, keys, func(ops []Op) error { return c.s.local.Check(&c.who, ops) })
}

// inSteps calls do with operations on at most maxKeysInStep keys at a time, because the operations on
// all keys could take ten times the memory of the request. Other clients may use the Local between the
// steps.
func (c *conn) inSteps(verb Verb, keys [][]byte, do func(ops []Op) error) error {
	ops := make([]Op, 0, min(len(keys), maxKeysInStep))
	for some := range slices.Chunk(keys, maxKeysInStep) {
		ops = ops[:0]
		for _, key := range some {
			ops = append(ops, Op{Verb: verb, Key: key})
		}
		if err := do(ops); err != nil {
			return err
		}
		if c.letOthersIn(); c.out.closed.Load() && !c.executing {
			return net.ErrClosed
		}
	}
	return nil
}

func sizeOfValues(ops []Op) (size int) {
	for i := range ops {
		size += len(ops[i].Value)
	}
	return size
}
