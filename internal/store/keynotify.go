package store

import (
	"slices"

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
		s.unwatch(s.watching[c.ClientID], string(c.key))
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
	keys     map[string]struct{}
	ended    bool // the client has disconnected
}

// registrationOverhead is the estimated memory that a registration needs in addition to its key and
// client id, in bytes.
const registrationOverhead = 400

// watch registers a client for a key. It returns false if Options.Reserve refuses the memory.
func (s *Store) watch(clientID, key string) bool {
	if s.opts.Reserve != nil && !s.opts.Reserve(registrationOverhead+len(key)+len(clientID)) {
		return false
	}
	w := s.watching[clientID]
	if w == nil {
		w = &watcher{clientID: clientID, keys: make(map[string]struct{})}
		s.watching[clientID] = w
	}
	w.keys[key] = struct{}{}
	s.watchers[key] = append(s.watchers[key], w)
	s.registrations++
	return true
}

func (s *Store) watches(clientID string, key []byte) bool {
	w := s.watching[clientID]
	if w == nil {
		return false
	}
	_, found := w.keys[string(key)]
	return found
}

func (s *Store) unwatch(w *watcher, key string) {
	delete(w.keys, key)
	if len(w.keys) == 0 && !w.ended {
		delete(s.watching, w.clientID)
	}
	s.registrations--
	if s.opts.Reserve != nil {
		s.opts.Reserve(-registrationOverhead - len(key) - len(w.clientID))
	}
	rest := slices.DeleteFunc(s.watchers[key], func(other *watcher) bool { return other == w })
	if len(rest) == 0 {
		delete(s.watchers, key)
		return
	}
	s.watchers[key] = rest
}

// maxUnwatched is the maximum number of registrations that one step of Disconnect removes.
const maxUnwatched = 32

// Disconnect ends a client's registrations (protocol.md 2.5). Each call to release then releases the
// memory of some of them. The caller must call release until it returns false, unless release is nil.
func (s *Store) Disconnect(clientID string) (release func() (more bool)) {
	w := s.watching[clientID]
	if w == nil {
		return nil
	}
	w.ended = true
	delete(s.watching, clientID)
	release = func() bool {
		n := 0
		for key := range w.keys {
			if n++; n > maxUnwatched {
				return true
			}
			s.unwatch(w, key)
		}
		return false
	}
	if release() {
		return release
	}
	return nil
}

// Registrations returns the total number of KEYNOTIFY registrations.
func (s *Store) Registrations() int { return s.registrations }
