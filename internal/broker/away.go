package broker

import (
	"cmp"
	"container/list"
)

// A session whose client is away remains until it expires, which may be never. When there are
// MaxSessions sessions, a new session replaces one whose client is away, which MQTT 5 allows (4.1).
// So clients cannot lock others out by abandoning sessions.

// leave records that the session's client is now away.
func (b *Broker) leave(s *session) {
	q := b.away[s.user]
	if q == nil {
		q = list.New()
		b.away[s.user] = q
	}
	s.away = q.PushBack(s)
}

// comeBack undoes leave. It does nothing if leave was not called.
func (b *Broker) comeBack(s *session) {
	if s.away == nil {
		return
	}
	q := b.away[s.user]
	q.Remove(s.away)
	s.away = nil
	if q.Len() == 0 {
		delete(b.away, s.user)
	}
}

// makeRoomFor makes room for another session of the given user. It ends a session whose client is
// away: one of the user with the most sessions or, if all clients of that user are connected, one
// of the given user. It chooses the session whose client has been away the longest. It returns
// false if there is no such session.
func (b *Broker) makeRoomFor(user string) bool {
	most := user
	for other, n := range b.owned {
		if n > b.owned[most] {
			most = other
		}
	}
	q := cmp.Or(b.away[most], b.away[user])
	if q == nil {
		return false
	}
	s := q.Front().Value.(*session)
	b.log.Warn("a session ended to make room for another client", "client", s.id, "user", s.user)
	b.removeSession(s)
	return true
}
