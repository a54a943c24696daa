package store

import (
	"math/bits"
	"slices"

	"github.com/sscli/sscli/internal/shrinkmap"
	"github.com/sscli/sscli/internal/wire"
)

// textKeyTooLong is the refusal of a KEYNOTIFY for a key that is too long. The real store's text is not known.
const textKeyTooLong = "the key is too long for a notification topic"

// keyNotify registers the client for a key or, with STOP, removes its registration (protocol.md
// 2.5). One STOP is enough, even if the client has registered repeatedly.
func (s *Store) keyNotify(c *call) Response {
	if text := c.checkWords(2, 3); text != "" {
		return s.refuse(c, text)
	}
	stop := len(c.words) == 3
	if stop && string(s.word(c.words[2])) != wire.OptionStop {
		return s.refuse(c, wire.TextSyntax)
	}
	if text := s.check(c, false, false); text != "" {
		return s.refuse(c, text)
	}
	watching := s.watches(c.ClientID, c.key)
	switch {
	case stop && !watching:
		return s.count(c, 0, causeNotWatched)
	case stop:
		s.unwatch(s.watching.M[c.ClientID], string(c.key))
	case watching && s.opts.Variants.RepeatedWatchZero:
		return s.count(c, 0, causeWatched)
	case !watching && len(c.key) > wire.MaxNotifyKey(c.ClientID):
		return s.refuse(c, textKeyTooLong)
	case !watching && !s.watch(c.ClientID, string(c.key)):
		return s.refuse(c, wire.TextQuota)
	}
	return s.ok(c, "")
}

// A watcher holds the registrations of one connection of a client.
type watcher struct {
	clientID string
	keys     shrinkmap.Map[string, struct{}]
	ended    bool // the client has disconnected
}

const word = bits.UintSize / 8 // size of a pointer in bytes

// watcherCost returns the estimated memory of a watcher without registrations, in bytes.
func watcherCost(clientID string) int { return 39*word + len(clientID) }

// registrationCost returns the estimated memory of a registration, in bytes.
func registrationCost(key string) int { return 17*word + len(key) }

// watch registers a client for a key. It returns false if Options.Reserve refuses the memory.
func (s *Store) watch(clientID, key string) bool {
	w := s.watching.M[clientID]
	cost := registrationCost(key)
	if w == nil {
		cost += watcherCost(clientID)
	}
	if s.opts.Reserve != nil && !s.opts.Reserve(cost) {
		return false
	}
	if w == nil {
		w = &watcher{clientID: clientID}
		s.watching.Set(clientID, w)
	}
	w.keys.Set(key, struct{}{})
	s.watchers.Set(key, append(s.watchers.M[key], w))
	s.registrations++
	return true
}

func (s *Store) watches(clientID string, key []byte) bool {
	w := s.watching.M[clientID]
	if w == nil {
		return false
	}
	_, found := w.keys.M[string(key)]
	return found
}

func (s *Store) unwatch(w *watcher, key string) {
	w.keys.Delete(key)
	cost := registrationCost(key)
	if len(w.keys.M) == 0 {
		cost += watcherCost(w.clientID)
		if !w.ended {
			s.watching.Delete(w.clientID)
		}
	}
	s.registrations--
	if s.opts.Reserve != nil {
		s.opts.Reserve(-cost)
	}
	rest := slices.DeleteFunc(s.watchers.M[key], func(other *watcher) bool { return other == w })
	if len(rest) == 0 {
		s.watchers.Delete(key)
		return
	}
	s.watchers.Set(key, rest)
}

// Unwatch ends a client's registration for a key, if there is one.
func (s *Store) Unwatch(clientID, key string) {
	if s.watches(clientID, []byte(key)) {
		s.unwatch(s.watching.M[clientID], key)
	}
}

// maxUnwatched is the maximum number of registrations that one step of Disconnect removes.
const maxUnwatched = 32

// Disconnect ends a client's registrations (protocol.md 2.5). Each call to release then releases the
// memory of some of them. The caller must call release until it returns false, unless release is nil.
func (s *Store) Disconnect(clientID string) (release func() (more bool)) {
	w := s.watching.M[clientID]
	if w == nil {
		return nil
	}
	w.ended = true
	s.watching.Delete(clientID)
	release = func() bool {
		some := make([]string, 0, maxUnwatched)
		for key := range w.keys.M {
			if some = append(some, key); len(some) == maxUnwatched {
				break
			}
		}
		for _, key := range some {
			s.unwatch(w, key)
		}
		return len(w.keys.M) > 0
	}
	if release() {
		return release
	}
	return nil
}

// Registrations returns the total number of KEYNOTIFY registrations.
func (s *Store) Registrations() int { return s.registrations }
