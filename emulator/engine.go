package emulator

import (
	"bytes"
	"container/heap"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/sscli/sscli/client/wire"
)

// EngineOptions configure an [Engine]. The zero value is a store without limits
// on the present clock.
type EngineOptions struct {
	Now      func() time.Time // the store's wall clock; nil is time.Now
	Node     string           // the node of the store's versions; "" is StateStore
	MaxKeys  int              // the quota; 0 is none
	ScanPage int              // keys on a page of SCAN; 0 is 100

	// Authorize tells whether a client may read or write a key; nil lets
	// everybody. It is called while the store is locked.
	Authorize func(clientID, username, key string, write bool) bool

	Variants Variants
}

// An Engine is the state store without a network: a function from request to
// response. It has no goroutine and no lock of its own.
type Engine struct {
	opts     EngineOptions
	now      time.Time // one reading for all of a request
	clock    clock
	entries  map[string]*entry
	expiries expiries
	watchers map[string][]string            // key to client ids, in the order they came
	watching map[string]map[string]struct{} // client id to keys
	changes  []Change
	sorted   []string       // the keys in order, nil when they changed
	notes    []Notification // of the request or expiry at hand
}

type entry struct {
	key      string
	value    []byte
	version  wire.Version
	fence    wire.Version // zero: not fenced
	fenced   bool
	persist  bool
	deadline time.Time // zero: never
	index    int       // in expiries
}

// A Response is the answer to a request.
type Response struct {
	Payload    []byte
	Version    wire.Version // of `__ts`; zero if there is none
	Properties []Property   // the user properties, in order
}

// Cause is why a key changed.
type Cause string

// The causes of a [Change].
const (
	CauseSet     Cause = "set"
	CauseSetPX   Cause = "set px" // with an expiry
	CauseDel     Cause = "del"
	CauseVDel    Cause = "vdel"
	CauseExpired Cause = "expired"
)

// A Change is one modification of the store. The notification does not tell
// causes apart (protocol.md 2.6); the engine remembers them.
type Change struct {
	Key      string
	Cause    Cause
	ClientID string // who asked; "" for an expiry
	Value    []byte // what was set, or what was deleted
	Version  wire.Version
	Time     time.Time // on the store's clock
}

// A Notification is a NOTIFY message for one client.
type Notification struct {
	ClientID   string
	Key        string
	Topic      string
	Payload    []byte
	Version    wire.Version // of `__ts`; zero if there is none
	Properties []Property
}

// An Entry is a key's state. The fence is visible here and nowhere in the
// protocol (protocol.md 4).
type Entry struct {
	Value   []byte
	Version wire.Version
	Fence   wire.Version // zero: not fenced
	Persist bool
	Expires time.Time // zero: never
}

const (
	defaultNode     = "StateStore"
	defaultScanPage = 100

	// maxChanges bounds the memory that the record of changes takes.
	maxChanges = 1024
)

// NewEngine returns an empty store.
func NewEngine(opts EngineOptions) *Engine {
	if opts.Now == nil {
		opts.Now = time.Now
	}
	if opts.Node == "" {
		opts.Node = defaultNode
	}
	if opts.ScanPage <= 0 {
		opts.ScanPage = defaultScanPage
	}
	return &Engine{
		opts:     opts,
		clock:    clock{node: opts.Node},
		entries:  make(map[string]*entry),
		watchers: make(map[string][]string),
		watching: make(map[string]map[string]struct{}),
	}
}

// call is one request on its way through the checks.
type call struct {
	Request
	words [][]byte
	key   string

	timestamp wire.Version // zero if none came
	fence     wire.Version
	fenced    bool // a fencing token came
}

// Do answers a request. The notifications are to be delivered in their order,
// before the response.
//
// The order of the checks is assumed, not known: RESP3, verb, number of words,
// options, key, authorization, `__ts`, `__ft`, the key's fence, the condition,
// the quota.
func (e *Engine) Do(req Request) (Response, []Notification) {
	e.now = e.opts.Now()
	e.expire()
	resp := e.answer(req)
	e.addProperties(&resp)
	return resp, e.takeNotes()
}

func (e *Engine) takeNotes() []Notification {
	notes := e.notes
	e.notes = nil
	return notes
}

func (e *Engine) answer(req Request) Response {
	words, err := wire.ParseRequest(req.Payload)
	if err != nil {
		return e.refuse(wire.TextSyntax)
	}
	c := &call{Request: req, words: words}
	switch e.word(words[0]) {
	case wire.VerbGet:
		return e.get(c)
	case wire.VerbSet:
		return e.set(c)
	case wire.VerbDel:
		return e.del(c)
	case wire.VerbVDel:
		return e.vdel(c)
	case wire.VerbKeyNotify:
		return e.keyNotify(c)
	case wire.VerbScan:
		if !e.opts.Variants.NoScan {
			return e.scan(c)
		}
	}
	return e.refuse(wire.TextUnknownCommand)
}

// word is how a verb or option word counts.
func (e *Engine) word(w []byte) string {
	if e.opts.Variants.AnyCase {
		return strings.ToUpper(string(w))
	}
	return string(w)
}

// arguments checks the number of words, verb included.
func (c *call) arguments(least, most int) string {
	if len(c.words) < least || len(c.words) > most {
		return wire.TextWrongArguments
	}
	return ""
}

