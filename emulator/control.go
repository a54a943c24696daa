package emulator

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/sscli/sscli/internal/broker"
	"github.com/sscli/sscli/internal/store"
	"github.com/sscli/sscli/internal/wire"
)

// A State holds the counts that a test can wait for with [Server.Await].
type State struct {
	Clients       int // connected clients
	Connections   int // open connections, including those on which no CONNECT has arrived yet
	Requests      int // valid requests received
	Ignored       int // ignored requests: QoS 0 or 2, no response topic or no correlation data
	Expired       int // requests discarded because their Message Expiry Interval had passed
	Replies       int // replies with a subscriber, including replies too large for all subscribers
	Undelivered   int // replies without a subscriber, or with no room in any subscriber's session
	Notifications int // notifications sent
	TooLarge      int // messages dropped because they exceed a client's Maximum Packet Size
	Delayed       int // requests, replies and notifications that are being delayed
	Registrations int // KEYNOTIFY registrations
	Keys          int // keys in the store
	Stored        int // estimated memory of keys and values, in bytes
}

func (s *Server) state() State {
	st := s.counts
	b := s.broker.Stats()
	st.Clients, st.Connections = b.Clients, b.Connections
	st.Registrations, st.Keys, st.Stored = s.store.Registrations(), s.store.Len(), s.store.Bytes()
	return st
}

// State returns the current state.
func (s *Server) State() State {
	s.lock()
	defer s.broker.Unlock()
	return s.state()
}

// Await waits until reached returns true for the server's state. reached must not call the server.
// If ctx is done or the server ends first, the error wraps the cause of ctx, ErrClosed or the error that
// [Server.Err] returns, and includes the last state.
func (s *Server) Await(ctx context.Context, reached func(State) bool) error {
	defer context.AfterFunc(ctx, func() {
		s.lock()
		defer s.broker.Unlock()
		s.changed.Broadcast()
	})()
	s.lock()
	defer s.broker.Unlock()
	for {
		st := s.state()
		switch {
		case reached(st):
			return nil
		case ctx.Err() != nil:
			return fmt.Errorf("await a state of the emulator: %w; it is %+v", context.Cause(ctx), st)
		case s.err != nil:
			return fmt.Errorf("await a state of the emulator: %w; it is %+v", s.err, st)
		case s.closed:
			return fmt.Errorf("await a state of the emulator: %w; it is %+v", ErrClosed, st)
		}
		s.changed.Wait()
	}
}

// FastForward advances the clocks of the store and the broker by d. Before it returns, all events
// that become due happen in order: keys, sessions and messages expire, delayed requests are
// processed, and notifications, delayed replies and wills are sent. Keep Alive uses real time. The clocks
// get at most 292 years (the largest Duration) ahead of the real clock.
func (s *Server) FastForward(d time.Duration) {
	s.update(func() {
		s.broker.Advance(d)
		s.awaitNotify()
	})
	s.awaitCommit()
}

// AgeKeys lets keys expire d earlier, as if d had passed for these keys alone: the clocks, and so the versions of the
// store, stay. A client whose clock nobody moves needs this: the SDKs refuse versions that are more than a minute ahead of
// their own clock. Only keys for which match returns true are aged; nil = all that expire at all. left is the time until
// the key would expire; match must not call the server. AgeKeys returns the number of keys that expired, of which
// watchers are notified before it returns.
func (s *Server) AgeKeys(d time.Duration, match func(key string, left time.Duration) bool) (expired int) {
	s.update(func() {
		s.journal.admit()
		if s.closed {
			return
		}
		expired = s.store.Hasten(d, match, s.journal.add)
		for more := expired > 0; more; {
			s.awaitRoom(always)
			more = s.store.ExpireSome()
			s.notify()
		}
		s.arm()
		s.awaitNotify()
	})
	s.awaitCommit()
	return expired
}

// awaitCommit waits until all changes are in the data file, or until a commit fails. After a failed
// commit the server ends, and Err returns the error once [Server.Done] is closed.
func (s *Server) awaitCommit() { _ = s.journal.wait() }

