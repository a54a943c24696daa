package redis

import (
	"bytes"
	"fmt"
)

// A class is a set of event classes, as in the value of notify-keyspace-events.
type class uint32

const (
	classKeyspace  class = 1 << iota // K
	classKeyevent                    // E
	classGeneric                     // g
	classString                      // $
	classList                        // l
	classSet                         // s
	classHash                        // h
	classSortedSet                   // z
	classExpired                     // x
	classEvicted                     // e
	classStream                      // t
	classModule                      // d
	classMiss                        // m
	classNew                         // n

	// classAll is the set that the letter A stands for.
	classAll = classGeneric | classString | classList | classSet | classHash | classSortedSet | classExpired | classEvicted | classStream | classModule
)

// classLetters are the letters of the classes, in the order in which Redis shows them.
var classLetters = []struct {
	letter byte
	class  class
}{
	{'g', classGeneric}, {'$', classString}, {'l', classList}, {'s', classSet}, {'h', classHash}, {'z', classSortedSet}, {'x', classExpired},
	{'e', classEvicted}, {'t', classStream}, {'d', classModule}, {'n', classNew}, {'K', classKeyspace}, {'E', classKeyevent}, {'m', classMiss},
}

// CheckNotify returns an error if flags is not a valid value of notify-keyspace-events.
func CheckNotify(flags string) error {
	if _, ok := parseClasses(flags); !ok {
		return fmt.Errorf("notification flags %.32q: must be letters of Ag$lshzxeKEtdmn", flags)
	}
	return nil
}

// parseClasses parses a value of notify-keyspace-events.
func parseClasses(text string) (flags class, ok bool) {
letters:
	for i := range len(text) {
		if text[i] == 'A' {
			flags |= classAll
			continue
		}
		for _, l := range classLetters {
			if l.letter == text[i] {
				flags |= l.class
				continue letters
			}
		}
		return 0, false
	}
	return flags, true
}

// String returns f as Redis shows it in the value of notify-keyspace-events.
func (f class) String() string {
	var text []byte
	rest := f
	if f&classAll == classAll {
		text, rest = append(text, 'A'), f&^(classAll|classNew)
	}
	for _, l := range classLetters {
		if rest&l.class != 0 {
			text = append(text, l.letter)
		}
	}
	return string(text)
}

const (
	keyspacePrefix = "__keyspace@0__:"
	keyeventPrefix = "__keyevent@0__:"
)

// event sends an event of the command that this connection is running. With a remote store it does
// nothing, because the Backend reports the change.
func (c *conn) event(kind class, name string, key []byte) {
	if c.s.local != nil {
		c.s.event(c, kind, name, key)
	}
}

// maxKey is the maximum length of a key in the store, in bytes. A read of a longer key sends no event "keymiss".
const maxKey = 65_535

// costlyMessage is the number of steps at which a message counts as much work. A step takes about a nanosecond.
const (
	costlyMessage = 20_000
	sendSteps     = 300 // for each subscriber
)

// isCostly reports whether a message on a channel of the given length is much work: because there are many patterns or
// many subscribers. s.mu is held.
func (s *Server) isCostly(channel []byte) bool {
	patterns := &s.rosters[ofPatterns]
	listeners := patterns.listeners + len(s.rosters[ofChannels].subscribers.M[string(channel)]) + len(s.rosters[ofShards].subscribers.M[string(channel)])
	return lookCost*len(patterns.parsed)+patterns.steps*len(channel)+sendSteps*listeners > costlyMessage
}

// IsCostly reports whether the events of a key's change are much work, see Turns.Crowded.
func (s *Server) IsCostly(key []byte) bool {
	if class(s.flags.Load())&(classKeyspace|classKeyevent) == 0 || len(key) > maxKey {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.channel = append(append(s.channel[:0], keyspacePrefix...), key...)
	return s.isCostly(s.channel)
}

// event publishes an event on its keyspace and keyevent channels, unless notify-keyspace-events
// excludes it. from is the connection whose command is running, or nil.
func (s *Server) event(from *conn, kind class, name string, key []byte) {
	flags := class(s.flags.Load())
	if flags&kind == 0 || flags&(classKeyspace|classKeyevent) == 0 || len(key) > maxKey {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.rosters[ofChannels].subscribers.M) == 0 && len(s.rosters[ofPatterns].subscribers.M) == 0 {
		return
	}
	shared := len(key) >= costlyValue
	if shared { // subscribers keep the channel and the key
		key, s.channel = bytes.Clone(key), nil
	}
	if flags&classKeyspace != 0 {
		s.channel = append(append(s.channel[:0], keyspacePrefix...), key...)
		s.eventName = append(s.eventName[:0], name...)
		s.publish(from, s.channel, s.eventName, key)
		if shared {
			s.channel = nil
		}
	}
	if flags&classKeyevent != 0 {
		s.channel = append(append(s.channel[:0], keyeventPrefix...), name...)
		s.publish(from, s.channel, key, key)
	}
}

// Changed sends the events of a change to subscribers, and makes EXEC fail for connections that watch the
// key. A Backend must report changes in the order in which they happened. A [Local] must be locked.
func (s *Server) Changed(ch Change) {
	if len(s.watched.M) > 0 { // only a Local has watched keys, and it is locked
		for c := range s.watched.M[string(ch.Key)] {
			c.dirty.Store(true)
		}
		s.watched.Delete(string(ch.Key)) // so that other changes of the key take less time
	}
	from := s.active // nil if the backend is remote
	if ch.New {
		s.event(from, classNew, "new", ch.Key)
	}
	switch ch.Kind {
	case Stored:
		s.event(from, classString, "set", ch.Key)
	case StoredTill:
		s.event(from, classString, "set", ch.Key)
		s.event(from, classGeneric, "expire", ch.Key)
	case Deleted:
		s.event(from, classGeneric, "del", ch.Key)
	case Expired:
		s.expired.Add(1)
		s.event(from, classExpired, "expired", ch.Key)
	}
}

// Lost must be called if the Backend may have missed changes of a key. A nil key means any key. Lost
// closes the connections that may have subscribed to the missed changes. reason is for the log.
func (s *Server) Lost(key []byte, reason string) {
	var lost []*conn // lists a connection once for each of its affected subscriptions
	s.mu.Lock()
	for name, subs := range s.rosters[ofChannels].subscribers.M {
		of, all, ok := cutChannel([]byte(name))
		if ok && (key == nil || all || bytes.Equal(of, key)) {
			lost = append(lost, subs...)
		}
	}
	for name, subs := range s.rosters[ofPatterns].subscribers.M {
		if mayNotify([]byte(name)) {
			lost = append(lost, subs...)
		}
	}
	for name, calls := range s.watching {
		calls.lost = calls.lost || key == nil || name == string(key)
	}
	s.mu.Unlock()
	if len(lost) > 0 {
		s.log.Warn("closing subscribers that may have missed changes", "subscriptions", len(lost), "key", string(key), "reason", reason)
	}
	for _, c := range lost {
		c.close()
	}
}
