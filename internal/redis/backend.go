package redis

import (
	"context"
	"crypto/x509/pkix"
	"sync"
	"sync/atomic"
	"time"
)

// A Backend is a state store. Its methods may be called by several goroutines.
//
// A Backend must not retain the arguments of a method after the method returns, except that a [Local] may keep
// an Op.Value of LargeValue bytes or more, which never changes. The caller owns the results, unless the Backend is
// a Local.
type Backend interface {
	// Do carries out the operations and stores the outcome of each one in its Op. Operations on
	// different keys may run at the same time; operations on the same key run in order. Do returns
	// when every operation has an outcome. ctx is canceled when the server closes.
	Do(ctx context.Context, who *Caller, ops []Op)

	// Scan returns a page of the keys that begin with prefix and that the caller may read, and the
	// token of the next page. A nil token asks for the first page. If this page is the last, next is
	// nil. A page may be empty. want is the number of keys that the server asks for; a page may have
	// more or fewer.
	Scan(ctx context.Context, who *Caller, prefix, token []byte, want int) (keys [][]byte, next []byte, err error)

	// Watch makes the Backend report changes of a key to [Server.Changed], if it does not do so
	// already. Watch returns as soon as no later change of the key can be missed. The server calls
	// Watch for each client that subscribes to the key's own channel, and Unwatch after the last of
	// them has unsubscribed. Unwatch must neither block nor call the server.
	Watch(ctx context.Context, key []byte) error
	Unwatch(key []byte)
}

// A Local is a Backend in this process. The server locks it for a command, a transaction or
// several commands of a pipeline, which are then one atomic step. A command with many keys
// may take several steps. The server calls Watch and Unwatch with or without the lock. Unless a
// method's comment says otherwise, the server calls all other methods while the Local is locked, and
// their results are valid until Do changes a key. A value of LargeValue bytes or more stays valid and never
// changes: the server sends and copies it without the lock. Expired keys are missing.
//
// A Local calls [Server.Changed] for each change while it is locked. It reports a change by Do as [Own].
type Local interface {
	Backend
	sync.Locker

	// Check returns the first reason why Do would refuse one of the operations, or nil. They are GETs, SETs and DELs
	// of Redis: without If, Fence and Protocol. If the store is nearly full, Check may refuse what would just fit.
	Check(who *Caller, ops []Op) error

	// Prefetch loads the records of the requests' first arguments, which usually are keys, into the processor's
	// cache. In one loop, the processor loads several at a time.
	Prefetch(requests [][][]byte)

	KeyAt(i int) []byte // returns the i-th key; i is less than Stats.Keys
	Stats() Stats       // must be cheap, because it is called often

	// Full reports whether so many notifications wait to be sent that changes which would add to them must wait in
	// AwaitRoom, which is called without the lock. Notifies reports whether a change of a key is notified. A nil key
	// asks about all keys.
	Full() bool
	AwaitRoom()
	Notifies(key []byte) bool

	// MayRead reports whether the caller may read a key. A nil key asks whether the caller may read
	// and write all keys.
	MayRead(who *Caller, key []byte) bool
}

// LargeValue is the size, in bytes, of the smallest value that the server never copies while a [Local] is locked,
// except in transactions, which bound what they write and reply.
const LargeValue = 1 << 20

// Stats describes the content of a [Local].
type Stats struct {
	Keys     int
	Expiring int  // keys with an expiry
	Hidden   bool // some callers might not be allowed to read every key
}

// A Caller is the client that an operation is for.
type Caller struct {
	ID   string // identifies the connection, such as redis-7; rules and events use it as the client id
	User string // login name; empty = the client has not logged in

	Subjects []pkix.Name // of the connection's verified certificate, and of the certificate's issuers

	// What the Backend keeps for the client, and its memory in bytes, which the server charges to the client. A login
	// resets both. Options.LoggedIn and a Local, while it is locked, may change them.
	Value  any
	Memory *atomic.Int64
}

