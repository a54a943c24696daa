package broker

import (
	"cmp"
	"container/list"
)

// A session remains while its client is away, forever if it has no expiry. When there are too many
// sessions, a new session ends one whose client is away, which MQTT 5 allows (4.1). So nobody can lock
// others out by leaving sessions behind.

// leave adds a session whose client is now away.
func (b *Broker) leave(s *session) {
	q := b.away[s.user]
	if q == nil {
		q = list.New()
		b.away[s.user] = q
	}
	s.away = q.PushBack(s)
}

// comeBack reverses leave, if it was called.
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

// makeRoomFor makes room for another session of the given user. It ends a session whose client is away:
// a session of the user with the most sessions or, if all clients of that user are connected, a session
// of the given user. Of several such sessions it ends the one that was left first. It returns false if there
// is none.
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
