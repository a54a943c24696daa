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
	"github.com/sscli/sscli/cmd/sscli/internal/via/apiservertest"
	"github.com/sscli/sscli/emulator"
)

// A viaCluster is an API server, a broker with TLS and tokens in its cluster, and the environment
// in which sscli reaches the broker through the real kubectl.
type viaCluster struct {
	t      *testing.T
	api    *apiservertest.Server
	store  *emulator.Server
	sscli  string
	env    []string
	runs   int // sscli processes started
	tokens atomic.Pointer[viaTokens]
}

// viaTokens describes the tokens that the API server creates.
type viaTokens struct {
	age      time.Duration // time since they were issued
	life     time.Duration // from the issue to the expiry
	audience string        // empty = as requested
}

// startVia starts a cluster for a test. The variables are for sscli.
func startVia(t *testing.T, variables ...string) *viaCluster {
	t.Helper()
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
	cert, err := certs.SelfSigned{Dir: dir, Names: []string{apiservertest.Service}, Now: time.Now()}.Prepare()
	if err != nil {
		t.Fatal(err)
	}
	ca, err := os.ReadFile(filepath.Join(dir, "ca.crt"))
	if err != nil {
		t.Fatal(err)
	}
	issuer, err := emulator.NewIssuer("aio-internal")
	if err != nil {
		t.Fatal(err)
	}
	c.store = emulator.Start(t, emulator.Options{TLS: &tls.Config{Certificates: []tls.Certificate{cert}}, VerifyToken: issuer.Verify})
	c.api = apiservertest.Start(t, apiservertest.Options{Broker: c.store.Addr().String(), CA: string(ca), Token: func(account, audience string) (string, error) {
		tokens := c.tokens.Load()
		signer := &emulator.Issuer{Key: issuer.Key, Audience: cmp.Or(tokens.audience, audience)}
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
	stderr bytes.Buffer // valid when sscli has ended
}

// start starts sscli.
func (c *viaCluster) start(args ...string) *viaRun {
	c.t.Helper()
	c.runs++
	r := &viaRun{viaCluster: c, cmd: exec.Command(c.sscli, args...), mark: fmt.Sprintf("SSCLI_TEST_RUN=%s-%d", c.t.Name(), c.runs)}
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

// send writes a line to sscli.
func (r *viaRun) send(line string) {
	r.t.Helper()
	if _, err := io.WriteString(r.stdin, line+"\n"); err != nil {
		r.t.Fatal(err)
	}
}

// expect reads lines of standard output until one contains text, and returns the lines.
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

// end closes standard input, waits for sscli to end with an exit code, and returns the rest of what
// it wrote. Then no kubectl may run.
func (r *viaRun) end(code int) (stdout, stderr string) {
	r.t.Helper()
	_ = r.stdin.Close()
	out, err := io.ReadAll(r.stdout)
	waitErr := r.cmd.Wait()
	left := r.kubectls()
	stdout, stderr = string(out), r.stderr.String()
	if got := r.cmd.ProcessState.ExitCode(); err != nil || got != code {
		r.t.Fatalf("%v: exit code %d (%v, %v), want %d\n%s%s", r.cmd.Args[1:], got, err, waitErr, code, stdout, stderr)
	}
	if len(left) != 0 {
		r.t.Errorf("%v: kubectl is left: %v", r.cmd.Args[1:], left)
	}
	return stdout, stderr
}

// interrupt ends sscli with a signal.
func (r *viaRun) interrupt() {
	r.t.Helper()
	if err := r.cmd.Process.Signal(os.Interrupt); err != nil {
		r.t.Fatal(err)
	}
	r.end(-1)
}

// run runs sscli to its end.
func (c *viaCluster) run(code int, args ...string) (stdout, stderr string) {
	c.t.Helper()
	return c.start(args...).end(code)
}

// kubectls returns the process ids of the kubectl processes that this sscli started and that run.
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
	for deadline := time.Now().Add(20 * time.Second); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			c.t.Fatalf("waited in vain until %s", what)
		}
	}
}

// wants demands that text contains each of words.
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
			if n, all := c.api.Requests(protocol.verb, "pods/portforward"), c.api.Requests("get", "pods/portforward")+c.api.Requests("create", "pods/portforward"); n != all || n < 6 {
				t.Errorf("%d of %d port-forwards by this protocol", n, all)
			}
		})
	}
}

