package main

import (
	"bufio"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/crypto/bcrypt"

	"github.com/sscli/sscli/emulator"
	"github.com/sscli/sscli/scripts/harness"
)

// A target is a server under attack.
type target struct {
	mqtt, redis, web string // host:port, after tlsPrefix if the port speaks TLS; web is for WebSocket
	control          string // host:port
	dir, sscli       string // the directory in which the server runs, and the program
	issuer           *emulator.Issuer
	short            bool
	stored           atomic.Int64 // bytes of keys and values that the attacker stored

	cmd    *exec.Cmd
	mu     sync.Mutex
	opened []net.Conn
}

// startTarget starts a server with flags in addition to those of every target. It runs in b.Dir.
func startTarget(ctx context.Context, b *harness.Bench, flags []string) (*target, error) {
	t := &target{dir: b.Dir, sscli: b.SSCLI}
	for _, address := range []*string{&t.mqtt, &t.redis, &t.web, &t.control} {
		port, err := harness.FreePort()
		if err != nil {
			return nil, err
		}
		*address = "127.0.0.1:" + port
	}
	words := append([]string{"serve", "-o", "human", "--listen", t.mqtt, "--ws", t.web, "--redis", t.redis, "--control", t.control, "--notify-keyspace-events", "KEA"}, flags...)
	if slices.Contains(flags, tlsFlags[0]) {
		t.mqtt, t.redis, t.web = tlsPrefix+t.mqtt, tlsPrefix+t.redis, tlsPrefix+t.web
	}
	t.cmd = exec.CommandContext(ctx, b.SSCLI, words...)
	t.cmd.Dir = b.Dir
	if !slices.Contains(flags, "--policy") { // it has findings about the policy, and refusals
		t.cmd.Stderr = os.Stderr
	}
	return t, b.Start(t.cmd, "ready")
}

// afterwards returns for how long the uninvolved client measures after a crowd has sent all.
func (t *target) afterwards() time.Duration {
	if t.short {
		return 1500 * time.Millisecond
	}
	return 6 * time.Second
}

// within returns d, the longest time that something may take. A short run may share the machine with other programs, and
// allows more.
func (t *target) within(d time.Duration) time.Duration {
	if t.short {
		return d + patience
	}
	return d
}

// scale returns n, or a tenth of n in a short run.
func (t *target) scale(n int) int {
	if t.short {
		return max(1, n/10)
	}
	return n
}

func (t *target) pid() string { return strconv.Itoa(t.cmd.Process.Pid) }

// peak returns the largest resident memory of the server so far, in bytes.
func (t *target) peak() (int64, error) {
	n, err := harness.Memory(t.cmd.Process.Pid, "VmHWM")
	return int64(n * mib), err
}

// tlsPrefix precedes an address that speaks TLS.
const tlsPrefix = "tls:"

// dial connects to the server. hangUp closes the connection if the attack has not closed it.
func (t *target) dial(address string) (net.Conn, error) {
	address, secure := strings.CutPrefix(address, tlsPrefix)
	c, err := net.DialTimeout("tcp", address, 20*time.Second)
	if err != nil {
		return nil, err
	}
	if secure {
		c = tls.Client(c, &tls.Config{InsecureSkipVerify: true})
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
	harness.Stop(t.cmd)
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

// A child is this program, started again as a separate process in another role.
type child struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Scanner
}

// startChild starts a child and waits for its first line. args are its role and operands.
func startChild(ctx context.Context, args ...string) (c *child, line string, err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, "", err
	}
	c = &child{cmd: exec.CommandContext(ctx, self, args...)}
	c.cmd.Stderr = os.Stderr
	if c.in, err = c.cmd.StdinPipe(); err != nil {
		return nil, "", err
	}
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, "", err
	}
	if err := c.cmd.Start(); err != nil {
		return nil, "", err
	}
	c.out = bufio.NewScanner(out)
	line, err = c.next()
	return c, line, err
}

