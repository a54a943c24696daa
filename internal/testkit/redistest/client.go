// Package redistest helps to test the Redis port. It has a client that returns the exact bytes of replies,
// and starts a redis-server for comparisons. If redis-server is not installed, tests that need it are
// skipped, see package full.
//
//	c := redistest.Dial(t, "tcp", redistest.Address(server.RedisURL()))
//	c.Expect(t, "+OK\r\n", "SET", "k", "v")
package redistest

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sscli/sscli/internal/testkit/full"
)

// Patience is the timeout of each wait in a test: for one value, not for an array of many.
const Patience = time.Minute

// StartServer starts a redis-server with one database, and returns the path of its Unix socket. The server
// is killed when the test ends.
func StartServer(t testing.TB) (socket string) {
	t.Helper()
	full.Program(t, "redis-server")
	dir, err := os.MkdirTemp("", "redis") // a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	socket = filepath.Join(dir, "s")
	ctx, cancel := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, "redis-server", "--port", "0", "--unixsocket", socket, "--databases", "1", "--save", "", "--dir", dir)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		_ = cmd.Wait() // the error means that the server was killed
	})
	for deadline := time.Now().Add(Patience); ; {
		nc, err := net.Dial("unix", socket)
		if err == nil {
			nc.Close()
			return socket
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
		time.Sleep(time.Millisecond)
	}
}

// A Client speaks RESP and returns the exact bytes of replies.
type Client struct {
	Conn   net.Conn
	Reader *bufio.Reader
}

// Dial connects to a server, and closes the connection when the test ends.
func Dial(t testing.TB, network, address string) *Client {
	t.Helper()
	nc, err := net.Dial(network, address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { nc.Close() })
	return &Client{Conn: nc, Reader: bufio.NewReader(nc)}
}

// Address returns the address in a URL such as redis://127.0.0.1:6379.
func Address(url string) string { return strings.SplitAfter(url, "://")[1] }

// Request returns the bytes of a request.
func Request(args ...string) []byte {
	b := fmt.Appendf(nil, "*%d\r\n", len(args))
	for _, a := range args {
		b = fmt.Appendf(b, "$%d\r\n%s\r\n", len(a), a)
	}
	return b
}

// Send sends a request.
func (c *Client) Send(args ...string) error {
	_, err := c.Conn.Write(Request(args...))
	return err
}

// Frame returns the bytes of the next RESP value.
func (c *Client) Frame() ([]byte, error) { return c.value(nil) }

func (c *Client) value(b []byte) ([]byte, error) {
	if err := c.Conn.SetReadDeadline(time.Now().Add(Patience)); err != nil {
		return b, err
	}
	line, err := c.Reader.ReadSlice('\n')
	b = append(b, line...)
	if err != nil {
		return b, err
	}
	n, _ := strconv.Atoi(strings.TrimSpace(string(line[1:])))
	switch line[0] {
	case '$', '=', '!':
		if n < 0 {
			return b, nil
		}
		begin := len(b)
		b = append(b, make([]byte, n+2)...)
		_, err := io.ReadFull(c.Reader, b[begin:])
		return b, err
	case '%':
		n *= 2
	case '*', '~', '>':
	default:
		return b, nil
	}
	for range n {
		if b, err = c.value(b); err != nil {
			return b, err
		}
	}
	return b, nil
}

// Text returns a RESP2 frame in a form for comparisons: a bulk string as its bytes, null as "nil", an array
// in brackets, and any other value as its line.
func Text(frame []byte) string {
	text, _ := cutText(frame)
	return text
}

// cutText returns the text of the first value in b, and the bytes after it.
func cutText(b []byte) (text string, rest []byte) {
	line, rest, _ := bytes.Cut(b, []byte("\r\n"))
	n, _ := strconv.Atoi(string(line[1:]))
	switch kind := line[0]; {
	case kind != '$' && kind != '*':
		return string(line), rest
	case n < 0:
		return "nil", rest
	case kind == '$':
		return string(rest[:n]), rest[n+2:]
	}
	items := make([]string, n)
	for i := range items {
		items[i], rest = cutText(rest)
	}
	return "[" + strings.Join(items, " ") + "]", rest
}

// Until reads up to the reply to a PING with the given text, and returns the frames before that reply.
func (c *Client) Until(text string) (frames [][]byte, err error) {
	bulk := fmt.Appendf(nil, "$%d\r\n%s\r\n", len(text), text)
	for {
		f, err := c.Frame()
		if err != nil {
			return frames, err
		}
		if bytes.HasSuffix(f, bulk) && (f[0] == '$' || bytes.HasPrefix(f, []byte("*2\r\n$4\r\npong\r\n"))) {
			return frames, nil
		}
		frames = append(frames, f)
	}
}

// Do sends a request and returns the reply.
func (c *Client) Do(t testing.TB, args ...string) string {
	t.Helper()
	if err := c.Send(args...); err != nil {
		t.Fatalf("%q: %v", args, err)
	}
	f, err := c.Frame()
	if err != nil {
		t.Fatalf("%q: %v", args, err)
	}
	return string(f)
}

// Expect sends a request and compares the reply.
func (c *Client) Expect(t testing.TB, want string, args ...string) {
	t.Helper()
	if got := c.Do(t, args...); got != want {
		t.Errorf("%q: %q, want %q", args, got, want)
	}
}

// Closed waits until the server has closed the connection, and returns the bytes received until then.
func (c *Client) Closed(t testing.TB) []byte {
	t.Helper()
	if err := c.Conn.SetReadDeadline(time.Now().Add(Patience)); err != nil {
		t.Fatal(err)
	}
	rest, err := io.ReadAll(c.Reader)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("the connection is still open after %q", rest)
	}
	return rest
}

// Heard sends a PING and returns the messages that came before the reply, each as its channel, a
// space and its text.
func (c *Client) Heard(t testing.TB) []string {
	t.Helper()
	if err := c.Send("PING", "heard so far"); err != nil {
		t.Fatal(err)
	}
	frames, err := c.Until("heard so far")
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, f := range frames {
		words := strings.Split(strings.TrimSuffix(string(f), "\r\n"), "\r\n")
		all = append(all, words[len(words)-3]+" "+words[len(words)-1])
	}
	return all
}

// Silent reports whether the server sends nothing for 50 ms.
func (c *Client) Silent(t testing.TB) bool {
	t.Helper()
	if err := c.Conn.SetReadDeadline(time.Now().Add(50 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	_, err := c.Reader.Peek(1)
	return errors.Is(err, os.ErrDeadlineExceeded)
}
