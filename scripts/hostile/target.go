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

// scale returns how many of n things an attack does: a tenth in a short run.
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

// dial connects to the server. The connection stays open until the attack is over.
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
	_ = t.cmd.Wait() // the signal ended it
}

// password is that of the only user, of attacks on a server with users. Servers without users do not
// look at it.
const password = "secret"

// writeUsers writes the file users, with a hash that takes as long to check as usual.
func writeUsers(dir string) error {
	hash, err := bcrypt.GenerateFromPassword([]byte(password), bcrypt.DefaultCost)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "users"), append([]byte("user:"), hash...), 0o600)
}

// bystanderWord makes this program the bystander: a client that has nothing to do with the
// attack. It is a separate process, so that the attacker's work does not delay it.
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

// end stops the bystander. It returns its slowest PING in milliseconds, and why it lost its
// connection, if it did.
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

// bystander sends a PING every 5 ms until standard input ends, and prints the slowest.
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
