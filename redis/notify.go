package redis

import (
	"bytes"
	"fmt"
)

// class is a sort of events, as a flag of notify-keyspace-events.
type class uint32

const (
	toKeyspace class = 1 << iota // K
	toKeyevent                   // E
	generic                      // g
	strings_                     // $
	lists                        // l
	sets                         // s
	hashes                       // h
	sortedSets                   // z
	expired                      // x
	evicted                      // e
	streams                      // t
	modules                      // d
	misses                       // m
	created                      // n

	all = generic | strings_ | lists | sets | hashes | sortedSets | expired | evicted | streams | modules // A
)

// classLetters are the letters in the order in which Redis gives them back.
const classLetters = "g$lshzxetdnKEm"

var letterClasses = [len(classLetters)]class{generic, strings_, lists, sets, hashes, sortedSets, expired, evicted, streams, modules, created, toKeyspace, toKeyevent, misses}

// CheckNotify says what is wrong with the flags of notify-keyspace-events.
func CheckNotify(flags string) error {
	if _, ok := parseClasses(flags); !ok {
		return fmt.Errorf("notification flags %.32q: want letters of Ag$lshzxeKEtdmn", flags)
	}
	return nil
}

// textFlags is how Redis refuses flags.
const textFlags = "Invalid event class character. Use 'Ag$lshzxeKEtmdn'."

// parseClasses reads the value of notify-keyspace-events.
func parseClasses(text string) (flags class, ok bool) {
letters:
	for i := range len(text) {
		if text[i] == 'A' {
			flags |= all
			continue
		}
		for j, f := range letterClasses {
			if classLetters[j] == text[i] {
				flags |= f
				continue letters
			}
		}
		return 0, false
	}
	return flags, true
}

// String is the value of notify-keyspace-events that Redis gives back.
func (f class) String() string {
	var text []byte
	rest := f
	if f&all == all {
		text, rest = append(text, 'A'), f&^(all|created)
	}
	for j, l := range letterClasses {
		if rest&l != 0 {
			text = append(text, classLetters[j])
		}
	}
	return string(text)
}

const (
	keyspacePrefix = "__keyspace@0__:"
	keyeventPrefix = "__keyevent@0__:"
)

// event publishes a change by a command of this connection, if somebody wants to know.
func (c *conn) event(kind class, name string, key []byte) { c.s.event(c, kind, name, key) }

// event publishes an event to the two channels. from is the connection whose command is
// running, or nil.
func (s *Server) event(from *conn, kind class, name string, key []byte) {
	flags := class(s.flags.Load())
	if flags&kind == 0 || flags&(toKeyspace|toKeyevent) == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.channels.subscribers) == 0 && len(s.patterns.subscribers) == 0 {
		return
	}
	if flags&toKeyspace != 0 {
		s.channel = append(append(s.channel[:0], keyspacePrefix...), key...)
		s.publish(from, s.channel, []byte(name))
	}
	if flags&toKeyevent != 0 {
		s.channel = append(append(s.channel[:0], keyeventPrefix...), name...)
		s.publish(from, s.channel, key)
	}
}

// Changed tells the clients of a change. Changes must be reported in the order in which
// they happened, and an [Engine]'s while it is locked.
func (s *Server) Changed(ch Change) {
	if s.engine != nil {
		s.touch(ch.Key)
	}
	switch ch.Kind {
	case Own:
		return
	case Expired:
		s.expired.Add(1)
	}
	from := s.active // nil unless there is an engine
	if ch.New {
		s.event(from, created, "new", ch.Key)
	}
	switch ch.Kind {
	case Stored, StoredTill:
		s.event(from, strings_, "set", ch.Key)
		if ch.Kind == StoredTill {
			s.event(from, generic, "expire", ch.Key)
		}
	case Deleted:
		s.event(from, generic, "del", ch.Key)
	case Expired:
		s.event(from, expired, "expired", ch.Key)
	}
}

// touch marks the transactions that watch a key. The engine is locked.
func (s *Server) touch(key []byte) {
	if len(s.watched) == 0 {
		return
	}
	for c := range s.watched[string(key)] {
		c.dirty.Store(true)
	}
}

// Lost says that changes of a key, of any key if it is nil, may have been missed. It closes
// the connections that are subscribed to them.
func (s *Server) Lost(key []byte, reason string) {
	s.mu.Lock()
	lost := make(map[*conn]struct{})
	for name, subs := range s.channels.subscribers {
		of, all, ok := cutChannel([]byte(name))
		if ok && (key == nil || all || bytes.Equal(of, key)) {
			for _, c := range subs {
				lost[c] = struct{}{}
			}
		}
	}
	for name, subs := range s.patterns.subscribers {
		if mayNotify([]byte(name)) {
			for _, c := range subs {
				lost[c] = struct{}{}
			}
		}
	}
	for name, calls := range s.watching {
		calls.lost = calls.lost || key == nil || name == string(key)
	}
	s.mu.Unlock()
	if len(lost) > 0 {
		s.log.Warn("closing subscribers that may have missed changes", "connections", len(lost), "key", string(key), "reason", reason)
	}
	for c := range lost {
		c.cut()
	}
}
