package redis

import (
	"context"
	"fmt"
	"iter"
	"sync"
	"time"
)

// A Backend is a state store, near or far. Its methods may be called by several goroutines.
//
// What is passed to a method is borrowed: it is good until the method returns. What a
// method returns belongs to the caller.
type Backend interface {
	// Do carries out operations, each by itself and perhaps at the same time, and writes the
	// outcome into each. Those on the same key happen in their order. Do returns when all have
	// an outcome; ctx ends when the server closes.
	Do(ctx context.Context, who *Caller, ops []Op)

	// Scan returns a page of the keys that begin with prefix, and the token of the next
	// page. A nil token asks for the first page; a nil next says that this is the last one. A page may be
	// empty. want is how many keys are wanted, about.
	Scan(ctx context.Context, who *Caller, prefix, token []byte, want int) (keys [][]byte, next []byte, err error)

	// Watch begins to report the changes of a key to [Server.Changed], and Unwatch ends it.
	// Watch is called for each subscriber of a key's own channel, and Unwatch when the last
	// one is gone. Watch returns when nothing that happens later is missed; for a key that is
	// watched, or that the backend reports anyway, it returns at once. Unwatch must neither block nor call the server.
	Watch(ctx context.Context, key []byte) error
	Unwatch(key []byte)
}

// An Engine is a Backend in this process. All methods, Do and Scan too, are called
// while it is locked, and what they return is good until the next Do, Put or Remove. Watch and Unwatch are
// not called. Lock removes the keys that have expired.
//
// An Engine reports each change to [Server.Changed] while it is locked, those of Put and
// Remove as [Own].
type Engine interface {
	Backend
	sync.Locker

	Now() time.Time                    // the store's clock
	Expect(keys [][]byte)              // which are about to be looked up, probably: a hint
	Lookup(key []byte) (Entry, bool)   // no key that has expired
	Keys(from []byte) iter.Seq[[]byte] // in the order of their bytes
	KeyAt(i int) []byte                // the i-th key of Len
	Len() int                          // how many keys there are
	Expiring() int                     // how many of them expire
	Room(n int) error                  // whether n new keys fit
	Restricted() bool                  // whether Allowed says no to anybody
	Allowed(who *Caller, key []byte, write bool) bool
	Fenced(key []byte) error              // why Put and Remove would refuse the key for its fencing token
	Put(who *Caller, p Put) error         // sets a key, or says why not
	Remove(who *Caller, key []byte) error // removes a key, or says why not
}

// A Caller is the client that an operation is for.
type Caller struct {
	ID   string // of the connection, such as redis-7: what rules and histories call the client
	User string // as it logged in; empty: it did not
}

// An Entry is the state of a key.
type Entry struct {
	Value   []byte
	Version []byte    // an HLC as text
	Expires time.Time // zero: never
	Made    Making
}

// A Put is a new state of a key.
type Put struct {
	Key, Value []byte
	Expires    time.Time // zero: never
	Made       Making
}

// A Making is how a value was made, as far as OBJECT of Redis shows it. An engine
// keeps it with the value.
type Making byte

// The makings.
const (
	Whole   Making = iota // by a command that sets the value
	Edited                // in place, by APPEND, SETRANGE or SETBIT
	Counted               // by INCRBYFLOAT
	Copied                // by COPY, of a Whole or Copied one
)

// A Verb is what an operation does. Verbs are those of the state store's protocol.
type Verb int

// The verbs.
const (
	Get  Verb = iota
	Set       // with If, PX and Fence
	Del       // with Fence
	VDel      // deletes Key if it has Value; with Fence
)

// String is the verb as the protocol writes it.
func (v Verb) String() string {
	return [...]string{"GET", "SET", "DEL", "VDEL"}[v]
}

// A Condition is what must hold for a SET.
type Condition int

// The conditions.
const (
	Always      Condition = iota
	IfMissing             // NX
	IfSameOrNew           // NEX
)

// An Op is an operation that the protocol of the state store has, and its outcome.
type Op struct {
	Verb  Verb
	Key   []byte
	Value []byte
	If    Condition
	PX    int64  // the key expires after so many milliseconds; 0: never
	Fence []byte // the fencing token; nil: none

	// Yes says that GET found the key, that SET was applied, or that DEL or VDEL deleted it.
	// Without it Differs says that VDEL found another value.
	Yes, Differs bool
	Found        []byte // the value that GET found
	Version      []byte // as it came with the reply; nil: none came
	Err          error  // refused, not sent or unknown; a [*Error], or a text for -ERR
}

// An Error is an error reply.
type Error struct {
	Code string // the first word, such as UNKNOWN; empty: ERR
	Text string
}

// Error is the reply without its minus.
func (e *Error) Error() string {
	if e.Code == "" {
		return "ERR " + e.Text
	}
	return e.Code + " " + e.Text
}

// Unknown returns the error of a write that was sent and not answered. timeout is how long
// the backend waited. Clients must not repeat the write as if it had not happened.
func Unknown(op *Op, timeout time.Duration) *Error {
	return &Error{Code: "UNKNOWN", Text: fmt.Sprintf("%s %q got no answer within %s; it may have been applied", op.Verb, op.Key, timeout)}
}

// NotSent returns the error of an operation that was not sent, and which clients may
// therefore repeat.
func NotSent() *Error {
	return &Error{Code: "LOADING", Text: "the broker cannot be reached; nothing was sent"}
}

// A Kind is what happened to a key, as far as a backend can tell.
type Kind int

// The kinds.
const (
	Own        Kind = iota // what a command of this port did: it has told already
	Stored                 // set without an expiry
	StoredTill             // set with an expiry
	Deleted
	Expired
)

// A Change is what a backend reports.
type Change struct {
	Key  []byte
	Kind Kind
	New  bool // the key was not there before
}
