//go:build linux

package main

import (
	"bufio"
	"bytes"
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/sscli/sscli/cmd/sscli/internal/certs"
	"github.com/sscli/sscli/emulator"
	"github.com/sscli/sscli/internal/testkit/apiservertest"
	"github.com/sscli/sscli/internal/testkit/full"
)

// A viaCluster is an API server with a broker in its cluster, which uses TLS and tokens, and the environment in which
// sscli reaches the broker through the real kubectl.
type viaCluster struct {
	t      *testing.T
	api    *apiservertest.Server
	store  *emulator.Server
	sscli  string
	env    []string
	runs   int // number of sscli processes started
	tokens atomic.Pointer[viaTokens]
}

// viaTokens describes the tokens that the API server creates.
type viaTokens struct {
	age      time.Duration // time since they were issued
	life     time.Duration // time from issue to expiry
	audience string        // "" = apiservertest.Audience
}

// startVia starts a cluster for a test. sscli gets the variables.
func startVia(t *testing.T, variables ...string) *viaCluster {
	t.Helper()
	full.Slow(t)
	kubectl := apiservertest.Kubectl(t, os.Getenv(originalPath))
	t.Parallel()
	dir, bin := t.TempDir(), t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := &viaCluster{t: t, sscli: filepath.Join(bin, "sscli")}
	c.tokens.Store(&viaTokens{life: time.Hour})
	if err := errors.Join(os.Symlink(self, c.sscli), os.Symlink(kubectl, filepath.Join(bin, "kubectl"))); err != nil {
		t.Fatal(err)
	}
	cert, err := certs.SelfSigned{Dir: dir, Names: []string{apiservertest.Service}, Now: time.Now()}.Prepare(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ca, err := os.ReadFile(filepath.Join(dir, "ca.crt"))
	if err != nil {
		t.Fatal(err)
	}
	issuer, err := emulator.NewIssuer(apiservertest.Audience)
	if err != nil {
		t.Fatal(err)
	}
	c.store = emulator.Start(t, emulator.Options{TLS: &tls.Config{Certificates: []tls.Certificate{cert}}, CheckToken: issuer.Verify})
	c.api = apiservertest.Start(t, apiservertest.Options{Broker: c.store.Addr().String(), CA: string(ca), Token: func(account string) (string, error) {
		tokens := c.tokens.Load()
		signer := &emulator.Issuer{Key: issuer.Key, Audience: cmp.Or(tokens.audience, apiservertest.Audience)}
		return signer.Issue("system:serviceaccount:"+apiservertest.Namespace+":"+account, time.Now().Add(-tokens.age), tokens.life)
	}})
	c.env = append(os.Environ(), c.api.Env()...)
	c.env = append(c.env, "PATH="+bin+":"+os.Getenv(originalPath), "SSCLI_VIA=kubectl", "SSCLI_TIMEOUT=20s", "GORACE=atexit_sleep_ms=0")
	c.env = append(c.env, variables...)
	return c
}

// A viaRun is an sscli that runs in the environment of a viaCluster.
type viaRun struct {
	*viaCluster
	cmd    *exec.Cmd
	mark   string // variable that marks the processes that this sscli starts
	stdin  io.WriteCloser
	stdout *bufio.Reader
	stderr bytes.Buffer // complete once sscli has ended
}

func (c *viaCluster) start(args ...string) *viaRun {
	c.t.Helper()
	c.runs++
	r := &viaRun{viaCluster: c, cmd: exec.Command(c.sscli, args...), mark: fmt.Sprintf("SSCLI_TEST_RUN=%s-%d-%d", c.t.Name(), os.Getpid(), c.runs)}
	r.cmd.Env, r.cmd.Dir, r.cmd.Stderr = append(slices.Clone(c.env), r.mark), c.t.TempDir(), &r.stderr
	var stdout io.Reader
	var err, startErr error
	r.stdin, err = r.cmd.StdinPipe()
	if err == nil {
		stdout, err = r.cmd.StdoutPipe()
		startErr = r.cmd.Start()
	}
	if err := errors.Join(err, startErr); err != nil {
		c.t.Fatal(err)
	}
	r.stdout = bufio.NewReader(stdout)
	c.t.Cleanup(func() {
		if r.cmd.ProcessState == nil {
			_ = r.cmd.Process.Kill()
			_ = r.cmd.Wait()
			c.t.Logf("%v was killed\n%s", args, r.stderr.String())
		}
	})
	return r
}

// send writes a line to sscli's standard input.
func (r *viaRun) send(line string) {
	r.t.Helper()
	if _, err := io.WriteString(r.stdin, line+"\n"); err != nil {
		r.t.Fatal(err)
	}
}

// expect reads lines of standard output until one contains text, and returns these lines.
func (r *viaRun) expect(text string) string {
	r.t.Helper()
	all := ""
	for {
		line, err := r.stdout.ReadString('\n')
		all += line
		if strings.Contains(line, text) {
			return all
		}
		if err != nil {
			_ = r.cmd.Wait()
			r.t.Fatalf("%v: %v after %q, want %q\n%s", r.cmd.Args[1:], err, all, text, r.stderr.String())
		}
	}
}

// end closes standard input, waits for sscli to exit with code, and returns the rest of its output. After that, no
// kubectl may be running.
func (r *viaRun) end(code int) (stdout, stderr string) {
	r.t.Helper()
	got, stdout, stderr := r.ended()
	if got != code {
		r.t.Fatalf("%v: exit code %d, want %d\n%s%s", r.cmd.Args[1:], got, code, stdout, stderr)
	}
	return stdout, stderr
}

// ended is like end, for a command that may exit with several codes.
func (r *viaRun) ended() (code int, stdout, stderr string) {
	r.t.Helper()
	_ = r.stdin.Close()
	out, err := io.ReadAll(r.stdout)
	waitErr := r.cmd.Wait()
	if left := r.kubectls(); len(left) != 0 {
		r.t.Errorf("%v: kubectl is left: %v", r.cmd.Args[1:], left)
	}
	if code = r.cmd.ProcessState.ExitCode(); err != nil {
		r.t.Fatalf("%v: %v, %v", r.cmd.Args[1:], err, waitErr)
	}
	return code, string(out), r.stderr.String()
}

// interrupt interrupts sscli and waits for it to end.
func (r *viaRun) interrupt() {
	r.t.Helper()
	if err := r.cmd.Process.Signal(os.Interrupt); err != nil {
		r.t.Fatal(err)
	}
	r.end(-1)
}

// run runs sscli until it exits, and checks its exit code.
func (c *viaCluster) run(code int, args ...string) (stdout, stderr string) {
	c.t.Helper()
	return c.start(args...).end(code)
}

// kubectls returns the process IDs of the running kubectl processes that this sscli started.
func (r *viaRun) kubectls() []int {
	r.t.Helper()
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		r.t.Fatal(err)
	}
	var pids []int
	for _, dir := range dirs {
		line, _ := os.ReadFile(filepath.Join(dir, "cmdline")) // the process may have ended
		name, _, _ := bytes.Cut(line, []byte{0})
		environ, _ := os.ReadFile(filepath.Join(dir, "environ"))
		pid, err := strconv.Atoi(filepath.Base(dir))
		if err == nil && strings.HasPrefix(filepath.Base(string(name)), "kubectl") && bytes.Contains(environ, []byte(r.mark+"\x00")) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// await waits until a condition holds.
func (c *viaCluster) await(what string, holds func() bool) {
	c.t.Helper()
	for deadline := time.Now().Add(time.Minute); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			c.t.Fatalf("waited in vain until %s", what)
		}
	}
}