// Now returns the time on the store's clock.
func (s *Server) Now() time.Time {
	s.lock()
	defer s.broker.Unlock()
	return s.now()
}

// Intercept sets the function decide, which the server calls for each request before the store processes
// the request. The returned [Action] specifies what happens to the request. decide runs on the goroutine
// of the client's connection, and may call the server. If decide is nil, requests are not intercepted.
func (s *Server) Intercept(decide func(Request) Action) {
	s.update(func() { s.intercept = decide })
}

// InterceptNotifications sets the function decide, which the server calls for each notification to each
// watcher. The returned [NotificationAction] specifies what happens to it. The server is locked during the
// call: decide must not call it. If decide is nil, notifications are not intercepted.
func (s *Server) InterceptNotifications(decide func(Notification) NotificationAction) {
	s.update(func() { s.onNotify = decide })
}

// RefuseConnect sets the function decide, which the server calls for each CONNECT. If decide returns a
// reason code of 0x80 or more, the server refuses the client with that code in CONNACK. For any other
// code, or if decide is nil, the login checks in Options apply.
func (s *Server) RefuseConnect(decide func(clientID, username string) (reason byte)) {
	s.update(func() { s.refuse = decide })
}

// RefuseReauth sets the function decide, which the server calls for each re-authentication. If decide
// returns a reason code of 0x80 or more, the server disconnects the client with that code; 0x18 tells
// the client to try again later. For any other code, or if decide is nil, the server checks the token
// with Options.CheckToken.
func (s *Server) RefuseReauth(decide func(clientID string, token []byte) (reason byte)) {
	s.update(func() { s.reauth = decide })
}

// DropAll closes the connections of all clients, of MQTT without a DISCONNECT and of Redis. The clients' KEYNOTIFY
// registrations end before DropAll returns.
func (s *Server) DropAll() {
	s.update(s.cutAll)
}

// Reset puts the server in its state at the start, and keeps the connections of the clients, unless cut is set: the
// keys are those of Options.Load, of which a second iteration must be possible; the clock is the real one plus
// Options.Skew; there are no faults, interceptors, delayed messages, retained messages, MQTT sessions of clients that are
// away, or messages for clients that are not sent yet; and the counts of State, Changes and the settings of Redis
// clients are as at the start. Registrations and subscriptions of connected clients go on; those that watch a key are
// notified of its deletion. Versions of the store may then be lower than earlier ones. After Close it returns ErrClosed.
func (s *Server) Reset(cut bool) (err error) {
	s.update(func() {
		if s.closed {
			err = ErrClosed
			return
		}
		s.awaitNotify()
		s.dropDelayed()
		s.removeFaults()
		s.intercept, s.onNotify, s.refuse, s.reauth = nil, nil, nil, nil
		if cut {
			s.cutAll()
		}
		s.store.Reset()
		s.notify()
		s.arm()
		s.broker.Reset()
		s.journal.resetClock()
		if s.port != nil {
			s.port.server.ResetNotify()
		}
		s.counts, s.changes = State{}, nil
	})
	if err = cmp.Or(err, s.journal.wait()); err != nil {
		return err
	}
	return s.load()
}

// Restart acts like a restart of the broker with its store: the connections of all clients are closed as by
// [Server.DropAll], so that the KEYNOTIFY registrations end, and delayed requests and replies are lost. Unless keepData is
// set, the store is then empty; the keys are deleted, also from the data file, whatever Options.Policy and fences say,
// and [Server.Changes] lists the deletions. All this is one step: no client that connects again sees a key. The MQTT
// sessions of clients with a Session Expiry Interval go on. After Close it returns ErrClosed.
func (s *Server) Restart(keepData bool) (err error) {
	s.update(func() {
		if s.closed {
			err = ErrClosed
			return
		}
		s.cutAll()
		s.dropDelayed()
		if !keepData {
			s.store.Clear()
			s.notify()
			s.arm()
		}
	})
	return cmp.Or(err, s.journal.wait())
}

