package redis

import (
	"bytes"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// pipe returns a connection to a new server.
func pipe(t *testing.T, o Options) net.Conn {
	t.Helper()
	s, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	client, server := net.Pipe()
	s.connect(server)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := client.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	return client
}

// turns are Turns in a line of a test.
type turns struct {
	line sync.Locker
	long bool
	hold time.Duration
}

func (t turns) Line() sync.Locker   { return t.line }
func (t turns) LineIsLong() bool    { return t.long }
func (t turns) Hold() time.Duration { return t.hold }
func (turns) Crowded() bool         { return false }

// TestReadOutOfLine: the parts of a large argument are read without standing in line, where each of them would wait
// for all the others.
func TestReadOutOfLine(t *testing.T) {
	t.Parallel()
	line := new(sync.Mutex)
	c := pipe(t, Options{Turns: turns{line, true, maxHold}})
	ping(t, c)
	line.Lock()
	defer line.Unlock()
	for _, part := range []string{"*2\r\n$4\r\nECHO\r\n$100000\r\n", string(make([]byte, 40_000)), string(make([]byte, 40_000))} {
		if _, err := io.WriteString(c, part); err != nil {
			t.Fatalf("%d bytes: %v", len(part), err)
		}
	}
}

// TestParseOutOfLine: much is parsed before it stands in a short line, and in a long line. What cannot be parsed shows it:
// the reply comes without a turn in the short one alone.
func TestParseOutOfLine(t *testing.T) {
	t.Parallel()
	for _, long := range []bool{false, true} {
		line := new(countedLine)
		c := pipe(t, Options{Turns: turns{line, long, maxHold}})
		ping(t, c)
		if _, err := io.WriteString(c, "*x\r\n"+strings.Repeat(" ", muchWork)); err != nil {
			t.Fatal(err)
		}
		reply, err := io.ReadAll(c)
		if turned := line.n.Load() > 0; err != nil || !bytes.HasPrefix(reply, []byte("-ERR Protocol error")) || turned != long {
			t.Errorf("long %v: in line %v, %q, %v", long, turned, reply, err)
		}
	}
}

// A countedLine is a Line that counts how often it was locked.
type countedLine struct {
	sync.Mutex
	n atomic.Int64
}

func (l *countedLine) Lock() {
	l.Mutex.Lock()
	l.n.Add(1)
}

// TestTurns: a pipeline of commands that do not use the store leaves the line after the time Hold.
func TestTurns(t *testing.T) {
	t.Parallel()
	const commands = 1000
	line := new(countedLine)
	c := pipe(t, Options{Turns: turns{line, true, -1}})
	go func() {
		for range commands / 250 {
			_, _ = c.Write(bytes.Repeat([]byte("PUBLISH a b\r\n"), 250)) // an error would show in the replies
		}
	}()
	if _, err := io.CopyN(io.Discard, c, int64(len(":0\r\n")*commands)); err != nil {
		t.Fatal(err)
	}
	if n := line.n.Load(); n < commands/4 {
		t.Errorf("%d commands took %d turns", commands, n)
	}
}

// ping waits until a connection is served. It may stand in line before.
func ping(t *testing.T, c net.Conn) {
	t.Helper()
	if _, err := io.WriteString(c, "PING\r\n"); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(c, make([]byte, len("+PONG\r\n"))); err != nil {
		t.Fatal(err)
	}
}

// A joinedLine is a Line that counts how many have tried to lock it since it was watched.
type joinedLine struct {
	sync.Mutex
	watched atomic.Bool
	joined  sync.WaitGroup
}

func (l *joinedLine) Lock() {
	if l.watched.Load() {
		l.joined.Done()
	}
	l.Mutex.Lock()
}

// TestCrowdInLine: clients whose commands need what others have locked wait in the line, not for the lock, where a change of
// a key would wait behind them.
func TestCrowdInLine(t *testing.T) {
	t.Parallel()
	commands := []string{"PUBLISH a b", "SPUBLISH a b", "CLIENT LIST", "CLIENT KILL ID 99", "RESET"}
	line := new(joinedLine)
	s, err := New(Options{Turns: turns{line, true, maxHold}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var clients []net.Conn
	for range commands {
		client, server := net.Pipe()
		s.connect(server)
		clients = append(clients, client)
		ping(t, client)
	}
	line.joined.Add(len(commands))
	line.watched.Store(true)
	s.mu.Lock()
	for i, command := range commands {
		go func() { _, _ = io.WriteString(clients[i], command+"\r\n") }()
	}
	line.joined.Wait()
	s.mu.Unlock()
	for i, client := range clients {
		if n, err := client.Read(make([]byte, 1)); n != 1 {
			t.Errorf("%s: %v", commands[i], err)
		}
	}
}

// A stuckConn is a connection whose Close blocks until release is closed, like Close of a TLS connection
// whose peer does not read.
type stuckConn struct {
	net.Conn
	closing chan struct{} // receives when Close has been called
	release chan struct{}
}

func (c *stuckConn) Close() error {
	c.closing <- struct{}{}
	<-c.release
	return c.Conn.Close()
}

// TestKillStuck: CLIENT KILL does not wait for the connections that it closes: it may have locked Line or, in a
// transaction, the store.
func TestKillStuck(t *testing.T) {
	t.Parallel()
	s, err := New(Options{})
	if err != nil {
		t.Fatal(err)
	}
	c, server := net.Pipe()
	s.connect(server)
	_, other := net.Pipe()
	stuck := &stuckConn{other, make(chan struct{}, 9), make(chan struct{})}
	s.connect(stuck)
	if err := c.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(c, "CLIENT KILL ID 2\r\n"); err != nil {
		t.Fatal(err)
	}
	reply := make([]byte, len(":1\r\n"))
	if _, err := io.ReadFull(c, reply); err != nil || string(reply) != ":1\r\n" {
		t.Errorf("%q, %v", reply, err)
	}
	<-stuck.closing
	close(stuck.release)
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}
