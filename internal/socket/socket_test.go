package socket_test

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"github.com/sscli/sscli/internal/socket"
)

// pair returns both ends of a TCP connection, and a Conn for nc.
func pair(t testing.TB) (peer, nc *net.TCPConn, c *socket.Conn) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	dialed, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	accepted, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { dialed.Close(); accepted.Close() })
	if c = socket.New(accepted); c == nil {
		t.Skip("there is no Conn on this system")
	}
	return dialed.(*net.TCPConn), accepted.(*net.TCPConn), c
}

// TestRead: the peer's bytes arrive in order, whether or not the reader has to wait, followed by EOF.
func TestRead(t *testing.T) {
	peer, _, c := pair(t)
	var want, got bytes.Buffer
	buf := make([]byte, 100)
	read := func() error {
		n, err := c.Read(buf)
		got.Write(buf[:n])
		return err
	}
	for i := range 200 { // one byte at a time
		want.WriteByte(byte(i))
		if _, err := peer.Write([]byte{byte(i)}); err != nil {
			t.Fatal(err)
		}
		if err := read(); err != nil {
			t.Fatal(err)
		}
	}
	all := bytes.Repeat([]byte("0123456789"), 1000) // many at once
	want.Write(all)
	go func() {
		peer.Write(all)
		peer.CloseWrite()
	}()
	var err error
	for err == nil {
		err = read()
	}
	if err != io.EOF || !bytes.Equal(got.Bytes(), want.Bytes()) {
		t.Errorf("got %d bytes and %v, want %d bytes and EOF", got.Len(), err, want.Len())
	}
}

// TestReadEnds: a waiting read ends at its deadline, and with Close.
func TestReadEnds(t *testing.T) {
	_, nc, c := pair(t)
	if err := nc.SetReadDeadline(time.Now().Add(time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("after the deadline: %v", err)
	}
	if err := nc.SetReadDeadline(time.Time{}); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error)
	go func() {
		_, err := c.Read(make([]byte, 1))
		ended <- err
	}()
	nc.Close()
	if err := <-ended; !errors.Is(err, net.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
	if _, err := c.TryWrite([]byte("x")); !errors.Is(err, net.ErrClosed) {
		t.Errorf("a write after Close: %v", err)
	}
}

// TestTryWrite: a peer that does not read does not delay a write, and gets the bytes that were written.
func TestTryWrite(t *testing.T) {
	peer, nc, c := pair(t)
	block := bytes.Repeat([]byte("x"), 1<<16)
	total := 0
	for {
		n, err := c.TryWrite(block)
		if err != nil {
			t.Fatal(err)
		}
		if n == 0 {
			break
		}
		total += n
	}
	if total == 0 {
		t.Fatal("nothing was written")
	}
	if err := nc.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if n, err := io.Copy(io.Discard, peer); err != nil || n != int64(total) {
		t.Errorf("%d bytes arrived of %d: %v", n, total, err)
	}
}

// TestReset: after the peer has reset the connection, a read returns an error.
func TestReset(t *testing.T) {
	peer, _, c := pair(t)
	if err := peer.SetLinger(0); err != nil {
		t.Fatal(err)
	}
	peer.Close()
	if n, err := c.Read(make([]byte, 1)); err == nil || errors.Is(err, io.EOF) {
		t.Errorf("read %d, %v", n, err)
	}
}

func TestOnlyTCP(t *testing.T) {
	a, b := net.Pipe()
	defer a.Close()
	defer b.Close()
	if socket.New(a) != nil {
		t.Error("a pipe is a Conn")
	}
}

// BenchmarkEcho sends a byte and its echo. It allocates nothing.
func BenchmarkEcho(b *testing.B) {
	peer, _, c := pair(b)
	buf := make([]byte, 1)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := peer.Write(buf); err != nil {
			b.Fatal(err)
		}
		if _, err := c.Read(buf); err != nil {
			b.Fatal(err)
		}
		if _, err := c.TryWrite(buf); err != nil {
			b.Fatal(err)
		}
		if _, err := peer.Read(buf); err != nil {
			b.Fatal(err)
		}
	}
}
