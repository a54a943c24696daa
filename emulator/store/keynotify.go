package store

import (
	"slices"

	"github.com/sscli/sscli/client/wire"
)

// textKeyTooLong refuses a KEYNOTIFY for a key that is too long. The real store's text is not known.
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
	_, watching := s.watching[c.ClientID][string(c.key)]
	switch {
	case stop && !watching:
		return s.count(c, 0, causeNotWatched)
	case stop:
		s.unwatch(c.ClientID, string(c.key))
	case watching && s.opts.Variants.RepeatedWatchZero:
		return s.count(c, 0, causeWatched)
	case !watching && len(c.key) > wire.MaxNotifyKey(c.ClientID):
		return s.refuse(c, textKeyTooLong)
	case !watching && !s.watch(c.ClientID, string(c.key)):
		return s.refuse(c, wire.TextQuota)
	}
	return s.ok(c, "")
}

// registrationOverhead is the estimated memory that a registration needs besides its key and client
// id, in bytes.
const registrationOverhead = 400

// watch registers a client for a key. It returns false if there is no room.
func (s *Store) watch(clientID, key string) bool {
	if s.opts.Reserve != nil && !s.opts.Reserve(registrationOverhead+len(key)+len(clientID)) {
		return false
	}
	if s.watching[clientID] == nil {
		s.watching[clientID] = make(map[string]struct{})
	}
	s.watching[clientID][key] = struct{}{}
	s.watchers[key] = append(s.watchers[key], clientID)
	s.registrations++
	return true
}

func (s *Store) unwatch(clientID, key string) {
	delete(s.watching[clientID], key)
	if len(s.watching[clientID]) == 0 {
		delete(s.watching, clientID)
	}
	s.registrations--
	if s.opts.Reserve != nil {
		s.opts.Reserve(-registrationOverhead - len(key) - len(clientID))
	}
	rest := slices.DeleteFunc(s.watchers[key], func(id string) bool { return id == clientID })
	if len(rest) == 0 {
		delete(s.watchers, key)
		return
	}
	s.watchers[key] = rest
}

// Disconnect removes a client's registrations (protocol.md 2.5).
func (s *Store) Disconnect(clientID string) {
	for key := range s.watching[clientID] {
		s.unwatch(clientID, key)
	}
}

// Registrations returns the total number of KEYNOTIFY registrations.
func (s *Store) Registrations() int { return s.registrations }
