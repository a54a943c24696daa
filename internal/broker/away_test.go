package broker_test

import (
	"testing"

	"github.com/eclipse/paho.golang/packets"

	"github.com/sscli/sscli/internal/broker"
)

// TestSessionsLeftBehind: a user who leaves many sessions behind cannot lock out others.
func TestSessionsLeftBehind(t *testing.T) {
	t.Parallel()
	s := start(t, broker.Options{Limits: broker.Limits{MaxSessions: 4}, Login: func(l *broker.Login) broker.Verdict {
		return broker.Verdict{Username: l.Username}
	}})
	as := func(user string) func(*packets.Connect) {
		return func(c *packets.Connect) { c.UsernameFlag, c.Username = true, user }
	}
	sessions := 0
	leave := func(id, user string) {
		t.Helper()
		connect(t, s, id, lasting, as(user)).Conn.Close()
		sessions++
		s.await(t, func(st broker.Stats) bool { return st.Clients == 0 && st.Sessions == min(sessions, 4) })
	}
	leave("owner", "ann")
	leave("1", "mallory")
	leave("2", "mallory")
	leave("3", "mallory")
	leave("4", "mallory") // ends session 1
	resume(t, s, "owner", lasting, as("ann"))
	resume(t, s, "2", lasting, as("mallory"))
	connect(t, s, "new", as("bob")) // ends session 3
	resume(t, s, "4", lasting, as("mallory"))
	d := dial(t, s, "late")
	d.Send(d.Connection(as("bob")))
	d.Ended("CONNACK 0x97")
}

// TestSessionsOfConnectedClients: a user with very many connected clients cannot end the sessions that other
// users left.
func TestSessionsOfConnectedClients(t *testing.T) {
	t.Parallel()
	s := start(t, broker.Options{Limits: broker.Limits{MaxSessions: 4}, Login: func(l *broker.Login) broker.Verdict {
		return broker.Verdict{Username: l.Username}
	}})
	as := func(user string) func(*packets.Connect) {
		return func(c *packets.Connect) { c.UsernameFlag, c.Username = true, user }
	}
	for _, id := range []string{"ann1", "ann2"} {
		connect(t, s, id, lasting, as("ann")).Conn.Close()
		s.await(t, func(st broker.Stats) bool { return st.Clients == 0 })
	}
	for _, id := range []string{"1", "2"} {
		connect(t, s, id, as("mallory"))
	}
	d := dial(t, s, "3")
	d.Send(d.Connection(as("mallory")))
	d.Ended("CONNACK 0x97")
	connect(t, s, "ann3", as("ann")) // ends ann1's session
	resume(t, s, "ann2", lasting, as("ann"))
}

// TestSessionsAfterReauthentication: after a re-authentication, a session counts for its new user and
// no longer for the old one.
func TestSessionsAfterReauthentication(t *testing.T) {
	t.Parallel()
	s := start(t, broker.Options{Limits: broker.Limits{MaxSessions: 4}, Login: func(l *broker.Login) broker.Verdict {
		return broker.Verdict{Username: string(l.Data)}
	}})
	as := func(user string) func(*packets.Connect) {
		return func(c *packets.Connect) { c.Properties.AuthMethod, c.Properties.AuthData = "NAME", []byte(user) }
	}
	gone := func(sessions int) {
		t.Helper()
		s.await(t, func(st broker.Stats) bool { return st.Clients == 0 && st.Sessions == sessions })
	}
	connect(t, s, "owner", lasting, as("ann")).Conn.Close()
	gone(1)
	for range 4 {
		c := connect(t, s, "changing", as("ann"))
		c.Send(&packets.Auth{ReasonCode: packets.AuthReauthenticate, Properties: &packets.Properties{AuthMethod: "NAME", AuthData: []byte("bob")}})
		c.Expect("AUTH 0x00 NAME ")
		c.Conn.Close()
		gone(1)
	}
	for i, id := range []string{"1", "2", "3"} {
		connect(t, s, id, lasting, as("mallory")).Conn.Close()
		gone(i + 2)
	}
	connect(t, s, "new", as("cid")) // ends session 1
	resume(t, s, "owner", lasting, as("ann"))
}
