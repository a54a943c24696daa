package store

import (
	"crypto/cipher"
	"iter"
	"slices"
	"time"

	"github.com/sscli/sscli/internal/observe"
	"github.com/sscli/sscli/internal/shrinkmap"
	"github.com/sscli/sscli/internal/wire"
)

// Options configure a [Store]. With the zero value, the store has no quotas and uses the system
// clock.
type Options struct {
	Now      func() time.Time // the store's wall clock; nil = time.Now
	Node     string           // the node in the store's versions, without a colon; cut to 200 bytes; "" = StateStore
	MaxKeys  int              // maximum number of keys; 0 = no limit
	MaxBytes int              // maximum memory of keys and values, see [Store.Bytes]; 0 = no limit
	ScanPage int              // maximum number of keys on a page of SCAN; 0 = 100

	// Authorize reports whether a client may read a key or, if write is set, may write it; nil = every client
	// may read and write every key. Authorize must not call the store.
	Authorize func(clientID, username, key string, write bool) bool

	// Keep reports whether the caller will save a key's state for [Store.Restore]; nil = the caller saves
	// no keys. persist is set if the write asked to keep the key on disk. Keep must not call the store.
	Keep func(key []byte, persist bool) bool

	// Reserve is called with the estimated memory of each new KEYNOTIFY registration, and with a
	// negative number when a registration ends; nil = no limit. If Reserve returns false, the
	// registration is refused with the quota error. Reserve must not call the store.
	Reserve func(bytes int) bool

	// Changed, unless nil, is called for each change, in order, before the method that makes the
	// change returns. The Change and its slices are valid until Changed returns. Changed must not
	// call the store.
	Changed func(*Change)

	// Observe, unless nil, is called for each request, each change by [Store.Apply] and each
	// expiry, in order, after Changed. The slices of the Event are valid until Observe returns.
	// Observe must not call the store.
	Observe func(observe.Event)

	Variants Variants
}

// A Store is the state store without a network.
type Store struct {
	opts          Options
	now           time.Time // read from the clock once per call
	millis        int64     // now, in milliseconds since the Unix epoch
	micros        int64     // now, in microseconds since the Unix epoch
	clock         clock
	index         *index
	watchers      shrinkmap.Map[string, []*watcher] // by key, in the order of registration
	watching      shrinkmap.Map[string, *watcher]   // by client id
	registrations int
	queue         queue

	// Memory and values that later calls reuse.
	words   [][]byte
	version []byte
	page    []Entry
	seal    cipher.AEAD // see sealer; nil = not created yet
	change  Change

	bare, versioned []Property // user properties of replies without and with a version
	versionAt       int        // index of the version in versioned
}

// A Response is the answer to a request.
type Response struct {
	Payload    []byte     // the buffer passed to Do, with the reply appended
	Value      []byte     // a value of Large bytes or more, which follows Payload and precedes ValueEnd; nil = none
	Version    []byte     // value of `__ts`; empty = there is no `__ts`
	Properties []Property // the user properties, in order
}

// ValueEnd follows the value of a [Response] or a [Notification] in their payload.
const ValueEnd = "\r\n"

// Whole returns the payload of a [Response] or a [Notification] with its large value, if it has one.
func Whole(payload, value []byte) []byte {
	if value == nil {
		return payload
	}
	return slices.Concat(payload, value, []byte(ValueEnd))
}

// A Property is an MQTT user property.
type Property struct {
	Name  string
	Value []byte
}

const (
	defaultNode     = "StateStore"
	defaultScanPage = 100
	maxNode         = 200 // in bytes, so that a version has at most 255 bytes
)

// New returns an empty store.
func New(opts Options) *Store {
	if opts.Now == nil {
		opts.Now = time.Now
	}
	if opts.Node == "" {
		opts.Node = defaultNode
	}
	opts.Node = opts.Node[:min(len(opts.Node), maxNode)]
	if opts.ScanPage <= 0 {
		opts.ScanPage = defaultScanPage
	}
	versioned := replyProperties(opts.Variants, true)
	return &Store{
		opts:  opts,
		index: newIndex(),

		bare: replyProperties(opts.Variants, false), versioned: versioned,
		versionAt: slices.IndexFunc(versioned, func(p Property) bool { return p.Name == wire.PropTimestamp }),
	}
}