// access takes the key and checks that the client may have it.
func (e *Engine) access(c *call, write bool) string {
	c.key = string(c.words[1])
	if c.key == "" {
		return wire.TextEmptyKey
	}
	if !e.allowed(c, c.key, write) {
		return wire.TextNotAuthorized
	}
	return ""
}

func (e *Engine) allowed(c *call, key string, write bool) bool {
	return e.opts.Authorize == nil || e.opts.Authorize(c.ClientID, c.Username, key, write)
}

// stamps checks `__ts` and `__ft` (protocol.md 3.2, 4 rows 12 and 13).
func (e *Engine) stamps(c *call, needTimestamp, takesFence bool) string {
	if needTimestamp && !c.HasTimestamp {
		return wire.TextMissingTimestamp
	}
	if c.HasTimestamp {
		ts, err := wire.ParseVersion(c.Timestamp)
		switch check := needTimestamp || e.opts.Variants.TimestampOnAll; {
		case err != nil && check:
			return wire.TextMalformedTimestamp
		case err == nil && e.ahead(ts) && check:
			return wire.TextClockAhead
		case err == nil && !e.ahead(ts):
			c.timestamp = ts
		}
	}
	if !takesFence || !c.HasFence {
		return ""
	}
	ft, err := wire.ParseVersion(c.Fence)
	if err != nil {
		return wire.TextMalformedTimestamp
	}
	if e.ahead(ft) {
		return wire.TextFenceAhead
	}
	c.fence, c.fenced = ft, true
	return ""
}

// ahead tells whether a reading is more than a minute ahead of the store.
func (e *Engine) ahead(v wire.Version) bool {
	return v.Wall > e.now.Add(wire.MaxDrift).UnixMilli()
}

// guard checks the token against the key's fence (protocol.md 4).
func (e *Engine) guard(c *call, en *entry) string {
	if en == nil || !en.fenced {
		return ""
	}
	if !c.fenced {
		return wire.TextFenceRequired
	}
	token, fence := c.fence, en.fence
	if e.opts.Variants.FenceIgnoresNode {
		token.Node, fence.Node = "", ""
	}
	if token.Compare(fence) < 0 {
		return wire.TextFenceLower
	}
	return ""
}

// drop removes a key and tells its watchers.
func (e *Engine) drop(en *entry, cause Cause, clientID string, seen wire.Version) wire.Version {
	version := e.next(seen)
	delete(e.entries, en.key)
	e.sorted = nil
	if en.index >= 0 {
		heap.Remove(&e.expiries, en.index)
	}
	e.record(Change{Key: en.key, Cause: cause, ClientID: clientID, Value: en.value, Version: version})
	e.notifyDelete(en, cause, version)
	return version
}

func (e *Engine) record(c Change) {
	c.Time = e.now
	if len(e.changes) == maxChanges {
		e.changes = slices.Delete(e.changes, 0, maxChanges/2)
	}
	e.changes = append(e.changes, c)
}

// Changes returns what changed, oldest first. It holds at least the last 512
// changes and at most 1024.
func (e *Engine) Changes() []Change { return slices.Clone(e.changes) }

// Lookup returns a key's state.
func (e *Engine) Lookup(key string) (Entry, bool) {
	en := e.entries[key]
	if en == nil || en.due(e.opts.Now()) {
		return Entry{}, false
	}
	return Entry{Value: bytes.Clone(en.value), Version: en.version, Fence: en.fence, Persist: en.persist, Expires: en.deadline}, true
}

// Keys returns the keys in the order of their bytes.
func (e *Engine) Keys() []string {
	var keys []string
	for _, key := range e.ordered() {
		if !e.entries[key].due(e.opts.Now()) {
			keys = append(keys, key)
		}
	}
	return keys
}

// Len is the number of keys, those that have run out but were not removed
// included.
func (e *Engine) Len() int { return len(e.entries) }

func (e *Engine) ordered() []string {
	if e.sorted == nil {
		e.sorted = make([]string, 0, len(e.entries))
		for key := range e.entries {
			e.sorted = append(e.sorted, key)
		}
		slices.Sort(e.sorted)
	}
	return e.sorted
}

// next returns the store's next version, greater than all it gave before and
// than seen (protocol.md 3.2, 3.4).
func (e *Engine) next(seen wire.Version) wire.Version {
	v := e.clock.next(e.now.UnixMilli(), seen)
	if e.opts.Variants.PaddedVersions {
		return v
	}
	// ParseVersion keeps the text, which is how the document writes versions.
	unpadded, err := wire.ParseVersion(fmt.Sprintf("%d:%d:%s", v.Wall, v.Counter, v.Node))
	if err != nil { // a node with a colon
		return v
	}
	return unpadded
}

// clock is the hybrid logical clock of protocol.md 3.4 from the store's side: one
// step takes in what was received and gives the version. It never refuses, since
// the engine has checked the drift before.
type clock struct {
	node    string
	wall    int64
	counter uint64
}

func (c *clock) next(now int64, seen wire.Version) wire.Version {
	if seen.Wall > c.wall || seen.Wall == c.wall && seen.Counter > c.counter {
		c.wall, c.counter = seen.Wall, seen.Counter
	}
	switch {
	case now > c.wall:
		c.wall, c.counter = now, 0
	case c.counter == math.MaxUint64:
		c.wall, c.counter = c.wall+1, 0
	default:
		c.counter++
	}
	return wire.Version{Wall: c.wall, Counter: c.counter, Node: c.node}
}