// wants fails the test unless text contains each of words.
func (c *viaCluster) wants(text string, words ...string) {
	c.t.Helper()
	for _, word := range words {
		if !strings.Contains(text, word) {
			c.t.Errorf("%q, want %q", text, word)
		}
	}
}

// TestViaKubectl: each kind of command works, over both protocols of port-forward.
func TestViaKubectl(t *testing.T) {
	for name, protocol := range map[string]struct{ websockets, verb string }{"SPDY": {"false", "create"}, "WebSocket": {"true", "get"}} {
		t.Run(name, func(t *testing.T) {
			c := startVia(t, "KUBECTL_PORT_FORWARD_WEBSOCKETS="+protocol.websockets)
			c.run(0, "set", "k", "v")
			if stdout, _ := c.run(0, "--via", "kubectl:pod/"+apiservertest.Pod, "get", "k"); stdout != "v" {
				t.Errorf("get: %q", stdout)
			}
			c.run(0, "--via", "kubectl:lab/"+apiservertest.Namespace+"/deploy/aio-broker", "get", "k")
			batch := c.start("-")
			for i := range 1000 {
				batch.send("set b" + strconv.Itoa(i) + " " + strings.Repeat("x", 1000))
			}
			_, stderr := batch.end(0)
			c.wants(stderr, "1000 lines: 1000 applied")
			watch := c.start("watch", "k", "-n", "1")
			watch.expect("initial")
			c.run(0, "lock", "run", "l", "--", c.sscli, "set", "k", "w", "--fence", "lock")
			stdout, _ := watch.end(0)
			c.wants(stdout, "set\tk\t")
			if stdout, _ := c.run(0, "forward", "--", c.sscli, "get", "k"); stdout != "w" {
				t.Errorf("get through forward: %q", stdout)
			}
			stdout, _ = c.run(0, "doctor")
			c.wants(stdout, "v1.32.4", "pass\tforward", "pass\tca", "pass\ttoken", "pass\tstore")
			if protocol.verb == "get" && c.api.Requests("get", "pods/portforward") == 0 {
				t.Skip("kubectl is older than 1.30 and knows only SPDY")
			}
			if n, all := c.api.Requests(protocol.verb, "pods/portforward"), c.api.Requests("get", "pods/portforward")+c.api.Requests("create", "pods/portforward"); n != all || n < 6 {
				t.Errorf("%d of %d port-forwards by this protocol", n, all)
			}
		})
	}
}

