package store

import (
	"crypto/cipher"
	"iter"
	"slices"
	"time"

	"github.com/sscli/sscli/client/wire"
	"github.com/sscli/sscli/observe"
)

// Options configure a [Store]. The zero value is a store without limits on the present
// clock.
type Options struct {
	Now      func() time.Time // the store's wall clock; nil is time.Now
	Node     string           // the node of the store's versions, without a colon, at most 200 bytes; "" is StateStore
	MaxKeys  int              // the quota of keys; 0 is none
	MaxBytes int              // the quota of their memory, see [Store.Bytes]; 0 is none
	ScanPage int              // keys on a page of SCAN; 0 is 100

	// Authorize reports whether a client may read or write a key; nil: every client may. It must
	// not call the store.
	Authorize func(clientID, username, key string, write bool) bool

	// Keep reports whether the caller keeps a copy of the key's state, for [Store.Restore]; nil:
	// it keeps none. persist is set if the write asked for that. It must not call the store.
	Keep func(key []byte, persist bool) bool

	// Reserve is called with the size of each registration by KEYNOTIFY, and with the negated size
	// when the registration ends; nil: no limit. If it returns false, the registration is refused
	// with the quota error. It must not call the store.
	Reserve func(bytes int) bool

	// Changed is called for each change, in order, before the method that makes it returns; it
	// may be nil. The Change and its slices are valid during the call. It must not call the
	// store.
	Changed func(*Change)

	// Observe is called for each request, each write of [Store.Apply] that was not refused,
	// and each expiry, in order, after Changed; it may be nil. The slices of the Event are
	// valid during the call. It must not call the store.
	Observe func(observe.Event)

	Variants Variants
}

// A Store is the state store without a network.
type Store struct {
	opts          Options
	now           time.Time // one reading of the clock for a whole call
	millis        int64     // now, since the Unix epoch
	micros        int64     // the same
	clock         clock
	index         *index
	watchers      map[string][]string            // client ids by key, in the order of registration
	watching      map[string]map[string]struct{} // client id to keys
	registrations int
	queue         queue

	// Reused buffers.
	words   [][]byte
	version []byte
	page    []Entry
	seal    cipher.AEAD // see sealer; nil: not used yet
	change  Change

	bare, versioned []Property // of replies without and with a version
	versionAt       int        // index of the version in versioned
}

// A Response is the answer to a request.
type Response struct {
	Payload    []byte     // the buffer that Do was given, with the reply appended
	Version    []byte     // of `__ts`; empty if there is none
	Properties []Property // the user properties, in order
}

// A Property is an MQTT user property.
type Property struct {
	Name  string
	Value []byte
}

const (
	defaultNode     = "StateStore"
	defaultScanPage = 100
	maxNode         = 200 // a version is at most 255 bytes
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
		opts:     opts,
		index:    newIndex(),
		watchers: make(map[string][]string),
		watching: make(map[string]map[string]struct{}),

		bare: replyProperties(opts.Variants, false), versioned: versioned,
		versionAt: slices.IndexFunc(versioned, func(p Property) bool { return p.Name == wire.PropTimestamp }),
	}
}

// Do answers a request and appends the reply to dst.
//
// The order of the checks is assumed, not known: RESP3, verb, number of words,
// options, key, authorization, `__ts`, `__ft`, the key's fence, the condition,
// the quota.
func (s *Store) Do(req *Request, dst []byte) Response {
	s.Expire()
	c := call{Request: req, dst: dst}
	var r Response
	if s.opts.Observe == nil {
		r = s.answer(&c)
	} else {
		r = s.answerObserved(&c)
	}
	r.Properties = s.bare
	if len(r.Version) > 0 {
		r.Properties = s.versioned
		r.Properties[s.versionAt].Value = r.Version
	}
	return r
}

func (s *Store) answer(c *call) Response {
	var err error
	s.words, err = wire.AppendWords(s.words[:0], c.Payload)
	if err != nil {
		return s.refuse(c, wire.TextSyntax)
	}
	c.words = s.words
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

// Lookup returns the entry of a key, and whether there is one.
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

// From returns the entries from a key on, in the order of the bytes of the keys. The store
// must not change meanwhile.
func (s *Store) From(key []byte) iter.Seq[Entry] {
	now := s.opts.Now().UnixMicro()
	return func(yield func(Entry) bool) {
		s.index.from(key, func(e Entry) bool { return e.due(now) || yield(e) })
	}
}

// Len returns the number of keys, including expired ones that were not removed yet.
func (s *Store) Len() int { return s.index.len() }