// An Entry is the state of a key.
type Entry struct {
	Value    []byte
	Version  []byte    // an HLC as text
	Expires  time.Time // zero = never; only a Local sets it
	Encoding Encoding  // only a Local sets it
}

// An Encoding describes how Redis would store a value in memory, for OBJECT ENCODING and OBJECT
// REFCOUNT. A [Local] stores the Encoding with the value.
type Encoding byte

// The encodings.
const (
	EncodingAuto     Encoding = iota // Redis chooses the encoding from the value
	EncodingRaw                      // edited in place by APPEND, SETRANGE or SETBIT
	EncodingText                     // written by INCRBYFLOAT; never stored as an integer
	EncodingUnshared                 // written by COPY; like EncodingAuto, but never a shared integer
)

// A Verb is a kind of request in the state store's protocol.
type Verb int

// The verbs.
const (
	Get  Verb = iota
	Set       // uses Op.Value, Op.If, Op.PX and Op.Fence
	Del       // uses Op.Fence
	VDel      // deletes the key if its value is Op.Value; uses Op.Fence
)

// String returns the verb as the protocol writes it.
func (v Verb) String() string {
	return [...]string{"GET", "SET", "DEL", "VDEL"}[v]
}

// A Condition decides whether a SET is applied.
type Condition int

// The conditions.
const (
	Always      Condition = iota
	IfMissing             // NX
	IfSameOrNew           // NEX
)

// An Op is one operation on a key, and its outcome.
type Op struct {
	Verb  Verb
	Key   []byte
	Value []byte
	If    Condition
	PX    int64  // milliseconds until the key expires; 0 = never
	Fence []byte // fencing token; nil = none

	// Only for a Local.
	Expires   time.Time // SET only; replaces PX unless zero
	Protocol  bool      // the write follows the store's own protocol instead of the rules of Redis
	Encoding  Encoding  // SET only
	ForUpdate bool      // GET only; checks that the caller may write the key, not that it may read it
	Shows     bool      // VDEL, and GET with ForUpdate; checks that the caller may also read the key

	// The outcome. Yes means that GET found the key, SET was applied, or DEL or VDEL deleted the key.
	// If Yes is false, Differs means that VDEL found another value.
	Yes, Differs bool
	Entry        Entry // found by GET; other verbs set only Version: the version in the reply, or nil
	Err          error // refused, not sent or outcome unknown; an error that is not an [*Error] is sent as ERR
}

// An Error is an error reply to a client.
type Error struct {
	Code string // first word of the reply, such as UNKNOWN; empty = ERR
	Text string
	args string // arguments of the request, which the reply shows and no log, because one may be a password
}

// Error returns the reply without its minus sign.
func (e *Error) Error() string {
	if e.Code == "" {
		return "ERR " + e.Text + e.args
	}
	return e.Code + " " + e.Text + e.args
}

// Unknown returns the error for a write that was sent and got no answer. text describes what happened,
// for example `SET "k" got no answer within 10s`. The store may have applied the write, so a client
// must not simply repeat it.
func Unknown(text string) *Error {
	return &Error{Code: "UNKNOWN", Text: text + "; it may have been applied"}
}

// NotSent returns the error for an operation that was not sent. Clients may repeat it.
func NotSent() *Error {
	return &Error{Code: "LOADING", Text: "the broker cannot be reached; nothing was sent"}
}

// A Kind is the kind of a [Change].
type Kind int

// The kinds of changes.
const (
	Own        Kind = iota // change by a command of this server; the command itself sends all events except "new"
	Stored                 // set without an expiry
	StoredTill             // set with an expiry
	Deleted
	Expired
)

// A Change is a change of a key that a Backend reports to [Server.Changed].
type Change struct {
	Key  []byte
	Kind Kind
	New  bool // the key did not exist before
}
