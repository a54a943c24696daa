package emulator_test

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
)

// redisPatience is how long a peer on this machine may take for anything.
const redisPatience = 30 * time.Second

// startRedis starts a redis-server with one database, and returns the path of its socket.
func startRedis(t testing.TB) (socket string) {
	t.Helper()
	program(t, "redis-server")
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
		_ = cmd.Wait() // killed
	})
	for deadline := time.Now().Add(redisPatience); ; {
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

// A redisClient speaks RESP and keeps every byte that comes.
type redisClient struct {
	nc net.Conn
	r  *bufio.Reader
}

func dialRedis(t testing.TB, network, address string) *redisClient {
	t.Helper()
	nc, err := net.Dial(network, address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { nc.Close() })
	return &redisClient{nc: nc, r: bufio.NewReader(nc)}
}

// redisAddress is the address in a URL such as redis://127.0.0.1:6379.
func redisAddress(url string) string { return strings.SplitAfter(url, "://")[1] }

func redisRequest(args ...string) []byte {
	b := fmt.Appendf(nil, "*%d\r\n", len(args))
	for _, a := range args {
		b = fmt.Appendf(b, "$%d\r\n%s\r\n", len(a), a)
	}
	return b
}

func (c *redisClient) send(args ...string) error {
	_, err := c.nc.Write(redisRequest(args...))
	return err
}

// frame reads one value of RESP and returns its bytes.
func (c *redisClient) frame() ([]byte, error) {
	if err := c.nc.SetReadDeadline(time.Now().Add(redisPatience)); err != nil {
		return nil, err
	}
	return c.value(nil)
}

func (c *redisClient) value(b []byte) ([]byte, error) {
	line, err := c.r.ReadSlice('\n')
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
		_, err := io.ReadFull(c.r, b[begin:])
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

// until reads frames up to the answer to a PING with that text.
func (c *redisClient) until(text string) (frames [][]byte, err error) {
	bulk := fmt.Appendf(nil, "$%d\r\n%s\r\n", len(text), text)
	for {
		f, err := c.frame()
		if err != nil {
			return frames, err
		}
		if bytes.HasSuffix(f, bulk) && (f[0] == '$' || bytes.HasPrefix(f, []byte("*2\r\n$4\r\npong\r\n"))) {
			return frames, nil
		}
		frames = append(frames, f)
	}
}

// do sends a command and returns the reply.
func (c *redisClient) do(t testing.TB, args ...string) string {
	t.Helper()
	if err := c.send(args...); err != nil {
		t.Fatalf("%q: %v", args, err)
	}
	f, err := c.frame()
	if err != nil {
		t.Fatalf("%q: %v", args, err)
	}
	return string(f)
}

// expect sends a command and compares the reply.
func (c *redisClient) expect(t testing.TB, want string, args ...string) {
	t.Helper()
	if got := c.do(t, args...); got != want {
		t.Errorf("%q: %q, want %q", args, got, want)
	}
}

// closed waits until the server has closed the connection, and returns what came before.
func (c *redisClient) closed(t testing.TB) []byte {
	t.Helper()
	if err := c.nc.SetReadDeadline(time.Now().Add(redisPatience)); err != nil {
		t.Fatal(err)
	}
	rest, err := io.ReadAll(c.r)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("the connection is still open after %q", rest)
	}
	return rest
}