// next returns the next line that the child prints.
func (c *child) next() (string, error) {
	if c.out.Scan() {
		return c.out.Text(), nil
	}
	return "", fmt.Errorf("%q ended: %w", c.cmd.Args[1], cmp.Or(c.end(), io.EOF))
}

// end closes the child's standard input, which makes it exit, and waits for it.
func (c *child) end() error {
	c.in.Close()
	return c.cmd.Wait()
}

// bystanderRole runs a client that takes no part in the attack, in a separate process so that the attacker
// does not delay it. Its operands are the addresses of the server for MQTT and Redis, the process ID of the server, and
// its token, if the server wants one.
const bystanderRole = "bystander"

// A wait is the time that a bystander waited for a reply.
type wait struct {
	slowest time.Duration
	worked  time.Duration // like slowest, but of each wait only as much as the CPU time that the server used meanwhile
}

// slowest ends a bystander and returns its slowest replies. The error is the reason why the bystander lost its
// connection.
func slowest(c *child) (w wait, err error) {
	c.in.Close()
	line, err := c.next()
	if err != nil {
		return w, err
	}
	var gone string
	if _, err := fmt.Sscanf(line, "%d %d %q", &w.slowest, &w.worked, &gone); err != nil {
		return w, err
	}
	if gone != "" {
		err = errors.New(gone)
	}
	return w, errors.Join(err, c.end())
}

// bystander sends PING and GET by MQTT and Redis, each 5 ms after the replies to the ones before, until standard
// input ends. It prints the slowest waits in nanoseconds, and the error that ended a connection, in quotes.
func bystander(address, redisAddress, pid, token string) {
	w, err := bystand(address, redisAddress, pid, token)
	gone := ""
	if err != nil {
		gone = err.Error()
	}
	fmt.Printf("%d %d %q\n", w.slowest, w.worked, gone)
}

func bystand(address, redisAddress, pid, token string) (w wait, err error) {
	server, err := strconv.Atoi(pid)
	if err != nil {
		return w, err
	}
	ended := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		close(ended)
	}()
	t := &target{mqtt: address, redis: redisAddress}
	o := connectOptions{id: "bystander", token: token}
	if token == "" {
		o.password = password
	}
	c, err := connectToStore(t, o)
	if err == nil {
		err = c.request([]byte("SET"), []byte("bystander"), []byte("value"))
	}
	if err == nil {
		_, err = c.reply(patience)
	}
	var r *redisClient
	if err == nil {
		r, err = connectToRedis(t)
	}
	if err == nil {
		words := [][]byte{[]byte("AUTH"), []byte("user"), []byte(password)}
		if token != "" {
			words = [][]byte{[]byte("AUTH"), []byte(token)}
		}
		_, err = r.do(patience, words...) // an error reply if the server requires no login
	}
	fmt.Println("ready")
	get := func() error {
		if err := c.request([]byte("GET"), []byte("bystander")); err != nil {
			return err
		}
		_, err := c.reply(time.Minute)
		return err
	}
	redisPing := func() error { return r.expect("+PONG", "PING") }
	redisGet := func() error {
		if err := r.expect("$5", "GET", "bystander"); err != nil {
			return err
		}
		_, err := r.in.Discard(len("value\r\n"))
		return err
	}
	for err == nil {
		select {
		case <-ended:
			return w, nil
		case <-time.After(5 * time.Millisecond):
		}
		for _, ask := range []func() error{c.ping, get, redisPing, redisGet} {
			used, _ := harness.CPU(server) // it fails if the server has ended, which err then says too
			begin := time.Now()
			_ = c.SetDeadline(begin.Add(time.Minute))
			if err = ask(); err != nil {
				break
			}
			waited := time.Since(begin)
			now, _ := harness.CPU(server)
			w.slowest, w.worked = max(w.slowest, waited), max(w.worked, min(waited, now-used))
		}
	}
	return w, err
}
