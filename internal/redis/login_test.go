package redis

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// A piped is a client on a pipe, in a synctest bubble.
type piped struct {
	net.Conn
	t *testing.T
}

func pipeTo(t *testing.T, s *Server) piped {
	client, server := net.Pipe()
	s.connect(server)
	return piped{client, t}
}

// do sends a line and expects this reply.
func (c piped) do(line, reply string) {
	c.t.Helper()
	if _, err := c.Write([]byte(line + "\r\n")); err != nil {
		c.t.Fatal(err)
	}
	got := make([]byte, len(reply)+2)
	if _, err := io.ReadFull(c, got); err != nil || string(got) != reply+"\r\n" {
		c.t.Fatalf("%s: %q, %v, want %q", line, got, err, reply)
	}
}

func inBubble(t *testing.T, o Options, test func(t *testing.T, s *Server)) {
	synctest.Test(t, func(t *testing.T) {
		s, err := New(o)
		if err != nil {
			t.Fatal(err)
		}
		test(t, s)
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
}

func onlyAnn(user string, password []byte) (string, time.Time, bool) {
	return user, time.Time{}, user == "ann" && string(password) == "a"
}

// TestLoginTimeout: a connection without a login ends after 30 s, and one with a login stays.
func TestLoginTimeout(t *testing.T) {
	t.Parallel()
	inBubble(t, Options{Login: onlyAnn}, func(t *testing.T, s *Server) {
		in, out := pipeTo(t, s), pipeTo(t, s)
		in.do("AUTH ann a", "+OK")
		out.do("PING", "-NOAUTH Authentication required.")
		time.Sleep(loginTimeout - time.Second)
		out.do("PING", "-NOAUTH Authentication required.")
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if _, err := out.Read(make([]byte, 1)); err != io.EOF {
			t.Errorf("%v, want the end", err)
		}
		in.do("PING", "+PONG")
	})
}

// TestFailedLogins: guessing passwords takes longer with each failure, and does not delay a client that is
// logged in.
func TestFailedLogins(t *testing.T) {
	t.Parallel()
	inBubble(t, Options{Login: onlyAnn}, func(t *testing.T, s *Server) {
		in, out := pipeTo(t, s), pipeTo(t, s)
		in.do("AUTH ann a", "+OK")
		began := time.Now()
		for range 12 {
			out.do("AUTH ann b", "-WRONGPASS invalid username-password pair or user is disabled.")
		}
		if took := time.Since(began); took < 5*time.Second {
			t.Errorf("12 failed logins took %v", took)
		}
		if _, err := out.Write([]byte("AUTH ann b\r\n")); err != nil {
			t.Fatal(err)
		}
		began = time.Now()
		in.do("PING", "+PONG")
		if took := time.Since(began); took > 0 {
			t.Errorf("the PING of another client took %v", took)
		}
	})
}

// TestMaxClients: a connection beyond maxclients, or without memory for it, is refused. Connections without a
// login make room for each other.
func TestMaxClients(t *testing.T) {
	t.Parallel()
	inBubble(t, Options{}, func(t *testing.T, s *Server) {
		s.gate.MaxClients = 2
		first, second := pipeTo(t, s), pipeTo(t, s)
		first.do("PING", "+PONG")
		second.do("PING", "+PONG")
		const refused = "-ERR max number of clients reached\r\n"
		if got, err := io.ReadAll(pipeTo(t, s)); err != nil || string(got) != refused {
			t.Errorf("%q, %v, want %q", got, err, refused)
		}
		second.Close()
		synctest.Wait()
		pipeTo(t, s).do("PING", "+PONG")
		first.do("PING", "+PONG")
	})
	inBubble(t, Options{Reserve: func(n int) bool { return n <= 0 }}, func(t *testing.T, s *Server) {
		const refused = "-OOM the memory for clients is exhausted\r\n"
		if got, err := io.ReadAll(pipeTo(t, s)); err != nil || string(got) != refused {
			t.Errorf("without memory: %q, %v, want %q", got, err, refused)
		}
	})
	inBubble(t, Options{Login: onlyAnn}, func(t *testing.T, s *Server) {
		s.gate.MaxPending = 2
		in := pipeTo(t, s)
		in.do("AUTH ann a", "+OK")
		oldest := pipeTo(t, s)
		for range 2 {
			pipeTo(t, s)
		}
		synctest.Wait()
		if _, err := oldest.Read(make([]byte, 1)); err != io.EOF {
			t.Errorf("%v, want the end", err)
		}
		in.do("PING", "+PONG")
	})
}

// TestMemory: incomplete requests and subscriptions stay within the memory limit, and release their memory.
func TestMemory(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	kept, most, number := 0, 0, 0
	o := Options{Reserve: func(n int) bool {
		mu.Lock()
		defer mu.Unlock()
		if kept+n > 1<<20 && n > 0 {
			return false
		}
		kept += n
		most = max(most, kept)
		return true
	}}
	big := bytes.Repeat([]byte("a"), 64<<10)
	for name, attack := range map[string]func(c piped) (n int, err error){
		"half a request": func(c piped) (int, error) {
			if _, err := c.Write([]byte("*2\r\n$4\r\nECHO\r\n$536870912\r\n")); err != nil {
				return 0, err
			}
			return c.Write(big)
		},
		"subscriptions": func(c piped) (int, error) {
			number++
			return fmt.Fprintf(c, "PSUBSCRIBE %s%d\r\n", big[:1000], number)
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, o, func(t *testing.T, s *Server) {
				c := pipeTo(t, s)
				go func() { _, _ = io.Copy(io.Discard, c) }() // ends with the connection
				for i := 0; ; i++ {
					if i == 1000 {
						t.Error("the client was not refused")
						break
					}
					if _, err := attack(c); err != nil {
						break
					}
				}
				synctest.Wait()
				mu.Lock()
				defer mu.Unlock()
				if kept != 0 || most > 1<<20 {
					t.Errorf("%d bytes are charged after the end, %d at most", kept, most)
				}
			})
		})
	}
}

// TestContradictedCertificate: a client whose certificate names a user cannot log in as another user.
func TestContradictedCertificate(t *testing.T) {
	t.Parallel()
	const refused = "-WRONGPASS invalid username-password pair or user is disabled."
	bob := func(net.Conn) string { return "bob" }
	users := func(user string, password []byte) (string, time.Time, bool) {
		return user, time.Time{}, string(password) == "a"
	}
	for name, o := range map[string]Options{
		"with passwords":    {Login: users, Identify: bob},
		"without passwords": {Identify: bob},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, o, func(t *testing.T, s *Server) {
				c := pipeTo(t, s)
				c.do("AUTH ann a", refused)
				c.do("HELLO 2 AUTH ann a", refused)
				c.do("ACL WHOAMI", "$3\r\nbob")
				c.do("AUTH bob a", "+OK")
				c.do("ACL WHOAMI", "$3\r\nbob")
			})
		})
	}
}