// Do answers a request and appends the reply to dst.
//
// Do checks, in this order: RESP3, verb, number of words, options, key, authorization,
// `__ts`, `__ft`, the key's fence, the condition, the quota. The real store's order is not known.
func (s *Store) Do(req *Request, dst []byte) Response {
	s.Tidy()
	c := call{Request: req, dst: dst}
	var r Response
	if s.opts.Observe == nil {
		r = s.answer(&c)
	} else {
		r = s.answerObserved(&c)
	}
	if len(req.Payload) > maxSlot {
		clear(s.words) // they keep the payload in memory
	}
	r.Properties = s.bare
	if len(r.Version) > 0 {
		r.Properties = s.versioned
		own := &r.Properties[s.versionAt].Value // a copy, because r.Version may keep a record in memory
		*own = append((*own)[:0], r.Version...)
	}
	return r
}

func (s *Store) answer(c *call) Response {
	if text := s.parse(c); text != "" {
		return s.refuse(c, text)
	}
	switch string(s.word(c.words[0])) {
	case wire.VerbGet:
		return s.get(c)
	case wire.VerbSet:
		return s.set(c)
	case wire.VerbDel:
		return s.del(c)
	case wire.VerbVDel:
		return s.vdel(c)
	case wire.VerbKeyNotify:
		return s.keyNotify(c)
	case wire.VerbScan:
		if !s.opts.Variants.NoScan {
			return s.scan(c)
		}
	}
	return s.refuse(c, wire.TextUnknownCommand)
}

// costlyValue and costlyWatchers are the size of a value, in bytes, and the number of watchers at which a request for
// the key counts as much work.
const (
	costlyValue    = 16 << 10
	costlyWatchers = 16
)

// AppendWords appends the words of a request's payload to dst, for [Request.Words]. It returns nil if Do refuses the
// payload whatever its words are.
func AppendWords(dst [][]byte, payload []byte) [][]byte {
	if hasManyWords(payload) {
		return nil
	}
	words, err := wire.AppendWords(dst, payload)
	if err != nil {
		return nil
	}
	return words
}

// IsCostly reports whether a request takes more than some 20 µs, by its verb and its key, as far as its own size does
// not show it. written is the key that the request may change; nil = none.
func (s *Store) IsCostly(words [][]byte) (written []byte, costly bool) {
	if len(words) < 2 {
		return nil, false
	}
	switch string(s.word(words[0])) {
	case wire.VerbScan:
		return nil, true
	case wire.VerbGet, wire.VerbKeyNotify:
	default:
		written = words[1]
		costly = len(s.watchers.M[string(written)]) > costlyWatchers
	}
	r := s.index.find(words[1])
	return written, costly || r != 0 && s.index.arena.size(r) > costlyValue
}

// MayNotify reports whether a request may change a key that clients watch.
func (s *Store) MayNotify(words [][]byte) bool {
	written, _ := s.IsCostly(words)
	return written != nil && s.Notifies(written)
}

// Notifies reports whether clients watch a key. A nil key asks about all keys.
func (s *Store) Notifies(key []byte) bool {
	if key == nil {
		return len(s.watchers.M) > 0
	}
	return len(s.watchers.M[string(key)]) > 0
}

// parse sets c.words. It returns the text of the refusal, or "".
func (s *Store) parse(c *call) string {
	if c.words = c.Words; c.words != nil {
		return ""
	}
	if hasManyWords(c.Payload) {
		return wire.TextWrongArguments
	}
	var err error
	if s.words, err = wire.AppendWords(s.words[:0], c.Payload); err != nil {
		return wire.TextSyntax
	}
	c.words = s.words
	return ""
}

// Lookup returns the entry of a key, and whether the key exists and has not expired.
func (s *Store) Lookup(key []byte) (e Entry, found bool) {
	r := s.index.find(key)
	if r == 0 {
		return Entry{}, false
	}
	if e = s.index.entry(r); e.due(s.opts.Now().UnixMicro()) {
		return Entry{}, false
	}
	return e, true
}

// From returns an iterator over the entries at or after key that have not expired, in the byte order
// of their keys. The store must not change during the iteration.
func (s *Store) From(key []byte) iter.Seq[Entry] {
	now := s.opts.Now().UnixMicro()
	return func(yield func(Entry) bool) {
		s.index.from(key, func(e Entry) bool { return e.due(now) || yield(e) })
	}
}

// Len returns the number of keys, including expired keys that have not been removed yet.
func (s *Store) Len() int { return s.index.len() }
