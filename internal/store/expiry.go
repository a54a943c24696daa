package store

import (
	"bytes"
	"time"

	"github.com/sscli/sscli/internal/observe"
)

// Expire reads the clock, removes the keys that have expired and queues notifications of their
// deletion (protocol.md 2.6, 2.7). Fenced keys expire too (protocol.md 4 row 17).
func (s *Store) Expire() {
	for s.ExpireSome() {
	}
}

// maxExpired is the maximum number of keys that one call to ExpireSome removes, which takes some 50 µs.
const maxExpired = 32

// Tidy removes a few expired keys, and gives back a part of the memory that the store no longer needs. No
// slice or Entry that the store has returned is valid afterwards.
func (s *Store) Tidy() {
	s.index.compact()
	s.ExpireSome()
}

// ExpireSome is like Expire, but removes only a few keys. It reports whether more keys may have expired.
// The other methods treat those as missing.
func (s *Store) ExpireSome() (more bool) {
	s.readClock()
	for range maxExpired {
		r := s.index.next()
		if r == 0 || !s.index.entry(r).due(s.micros) {
			return false
		}
		s.expire(r)
	}
	return true
}

// Hasten lets keys expire earlier by d, if match returns true for them and the time that they have left; nil = all.
// [Store.Expire] then removes the due ones, whose number Hasten returns. It calls kept for each key that the caller
// keeps, see Options.Keep, with its new state.
func (s *Store) Hasten(d time.Duration, match func(key string, left time.Duration) bool, kept func(*Change)) (due int) {
	s.readClock()
	for _, at := range s.index.expiries.Items() {
		e := s.index.entry(at.ref)
		if e.due(s.micros) || match != nil && !match(string(e.Key()), e.Expires().Sub(s.now)) {
			continue
		}
		s.index.hasten(at.ref, max(1, at.at-d.Microseconds()))
		if e.due(s.micros) {
			due++
		}
		if e.kept() {
			kept(&Change{Entry: e, Kept: true})
		}
	}
	return due
}

func (s *Store) readClock() {
	if now := s.opts.Now(); now != s.now { // requests that arrived together have the same time
		s.now, s.millis, s.micros = now, now.UnixMilli(), now.UnixMicro()
	}
}

// find returns the ref of a key's record, or 0. It removes the record if the key has expired.
func (s *Store) find(key []byte) ref {
	r := s.index.find(key)
	if r != 0 && s.index.entry(r).due(s.micros) {
		s.expire(r)
		return 0
	}
	return r
}

func (s *Store) expire(r ref) {
	if s.opts.Observe == nil {
		s.remove(r, CauseExpired, "", hlc{})
		return
	}
	key, n := bytes.Clone(s.index.entry(r).Key()), len(s.queued(0))
	version := s.remove(r, CauseExpired, "", hlc{})
	s.observeChange(observe.Expire, "", "", key, version, n)
}

// NextExpiry returns when the next key expires, on the store's clock, and whether any key has an expiry.
func (s *Store) NextExpiry() (time.Time, bool) {
	r := s.index.next()
	if r == 0 {
		return time.Time{}, false
	}
	return s.index.entry(r).Expires(), true
}