// TestViaPodDeleted: while the pod behind the forward is replaced, running commands continue through a new forward.
func TestViaPodDeleted(t *testing.T) {
	replace := func(c *viaCluster) {
		c.api.DeletePod()
		c.api.CreatePod()
	}
	t.Run("batch", func(t *testing.T) {
		c := startVia(t)
		batch := c.start("-")
		batch.send("set a 1")
		batch.expect("OK")
		old := batch.kubectls()
		replace(c)
		c.await("the old port-forward has ended", func() bool {
			return !slices.ContainsFunc(old, func(pid int) bool { return syscall.Kill(pid, 0) == nil })
		})
		batch.send("sleep 200ms") // gives sscli time to notice that its connection is lost
		batch.send("set a 2")
		batch.expect("OK")
		_, stderr := batch.end(0)
		c.wants(stderr, "3 lines: 3 applied")
	})
	// The reply to a write is lost: sscli reads the key again.
	t.Run("write", func(t *testing.T) {
		c := startVia(t, "SSCLI_TIMEOUT=10s")
		c.store.Intercept(func(r emulator.Request) emulator.Action {
			return emulator.Action{DropReply: r.Verb() == "SET"}
		})
		plain, condition := c.start("set", "a", "1"), c.start("set", "b", "1", "--nx")
		c.await("both are applied", func() bool { return len(c.store.Keys()) == 2 })
		replace(c)
		_, stderr := plain.end(0)
		c.wants(stderr, "warning")
		_, stderr = condition.end(11)
		c.wants(stderr, `"b"`)
	})
	t.Run("watch", func(t *testing.T) {
		c := startVia(t)
		watch := c.start("watch", "k", "-o", "json")
		watch.expect(`"op":"initial"`)
		c.api.DeletePod()
		if _, err := c.store.Set("k", "missed"); err != nil {
			t.Fatal(err)
		}
		c.api.CreatePod()
		c.wants(watch.expect(`"op":"resync"`), `"op":"gap"`, `"continuity":"lost"`, `"value":"missed"`)
		c.run(0, "set", "k", "seen")
		watch.expect(`"value":"seen"`)
		watch.interrupt()
	})
}

// TestViaLock: a lock survives a new forward, and is given up in time if there is none.
func TestViaLock(t *testing.T) {
	t.Run("survives", func(t *testing.T) {
		c, dir := startVia(t), t.TempDir()
		lock := c.start("lock", "run", "l", "--ttl", "15s", "--", "sh", "-c", viaLocked, dir)
		lock.expect("started")
		c.api.DeletePod()
		c.api.CreatePod()
		lock.survive(dir)
	})
	// The new forward takes longer than a renewal may take, but is ready before the TERM time.
	t.Run("survives a slow forward", func(t *testing.T) {
		c, dir := startVia(t), t.TempDir()
		lock := c.start("lock", "run", "l", "--ttl", "15s", "--", "sh", "-c", viaLocked, dir)
		lock.expect("started")
		c.api.Delay.Store(int64(3500 * time.Millisecond))
		c.api.DeletePod()
		c.api.CreatePod()
		lock.survive(dir)
	})
	for name, breaks := range map[string]func(*viaCluster){
		"given up without a pod": func(c *viaCluster) { c.api.DeletePod() },
		"given up before a slow forward": func(c *viaCluster) {
			c.api.Delay.Store(int64(time.Minute))
			c.api.DeletePod()
			c.api.CreatePod()
		},
	} {
		t.Run(name, func(t *testing.T) {
			c, dir := startVia(t), t.TempDir()
			lock := c.start("lock", "run", "l", "--ttl", "15s", "--", "sh", "-c", viaLocked, dir)
			lock.expect("started")
			breaks(c)
			c.await("the command is terminated", func() bool {
				_, err := os.Stat(filepath.Join(dir, "terminated"))
				return err == nil
			})
			if _, held := c.store.Get("l"); !held {
				t.Error("the lock expired before the command got TERM")
			}
			_, stderr := lock.end(8)
			c.wants(stderr, `lock "l" was lost`)
		})
	}
	// If sscli is killed, the command and each kubectl end before the lock expires.
	t.Run("killed", func(t *testing.T) {
		c, dir := startVia(t), t.TempDir()
		lock := c.start("lock", "run", "l", "--", "sh", "-c", viaLocked, dir)
		lock.expect("started")
		if err := lock.cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_, err := io.Copy(io.Discard, lock.stdout) // until the command has ended
		_ = lock.cmd.Wait()
		c.await("no kubectl is left", func() bool { return len(lock.kubectls()) == 0 })
		if _, held := c.store.Get("l"); !held || err != nil {
			t.Error("the lock expired before the command and kubectl ended: ", err)
		}
	})
}
