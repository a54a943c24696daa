package main

import (
	"bufio"
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
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/eclipse/paho.golang/packets"
	"golang.org/x/crypto/bcrypt"

	"github.com/sscli/sscli/scripts/bench/harness"
)

// A target is a server under attack.
type target struct {
	mqtt, redis string // host:port
	short       bool
	stored      atomic.Int64 // bytes of keys and values that the attacker stored

	cmd    *exec.Cmd
	mu     sync.Mutex
	opened []net.Conn
}

func startTarget(ctx context.Context, sscli, dir string, flags []string) (*target, error) {
	var ports [2]string
	for i := range ports {
		var err error
		if ports[i], err = harness.FreePort(); err != nil {
			return nil, err
		}
	}
	t := &target{mqtt: "127.0.0.1:" + ports[0], redis: "127.0.0.1:" + ports[1]}
	words := append([]string{"serve", "-o", "human", "--listen", t.mqtt, "--redis", t.redis, "--notify-keyspace-events", "KEA"}, flags...)
	t.cmd = exec.CommandContext(ctx, sscli, words...)
	t.cmd.Dir = dir
	t.cmd.Cancel = func() error { return t.cmd.Process.Signal(syscall.SIGTERM) }
	t.cmd.WaitDelay = 20 * time.Second
	t.cmd.Stderr = os.Stderr
	out, err := t.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := t.cmd.Start(); err != nil {
		return nil, err
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if strings.HasPrefix(lines.Text(), "ready") {
			go func() { _, _ = io.Copy(io.Discard, out) }() // ends with the server
			return t, nil
		}
	}
	return nil, errors.Join(errors.New("the server did not start"), t.cmd.Wait())
}

// scale returns n, or a tenth of n in a short run.
func (t *target) scale(n int) int {
	if t.short {
		return max(1, n/10)
	}
	return n
}

// peak returns the largest resident memory of the server so far, in bytes.
func (t *target) peak() (int64, error) {
	kB, err := harness.Memory(t.cmd.Process.Pid, "VmHWM")
	return int64(kB) * 1024, err
}

// dial connects to the server. hangUp closes the connection if the attack has not closed it.
func (t *target) dial(address string) (net.Conn, error) {
	c, err := net.DialTimeout("tcp", address, 20*time.Second)
	if err != nil {
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.opened = append(t.opened, c)
	return c, nil
}

// hangUp closes all connections of the attacker.
func (t *target) hangUp() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, c := range t.opened {
		c.Close()
	}
	t.opened = nil
}

func (t *target) stop() {
	t.hangUp()
	_ = t.cmd.Process.Signal(syscall.SIGTERM)
	_ = t.cmd.Wait() // an error is expected after the signal
}

// password is the password of the only user of a server with users. Servers without users ignore
// it.
const password = "secret"

// writeUsers writes the file "users" for serve, with a bcrypt hash of the default cost.
func writeUsers(dir string) error {
	hash, err := bcrypt.GenerateFromPassword([]byte(password), bcrypt.DefaultCost)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "users"), append([]byte("user:"), hash...), 0o600)
}

// bystanderWord is the argument that makes this program the bystander: a client that takes no part
// in the attack. The bystander is a separate process, so that the attacker does not delay it.
const bystanderWord = "bystander"

// A watcher is a running bystander.
type watcher struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Scanner
}

func startBystander(ctx context.Context, t *target) (*watcher, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	w := &watcher{cmd: exec.CommandContext(ctx, self, bystanderWord, t.mqtt)}
	w.cmd.Stderr = os.Stderr
	if w.in, err = w.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := w.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := w.cmd.Start(); err != nil {
		return nil, err
	}
	w.out = bufio.NewScanner(out)
	if !w.out.Scan() {
		return nil, errors.Join(errors.New("the bystander did not start"), w.cmd.Wait())
	}
	return w, nil
}

// end stops the bystander. It returns the slowest PING in milliseconds, and an error if the
// bystander lost its connection.
func (w *watcher) end() (slowest float64, err error) {
	w.in.Close()
	for w.out.Scan() {
		word, rest, _ := strings.Cut(w.out.Text(), " ")
		if word == "gone" {
			err = errors.New(rest)
			continue
		}
		slowest, _ = strconv.ParseFloat(rest, 64)
	}
	return slowest, errors.Join(err, w.cmd.Wait())
}

// bystander sends a PING 5 ms after each reply until standard input ends, and prints the time of
// the slowest.
func bystander(address string) {
	ended := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		close(ended)
	}()
	slowest := time.Duration(0)
	conn, err := net.Dial("tcp", address)
	c := &client{Conn: conn, in: bufio.NewReader(conn)}
	if err == nil {
		err = c.connect(connectOptions{id: "bystander", password: password})
	}
	fmt.Println("ready")
	for err == nil {
		select {
		case <-ended:
			fmt.Println("slowest", float64(slowest.Microseconds())/1000)
			return
		case <-time.After(5 * time.Millisecond):
		}
		begin := time.Now()
		_ = conn.SetDeadline(begin.Add(time.Minute))
		if _, err = conn.Write([]byte{0xc0, 0}); err == nil {
			_, err = packets.ReadPacket(c.in)
		}
		slowest = max(slowest, time.Since(begin))
	}
	fmt.Println("gone", err)
	fmt.Println("slowest", float64(slowest.Microseconds())/1000)
}