// TestViaPodDeleted: what runs while the pod behind the forward is replaced goes on through a new
// forward.
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
		batch.send("sleep 200ms") // sscli learns that its connection is lost
		batch.send("set a 2")
		batch.expect("OK")
		_, stderr := batch.end(0)
		c.wants(stderr, "3 lines: 3 applied")
	})
	// The answer to a write is lost: sscli reads the key again.
	t.Run("write", func(t *testing.T) {
		c := startVia(t, "SSCLI_TIMEOUT=3s")
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
		lock := c.start("lock", "run", "l", "--ttl", "6s", "--", "sh", "-c", viaLocked, dir)
		lock.expect("started")
		c.api.DeletePod()
		c.api.CreatePod()
		lock.survive(dir)
	})
	t.Run("given up", func(t *testing.T) {
		c, dir := startVia(t, "SSCLI_TIMEOUT=1s"), t.TempDir()
		lock := c.start("lock", "run", "l", "--ttl", "4s", "--", "sh", "-c", viaLocked, dir)
		lock.expect("started")
		c.api.DeletePod()
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
	// sscli is killed: the command and each kubectl end before the lock expires.
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

// TestViaBroken: an error names the step, the cause and what to do, and nothing is sent.
func TestViaBroken(t *testing.T) {
	for name, c := range map[string]struct {
		breaks func(*viaCluster)
		code   int
		wants  []string // on standard error
	}{
		"no right to read the config map": {func(c *viaCluster) { c.api.Forbid("get", "configmaps") }, 4,
			[]string{"kubectl get configmap", `"ann" may not get configmaps`, `resources: ["configmaps"], verbs: ["get"]`}},
		"no right to create a token": {func(c *viaCluster) { c.api.Forbid("create", "serviceaccounts/token") }, 4,
			[]string{"kubectl create token default", `"ann" may not create serviceaccounts/token`, `verbs: ["create"]`}},
		"no right to read the service": {func(c *viaCluster) { c.api.Forbid("get", "services") }, 4,
			[]string{"kubectl port-forward service/aio-broker", `"ann" may not get services`}},
		"no right to list pods": {func(c *viaCluster) { c.api.Forbid("list", "pods") }, 4,
			[]string{"kubectl port-forward service/aio-broker", `"ann" may not list pods`}},
		"no right to read the pod": {func(c *viaCluster) { c.api.Forbid("get", "pods") }, 4,
			[]string{"kubectl port-forward service/aio-broker", `"ann" may not get pods`}},
		"no right to forward": {func(c *viaCluster) {
			c.api.Forbid("get", "pods/portforward")
			c.api.Forbid("create", "pods/portforward")
		}, 4, []string{"kubectl port-forward service/aio-broker", `"ann" may not`, "pods/portforward"}},
		"not logged in": {func(c *viaCluster) { c.api.LogOut() }, 4, []string{"log in to the cluster"}},
		"no certificate": {func(c *viaCluster) { c.api.SetCA("none yet") }, 3,
			[]string{apiservertest.ConfigMap, "the config map holds no certificate in PEM", "--via-ca"}},
		"another CA": {func(c *viaCluster) { c.api.SetCA(otherCA(t)) }, 4, []string{"certificate"}},
		"another audience": {func(c *viaCluster) { c.tokens.Store(&viaTokens{life: time.Hour, audience: "other"}) }, 4,
			[]string{"service account default", "audience aio-internal"}},
		"expired token":   {func(c *viaCluster) { c.tokens.Store(&viaTokens{life: -time.Minute}) }, 4, []string{"service account default", "expired"}},
		"API server gone": {func(c *viaCluster) { c.api.Close() }, 3, []string{"kubectl", "connection refused", "kubectl cluster-info"}},
		"no pod":          {func(c *viaCluster) { c.api.DeletePod() }, 124, []string{"kubectl port-forward service/aio-broker"}},
		"silent forward":  {func(c *viaCluster) { c.api.SetSilent(true) }, 124, []string{"timed out"}},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := startVia(t)
			if c.code == 124 {
				cluster.env = append(cluster.env, "SSCLI_TIMEOUT=2s")
			}
			c.breaks(cluster)
			stdout, stderr := cluster.run(c.code, "set", "k", "v")
			cluster.wants(stderr, c.wants...)
			if keys := cluster.store.Keys(); len(keys) != 0 || stdout != "" {
				t.Errorf("%q; the store has %q", stdout, keys)
			}
		})
	}
}

