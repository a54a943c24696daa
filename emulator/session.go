package emulator

import (
	"sync/atomic"
	"time"

	mqtt "github.com/mochi-mqtt/server/v2"
	"github.com/mochi-mqtt/server/v2/packets"
)

// attach gives a connection its session, taking it from an earlier one. mochi tells
// that one 0x8E. An earlier one that is already leaving is waited for: mochi deletes
// its session and subscriptions by client id, and would take the new ones for them.
func (s *Server) attach(l *link, cl *mqtt.Client) {
	var leaving *link
	s.update(func() {
		if old := s.links[cl.ID]; old != nil {
			s.forget(old)
		}
		if last := s.latest[cl.ID]; last != nil {
			if last.detached {
				leaving = last
			} else {
				last.next = l
			}
		}
		l.client, l.lasts = cl, sessionLasts(cl)
		s.links[cl.ID], s.latest[cl.ID] = l, l
	})
	if leaving != nil {
		<-leaving.gone
	}
}

// detach ends a connection's session. It returns the connection that took it over.
func (s *Server) detach(l *link) (next *link) {
	s.update(func() {
		s.forget(l)
		l.detached = true
		next = l.next
	})
	return next
}

// leave is the end of a connection, when mochi is done with it.
func (s *Server) leave(l *link) {
	s.update(func() {
		delete(s.conns, l)
		if l.client != nil && s.latest[l.client.ID] == l {
			delete(s.latest, l.client.ID)
		}
	})
	close(l.gone)
}

// forget drops a connection and the client's registrations, which a session does
// not keep (protocol.md 2.5). Replies that were not acknowledged are ordinary
// messages to a subscription: those a session keeps.
func (s *Server) forget(l *link) {
	if l.client == nil || s.links[l.client.ID] != l {
		return
	}
	delete(s.links, l.client.ID)
	s.engine.Disconnect(l.client.ID)
	if !l.lasts {
		return
	}
	select {
	case <-l.settled:
	default:
		return // mochi is still at work on the session
	}
	for _, pk := range l.leftovers() {
		s.keep(l.client, pk)
	}
}

func sessionLasts(cl *mqtt.Client) bool {
	if cl.Properties.ProtocolVersion < 5 {
		return !cl.Properties.Clean
	}
	return cl.Properties.Props.SessionExpiryInterval > 0
}

// keep leaves a message to mochi, which sends it when the session goes on.
func (s *Server) keep(cl *mqtt.Client, pk packets.Packet) {
	inflight := cl.State.Inflight
	if inflight.Len() >= int(s.broker.Options.Capabilities.MaximumInflight) {
		s.log.Warn("the session is full", "client", cl.ID)
		return
	}
	if _, taken := inflight.Get(pk.PacketID); taken || pk.PacketID == 0 {
		id, err := cl.NextPacketID()
		if err != nil {
			s.log.Warn("the session is full", "client", cl.ID, "error", err)
			return
		}
		pk.PacketID = uint16(id)
	}
	pk.FixedHeader.Type, pk.Created = packets.Publish, time.Now().Unix()
	if inflight.Set(pk) {
		atomic.AddInt64(&s.broker.Info.Inflight, 1)
	}
}

// mayUse tells whether a client may use a topic.
func (s *Server) mayUse(cl *mqtt.Client, topic string, write bool) bool {
	user := string(cl.Properties.Username)
	return rules(s.opts.Rules).allowTopic(cl.ID, user, topic, write) &&
		(s.opts.AuthorizeTopic == nil || s.opts.AuthorizeTopic(cl.ID, user, topic, write))
}

// refusal is the reason not to let a client in; below 0x80 there is none.
func (s *Server) refusal(cl *mqtt.Client) byte {
	s.mu.Lock()
	refuse := s.refuse
	s.mu.Unlock()
	if refuse == nil {
		return 0
	}
	return refuse(cl.ID, string(cl.Properties.Username))
}

// reauthRefusal is the reason not to authenticate a client again, 0x18 for not now;
// below that there is none.
func (s *Server) reauthRefusal(cl *mqtt.Client, token []byte) byte {
	s.mu.Lock()
	decide := s.reauth
	s.mu.Unlock()
	if decide == nil {
		return 0
	}
	return decide(cl.ID, token)
}

// verify judges a client's token and makes its holder the user of the client.
func (s *Server) verify(cl *mqtt.Client, token []byte) bool {
	login, err := s.opts.VerifyToken(token, s.Now())
	if err != nil {
		s.log.Info("token refused", "client", cl.ID, "error", err)
		return false
	}
	if login.User != "" {
		cl.Properties.Username = []byte(login.User)
	}
	l, ok := cl.Net.Conn.(*link)
	if !ok {
		return true
	}
	s.update(func() {
		l.expires = login.Expires
		s.watchLogins()
	})
	return true
}

// watchLogins sees to it that expireLogins runs when the first token ends.
func (s *Server) watchLogins() {
	var first time.Time
	for l := range s.conns {
		if !l.expires.IsZero() && (first.IsZero() || l.expires.Before(first)) {
			first = l.expires
		}
	}
	if first.IsZero() || !s.loginsDue.IsZero() && !first.Before(s.loginsDue) {
		return
	}
	s.loginsDue = first
	s.agenda.add(first, s.expireLogins)
}

// expireLogins cuts the connections whose token has ended, without a DISCONNECT
// (protocol.md 7.2).
func (s *Server) expireLogins() {
	now := s.now()
	for l := range s.conns {
		if l.expires.IsZero() || now.Before(l.expires) {
			continue
		}
		l.expires = time.Time{}
		s.forget(l)
		l.cut()
	}
	s.loginsDue = time.Time{}
	s.watchLogins()
}
