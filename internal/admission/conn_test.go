package admission_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"runtime"
	"sync"
	"testing"

	"github.com/sscli/sscli/internal/admission"
	"github.com/sscli/sscli/internal/socket"
)

// secured returns both ends of a TLS connection, and the line of the server's end.
func secured(t *testing.T) (client *tls.Conn, server net.Conn, line *admission.Line) {
	t.Helper()
	key := newKey(t)
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	line = new(admission.Line)
	ln := admission.ListenTLS(inner, &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{certificate(t, key, nil)}, PrivateKey: key}}}, line)
	defer ln.Close()
	nc, err := net.Dial("tcp", inner.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	client = tls.Client(&collecting{Conn: nc}, &tls.Config{InsecureSkipVerify: true})
	var all sync.WaitGroup
	all.Go(func() {
		if err := client.Handshake(); err != nil {
			t.Error(err)
		}
	})
	if server, err = ln.Accept(); err == nil {
		err = admission.Handshake(context.Background(), server)
	}
	all.Wait()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { nc.Close(); server.Close() })
	return client, server, line
}

// A collecting sends what is written in one piece, when send is called.
type collecting struct {
	net.Conn
	collect bool
	all     []byte
}

func (c *collecting) Write(p []byte) (int, error) {
	if !c.collect {
		return c.Conn.Write(p)
	}
	c.all = append(c.all, p...)
	return len(p), nil
}

func (c *collecting) send(t *testing.T) {
	t.Helper()
	if _, err := c.Conn.Write(c.all); err != nil {
		t.Fatal(err)
	}
}

// TestReadsRecords: a server's Read returns all records that have arrived, and the bytes are those that were sent,
// however few of them each Read has room for.
func TestReadsRecords(t *testing.T) {
	for _, room := range []int{1, 7, 100, 1 << 20} {
		client, server, _ := secured(t)
		c := client.NetConn().(*collecting)
		c.collect = true
		var want []byte
		for i := range 400 {
			record := bytes.Repeat([]byte{byte(i)}, 1+i%3)
			want = append(want, record...)
			if _, err := client.Write(record); err != nil {
				t.Fatal(err)
			}
		}
		c.send(t)
		reads := 0
		var got []byte
		for buf := make([]byte, room); len(got) < len(want); reads++ {
			n, err := server.Read(buf)
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, buf[:n]...)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("room for %d: the bytes differ", room)
		}
		if room > len(want) && reads > 100 {
			t.Errorf("%d reads for 400 records that came at once", reads)
		}
	}
}

// standsInLine calls f while the line is locked. It returns when f has returned, for which f must wait for the line if
// want is true, and must not otherwise.
func standsInLine(t *testing.T, what string, line *admission.Line, want bool, f func()) {
	t.Helper()
	done := make(chan struct{})
	line.Lock()
	go func() {
		f()
		close(done)
	}()
	if want {
		for range 1000 {
			runtime.Gosched()
		}
		select {
		case <-done:
			t.Errorf("%s did not stand in line", what)
		default:
		}
		line.Unlock()
		<-done
		return
	}
	<-done
	line.Unlock()
}

// TestTransportsInLine: what is much stands in line with TLS and without, and what is little does not. A system without
// direct writes cannot write in line, because such a write could wait for the client.
func TestTransportsInLine(t *testing.T) {
	client, server, line := secured(t)
	peer, plain := pair(t)
	for _, size := range []int{100, 60_000} { // a little that follows much stands in line too
		text, much := make([]byte, size), size > 1024
		direct := socket.New(plain) != nil
		for what, f := range map[string]func(){
			"a write": func() {
				wrote(t, server, text)
				received(t, client, size)
			},
			"a read": func() {
				wrote(t, client, text)
				received(t, server, size)
			},
			"a write without TLS": func() {
				wrote(t, admission.InLine(plain, socket.New(plain), line), text)
				received(t, peer, size)
			},
		} {
			standsInLine(t, fmt.Sprintf("%s of %d bytes", what, size), line, much && (direct || what == "a read"), f)
		}
	}
}

func wrote(t *testing.T, nc net.Conn, p []byte) {
	t.Helper()
	if n, err := nc.Write(p); n != len(p) || err != nil {
		t.Errorf("wrote %d of %d bytes: %v", n, len(p), err)
	}
}

func received(t *testing.T, nc net.Conn, size int) {
	t.Helper()
	if _, err := io.ReadFull(nc, make([]byte, size)); err != nil {
		t.Error(err)
	}
}

// pair returns both ends of a TCP connection.
func pair(t *testing.T) (peer, nc net.Conn) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	if peer, err = net.Dial("tcp", ln.Addr().String()); err == nil {
		nc, err = ln.Accept()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { peer.Close(); nc.Close() })
	return peer, nc
}

// TestDeafHasNoTurn: a client that takes nothing does not keep the line, and what it is sent later is complete. The
// server goes on to read meanwhile.
func TestDeafHasNoTurn(t *testing.T) {
	client, server, line := secured(t)
	peer, plain := pair(t)
	for what, end := range map[string]struct{ server, client net.Conn }{
		"TLS":   {server, client},
		"plain": {admission.InLine(plain, socket.New(plain), line), peer},
	} {
		text := make([]byte, 32<<20) // more than the sockets hold
		for i := range text {
			text[i] = byte(i * 7 >> 8)
		}
		var all sync.WaitGroup
		all.Go(func() { wrote(t, end.server, text) })
		for range 1000 {
			line.Lock()
			runtime.Gosched()
			line.Unlock()
		}
		all.Go(func() { wrote(t, end.client, text[:100_000]) })
		received(t, end.server, 100_000)
		got := make([]byte, len(text))
		if _, err := io.ReadFull(end.client, got); err != nil || !bytes.Equal(got, text) {
			t.Errorf("%s: the bytes differ: %v", what, err)
		}
		all.Wait()
	}
}
