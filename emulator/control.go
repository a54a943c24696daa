package emulator

import (
	"context"
	"fmt"
	"time"

	"github.com/sscli/sscli/client/wire"
	"github.com/sscli/sscli/emulator/broker"
)

// State is what a test may wait for, see [Server.Await].
type State struct {
	Clients       int // connected, with a session
	Connections   int // open, also before CONNECT
	Requests      int // that reached the store
	Ignored       int // with QoS 0 or 2, without a response topic or correlation data
	Expired       int // discarded because of their message expiry
	Replies       int // for which there was a subscription
	Undelivered   int // for which there was none
	Notifications int
	TooLarge      int // messages over a client's Maximum Packet Size
	Delayed       int // requests and replies that wait for their time
	Registrations int // by KEYNOTIFY
	Keys          int
	Stored        int // bytes of memory of the keys and values, estimated
}

func (s *Server) state() State {
	st := s.counts
	b := s.broker.Stats()
	st.Clients, st.Connections = b.Clients, b.Connections
	st.Registrations, st.Keys, st.Stored = s.store.Registrations(), s.store.Len(), s.store.Bytes()
	return st
}

// State returns the present state.
func (s *Server) State() State {
	s.broker.Lock()
	defer s.broker.Unlock()
	return s.state()
}

// Await waits until reached returns true for the state. reached must not call the server. The
// error wraps the context's or ErrClosed, and shows the last state.
func (s *Server) Await(ctx context.Context, reached func(State) bool) error {
	defer context.AfterFunc(ctx, func() {
		s.broker.Lock()
		defer s.broker.Unlock()
		s.changed.Broadcast()
	})()
	s.broker.Lock()
	defer s.broker.Unlock()
	for {
		st := s.state()
		switch {
		case reached(st):
			return nil
		case ctx.Err() != nil:
			return fmt.Errorf("await a state of the emulator: %w; it is %+v", context.Cause(ctx), st)
		case s.closed:
			return fmt.Errorf("await a state of the emulator: %w; it is %+v", ErrClosed, st)
		}
		s.changed.Wait()
	}
}

// FastForward moves the clock of the store and of the broker. Everything that becomes due happens
// in order before FastForward returns: keys, sessions and messages expire; notifications, delayed
// requests, replies and wills are sent. Keep Alive uses real time.
func (s *Server) FastForward(d time.Duration) {
	s.update(func() { s.broker.Advance(d) })
	s.awaitCommit()
}

// awaitCommit waits until the data file has all changes, or cannot be written: see Err.
func (s *Server) awaitCommit() { _ = s.journal.wait() }

// Now returns the store's clock.
func (s *Server) Now() time.Time {
	s.broker.Lock()
	defer s.broker.Unlock()
	return s.now()
}

// Intercept sets a function that decides what happens to each request, before the store has it.
// decide runs on the goroutine of the client's connection, and may call the server. nil ends
// the interception.
func (s *Server) Intercept(decide func(Request) Action) {
	s.update(func() { s.intercept = decide })
}

// RefuseConnect sets a function that decides on each CONNECT: a reason of 0x80 or more refuses the
// client with that CONNACK, a lower one lets the client in. nil lets all clients in.
func (s *Server) RefuseConnect(decide func(clientID, username string) (reason byte)) {
	s.update(func() { s.refuse = decide })
}

// RefuseReauth sets a function that decides on each re-authentication: a reason of 0x80 or more
// is the DISCONNECT's, 0x18 tells the client to try again later, and after any other one
// Options.CheckToken or VerifyToken decides, as with nil.
func (s *Server) RefuseReauth(decide func(clientID string, token []byte) (reason byte)) {
	s.update(func() { s.reauth = decide })
}

// DropAll cuts the connections of all clients, without a DISCONNECT. When it
// returns, their registrations are gone.
func (s *Server) DropAll() {
	s.update(func() {
		s.broker.Clients(func(c *broker.Client) { c.Cut() })
	})
}

// Do has the store answer a request as if a client had sent it, although the client need not be
// connected. Watchers are notified. The response is empty if the change could not be written
// to Options.Data.
func (s *Server) Do(req Request) Response {
	resp := s.answer(req)
	if s.journal.wait() != nil {
		return Response{}
	}
	return resp
}

// answer is Do without waiting for Options.Data.
func (s *Server) answer(req Request) (resp Response) {
	s.update(func() {
		r := s.store.Do(req.forStore(), nil)
		resp = Response{Payload: r.Payload, Version: version(r.Version), Properties: cloneProperties(r.Properties)}
		s.notify()
		s.arm()
	})
	return resp
}

// Set stores a value, as a client without a name would, and returns its version.
func (s *Server) Set(key, value string) (wire.Version, error) {
	now := wire.Version{Wall: s.Now().UnixMilli(), Node: "emulator"}
	resp := s.Do(NewRequest("", wire.AppendRequest(nil, wire.VerbSet, key, value), Property{wire.PropTimestamp, now.String()}))
	reply, err := wire.ParseReply(resp.Payload)
	if err != nil {
		return wire.Version{}, fmt.Errorf("set %q: %w", key, err)
	}
	if refused := reply.StoreError(); refused != nil {
		return wire.Version{}, fmt.Errorf("set %q: %w", key, refused)
	}
	return resp.Version, nil
}

// Get returns a key's state.
func (s *Server) Get(key string) (Entry, bool) {
	defer s.awaitCommit()
	s.broker.Lock()
	defer s.broker.Unlock()
	e, found := s.store.Lookup([]byte(key))
	if !found {
		return Entry{}, false
	}
	return newEntry(e), true
}

// Keys returns the keys in the order of their bytes.
func (s *Server) Keys() []string {
	defer s.awaitCommit()
	s.broker.Lock()
	defer s.broker.Unlock()
	var keys []string
	for e := range s.store.From(nil) {
		keys = append(keys, string(e.Key()))
	}
	return keys
}

// Changes returns what changed in the store, the oldest first: the last 1024 changes.
func (s *Server) Changes() []Change {
	s.broker.Lock()
	defer s.broker.Unlock()
	return s.changes.all()
}