// otherCA returns the certificate of another CA in PEM.
func otherCA(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	_, err := certs.SelfSigned{Dir: dir, Names: []string{"other"}, Now: time.Now()}.Prepare()
	text, readErr := os.ReadFile(filepath.Join(dir, "ca.crt"))
	if err := errors.Join(err, readErr); err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// viaLocked is a command for lock run that runs until there is a file stop in the directory $0.
const viaLocked = `trap 'touch "$0/terminated"; exit 9' TERM; echo started; while [ ! -e "$0/stop" ]; do sleep 0.02; done`

// survive demands that a lock is renewed and that its command, viaLocked, then ends well.
func (r *viaRun) survive(dir string) {
	r.t.Helper()
	before, _ := r.store.Get("l")
	r.await("the lock is renewed", func() bool {
		now, held := r.store.Get("l")
		if !held {
			r.t.Fatal("the lock has expired")
		}
		return now.Version != before.Version
	})
	if err := os.WriteFile(filepath.Join(dir, "stop"), nil, 0o600); err != nil {
		r.t.Fatal(err)
	}
	r.end(0)
	if _, held := r.store.Get("l"); held {
		r.t.Error("the lock is left")
	}
}

// TestViaKubectlKilled: a watch and a lock go on with a new kubectl.
func TestViaKubectlKilled(t *testing.T) {
	c, dir := startVia(t), t.TempDir()
	watch := c.start("watch", "k", "-o", "json")
	watch.expect(`"op":"initial"`)
	lock := c.start("lock", "run", "l", "--ttl", "6s", "--", "sh", "-c", viaLocked, dir)
	lock.expect("started")
	for _, pid := range append(watch.kubectls(), lock.kubectls()...) {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := c.store.Set("k", "seen"); err != nil {
		t.Fatal(err)
	}
	watch.expect(`"value":"seen"`)
	watch.interrupt()
	lock.survive(dir)
}

// TestViaSilent: a lock survives a forward that stays open and carries no more bytes.
func TestViaSilent(t *testing.T) {
	c, dir := startVia(t), t.TempDir()
	lock := c.start("lock", "run", "l", "--ttl", "12s", "--", "sh", "-c", viaLocked, dir)
	lock.expect("started")
	c.api.Silence()
	lock.survive(dir)
}

// TestViaServerGone: a batch whose API server ends stops with an error that says what was applied.
func TestViaServerGone(t *testing.T) {
	c := startVia(t, "SSCLI_TIMEOUT=3s")
	batch := c.start("-")
	batch.send("set a 1")
	batch.expect("OK")
	c.api.Close()
	c.await("the port-forward has ended", func() bool { return len(batch.kubectls()) == 0 })
	batch.send("set a 2")
	batch.send("set b 2")
	_, stderr := batch.end(3)
	c.wants(stderr, "line 2", "kubectl cluster-info", "1 applied")
	if a, _ := c.store.Get("a"); string(a.Value) != "1" || len(c.store.Keys()) != 1 {
		t.Errorf("a = %q, keys %q", a.Value, c.store.Keys())
	}
}

// TestViaToken: kubectl creates a new token before the old one expires, and when it has expired.
func TestViaToken(t *testing.T) {
	// A token whose renewal is due 1 s after it was created, 9 s before it expires.
	t.Run("renewed", func(t *testing.T) {
		c := startVia(t)
		c.tokens.Store(&viaTokens{age: 39 * time.Second, life: 50 * time.Second})
		var first atomic.Value
		renewed := make(chan bool, 100)
		c.store.RefuseReauth(func(_ string, token []byte) byte {
			if !first.CompareAndSwap(nil, string(token)) && first.Load() != string(token) {
				renewed <- true
			}
			return 0
		})
		watch := c.start("watch", "k", "-o", "json")
		watch.expect(`"op":"initial"`)
		c.await("the session has logged in with a new token", func() bool { return len(renewed) != 0 })
		if _, err := c.store.Set("k", "v"); err != nil {
			t.Fatal(err)
		}
		if lines := watch.expect(`"op":"set"`); strings.Contains(lines, "gap") {
			t.Error(lines)
		}
		watch.interrupt()
	})
	t.Run("expired", func(t *testing.T) {
		c := startVia(t)
		c.tokens.Store(&viaTokens{life: 2 * time.Second})
		watch := c.start("watch", "k", "-o", "json")
		watch.expect(`"op":"initial"`)
		watch.expect(`"op":"resync"`)
		if n := c.api.Requests("create", "serviceaccounts/token"); n < 2 {
			t.Errorf("%d tokens", n)
		}
		watch.interrupt()
	})
	t.Run("forbidden", func(t *testing.T) {
		c := startVia(t)
		c.tokens.Store(&viaTokens{life: 2 * time.Second})
		watch := c.start("watch", "k", "--retry-for", "3s", "-o", "json")
		watch.expect(`"op":"initial"`)
		c.api.Forbid("create", "serviceaccounts/token")
		_, stderr := watch.end(4)
		c.wants(stderr, `"ann\" may not create serviceaccounts/token`)
	})
}