// cutAll closes the connections of all clients, also those of Redis. The broker must be locked.
func (s *Server) cutAll() {
	s.broker.Clients(func(c *broker.Client) { c.Cut() })
	if s.port != nil {
		s.port.server.Disconnect()
	}
}

// Do answers a request as if the client req.ClientID had sent it. The client need not be connected.
// Watchers are notified. The response is empty if the data file cannot be written, or if the server is
// closed.
func (s *Server) Do(req Request) Response {
	resp := s.answer(func() Request { return req })
	if s.journal.wait() != nil {
		return Response{}
	}
	return resp
}

// answer is like Do, but does not wait for the data file. The broker is locked while request runs.
func (s *Server) answer(request func() Request) (resp Response) {
	s.update(func() {
		if s.journal.admit(); s.closed {
			return
		}
		req := request()
		r := s.store.Do(req.forStore(), nil)
		s.loading = false
		resp = Response{Payload: store.Whole(r.Payload, r.Value), Version: version(r.Version), Properties: cloneProperties(r.Properties)}
		s.notify()
		s.arm()
		s.awaitNotify()
	})
	return resp
}

// Set sets a key, as a client with an empty id and no user name, and returns the new version. After Close
// it returns ErrClosed.
func (s *Server) Set(key, value string) (Version, error) {
	return s.SetEntry(key, Entry{Value: []byte(value)})
}

// SetEntry is like Set, with the other fields of e: the time on the store's clock when the key expires, the
// fencing token, and whether to ask for the key to be kept on disk. The store gives the key its Version; that
// of e is ignored.
func (s *Server) SetEntry(key string, e Entry) (Version, error) {
	seed := Seed{Key: key, Value: e.Value, Persist: e.Persist}
	if !e.Expires.IsZero() {
		seed.TTL = e.Expires.Sub(s.Now()).Round(time.Millisecond)
		if seed.TTL <= 0 {
			return Version{}, fmt.Errorf("set %q: it would have expired at %v", key, e.Expires)
		}
	}
	version, err := s.set(seed, e.Fence, false)
	if err == nil {
		err = s.journal.wait()
	}
	return version, err
}

// Delete deletes a key, as a client with an empty id and no user name that has the key's fencing token. It
// returns whether the key existed. After Close it returns ErrClosed.
func (s *Server) Delete(key string) (bool, error) {
	_, deleted, err := s.write(func() []Property {
		e, found := s.store.Lookup([]byte(key))
		if !found {
			return nil
		}
		return fenced(version(e.Fence()))
	}, wire.VerbDel, key)
	if err == nil {
		err = s.journal.wait()
	}
	return deleted.Int > 0, err
}

// Get returns a key's state, and whether the key exists.
func (s *Server) Get(key string) (Entry, bool) {
	defer s.awaitCommit()
	s.lock()
	defer s.broker.Unlock()
	e, found := s.store.Lookup([]byte(key))
	if !found {
		return Entry{}, false
	}
	return newEntry(e), true
}

// All returns all keys in byte order, with their state. Keys that are set during the iteration may be missing. The server
// is not locked while the loop runs.
func (s *Server) All() iter.Seq2[string, Entry] {
	return func(yield func(string, Entry) bool) {
		for start := []byte(nil); ; {
			key, e, found := s.next(start)
			if !found || !yield(key, e) {
				return
			}
			start = append([]byte(key), 0)
		}
	}
}

// next returns the first key that is not before start.
func (s *Server) next(start []byte) (key string, e Entry, found bool) {
	defer s.awaitCommit()
	s.lock()
	defer s.broker.Unlock()
	for first := range s.store.From(start) {
		return string(first.Key()), newEntry(first), true
	}
	return "", Entry{}, false
}

// Keys returns all keys in byte order.
func (s *Server) Keys() []string {
	defer s.awaitCommit()
	s.lock()
	defer s.broker.Unlock()
	var keys []string
	for e := range s.store.From(nil) {
		keys = append(keys, string(e.Key()))
	}
	return keys
}
