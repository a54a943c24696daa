package redis

import (
	"math/bits"
	"sync/atomic"
)

// The memory that clients occupy is charged to a budget: for example connections, incomplete
// requests, queued commands, subscriptions, watched keys, and unread replies and messages. The
// charges are estimates, in bytes.
const (
	word           = bits.UintSize / 8 // size of a pointer
	defaultMemory  = 1 << 30
	connectionCost = 64 << 10  // per connection, including freeInput and freeOutput
	freeInput      = 32 << 10  // memory for requests that is included in connectionCost
	freeOutput     = 32 << 10  // memory for replies and messages that is included in connectionCost
	nameCost       = 25 * word // per subscription, plus its name
	patternCost    = 64 * word // per pattern, plus the memory of its tables
	watchedCost    = 38 * word // per watched key, plus its name
	keyWatchCost   = 24 << 10  // per subscription to a key of a remote store, because the backend watches the key
	spanCost       = 2 * word  // per argument of a request that is being read, plus its bytes
	argCost        = 3 * word  // per argument of a request that was read
	queuedCost     = 8 * word  // per queued command, plus its arguments
	taskCost       = 8 << 10   // per running command of a pipeline, plus its arguments and keys
	taskKeyCost    = 8 * word  // per key of a running command of a pipeline
)

var (
	errMemory     = &Error{Code: "OOM", Text: "the memory for clients is exhausted"}
	errMaxClients = &Error{Text: "max number of clients reached"}
)

// localBudget returns a function for Options.Reserve. Its budget is defaultMemory bytes, for one server only.
func localBudget() func(n int) bool {
	var kept atomic.Int64
	return func(n int) bool {
		if kept.Add(int64(n)) > defaultMemory && n > 0 {
			kept.Add(-int64(n))
			return false
		}
		return true
	}
}

// A charge is the memory that one client occupies for one purpose. It is not safe for concurrent use.
type charge struct {
	reserve func(n int) bool // charges n more bytes; returns false if the budget has fewer left
	bytes   int
}

// set changes the charge to n bytes. If the budget has too few bytes left, set changes nothing and
// returns false.
func (ch *charge) set(n int) bool {
	ok := n == ch.bytes || ch.reserve(n-ch.bytes)
	if ok {
		ch.bytes = n
	}
	return ok
}

// chargeInput charges the client for a request buffer of the given size, for the memory of its
// requests, subscriptions and watched keys, and for Caller.Memory. It returns false if the budget has too few bytes left.
// Clients that have not logged in share a separate budget.
func (c *conn) chargeInput(buffer int) bool {
	n := max(0, buffer+spanCost*cap(c.in.spans)+argCost*(cap(c.in.args)+cap(c.parsed))+c.queueCost()+c.pipeline.memory+c.found+c.nameBytes+c.certificates+int(c.kept.Load())+len(c.name)+len(c.library[0])+len(c.library[1])-freeInput)
	if !c.authenticated {
		return c.ticket.Reserve(n)
	}
	return c.input.set(n)
}
