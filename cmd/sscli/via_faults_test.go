//go:build linux

package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/sscli/sscli/cmd/sscli/internal/certs"
	"github.com/sscli/sscli/internal/mqtt"
	"github.com/sscli/sscli/internal/testkit/apiservertest"
)

// TestViaBroken: an error names the step, the cause and what to do, and nothing is sent.
func TestViaBroken(t *testing.T) {
	for name, c := range map[string]struct {
		breaks func(*viaCluster)
		code   int
		wants  []string // texts on standard error
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
		"not logged in": {func(c *viaCluster) { c.api.LoggedOut.Store(true) }, 4, []string{"log in to the cluster"}},
		"no certificate": {func(c *viaCluster) { c.api.SetCA("none yet") }, 3,
			[]string{apiservertest.ConfigMap, "the config map holds no certificate in PEM", "--via-ca"}},
		"another CA": {func(c *viaCluster) { c.api.SetCA(otherCA(t)) }, 4, []string{"certificate"}},
		"another audience": {func(c *viaCluster) { c.tokens.Store(&viaTokens{life: time.Hour, audience: "other"}) }, 4,
			[]string{"tokens of the cluster for the audience aio-internal"}},
		"expired token":   {func(c *viaCluster) { c.tokens.Store(&viaTokens{life: -time.Minute}) }, 4, []string{"service-account token expired at", "audience aio-internal"}},
		"API server gone": {func(c *viaCluster) { c.api.Close() }, 3, []string{"kubectl", "connection refused", "kubectl cluster-info"}},
		"no pod":          {func(c *viaCluster) { c.api.DeletePod() }, 3, []string{"kubectl port-forward service/aio-broker: no pod is running", "kubectl get pods"}},
		"silent forward":  {func(c *viaCluster) { c.api.Silent.Store(true) }, 124, []string{"timed out"}},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := startVia(t)
			switch {
			case name == "no pod": // kubectl waits for 80 % of the timeout; the rest covers its slow start on a busy machine
				cluster.env = append(cluster.env, "SSCLI_TIMEOUT=30s")
			case c.code == 124:
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
	_, err := certs.SelfSigned{Dir: dir, Names: []string{"other"}, Now: time.Now()}.Prepare(t.Context())
	text, readErr := os.ReadFile(filepath.Join(dir, "ca.crt"))
	if err := errors.Join(err, readErr); err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// viaLocked is a command for lock run that runs until the file stop exists in the directory $0.
const viaLocked = `trap 'touch "$0/terminated"; exit 9' TERM; echo started; while [ ! -e "$0/stop" ]; do sleep 0.02; done`

// survive checks that the lock is renewed and that its command, viaLocked, then succeeds.
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

// TestViaKubectlKilled: a watch and a lock continue with a new kubectl.
func TestViaKubectlKilled(t *testing.T) {
	c, dir := startVia(t), t.TempDir()
	watch := c.start("watch", "k", "-o", "json")
	watch.expect(`"op":"initial"`)
	lock := c.start("lock", "run", "l", "--ttl", "15s", "--", "sh", "-c", viaLocked, dir)
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

// TestViaSilent: a forward that stays open but carries no more bytes is replaced.
func TestViaSilent(t *testing.T) {
	t.Run("lock", func(t *testing.T) {
		c, dir := startVia(t), t.TempDir()
		lock := c.start("lock", "run", "l", "--ttl", "24s", "--", "sh", "-c", viaLocked, dir)
		lock.expect("started")
		c.api.Silence()
		lock.survive(dir)
	})
	// An audit notices the silence before the keep-alive does.
	t.Run("audited watch", func(t *testing.T) {
		c := startVia(t, "SSCLI_TIMEOUT=10s")
		watch := c.start("watch", "k", "--audit", "100ms", "-o", "json")
		watch.expect(`"op":"initial"`)
		c.api.Silence()
		if _, err := c.store.Set("k", "missed"); err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		c.wants(watch.expect(`"op":"resync"`), `"op":"gap"`, `"value":"missed"`)
		if took := time.Since(begin); took > mqtt.DefaultKeepAlive {
			t.Errorf("the watch left the silent forward after %v", took)
		}
		watch.interrupt()
	})
}

// TestViaServerGone: if the API server of a batch ends, the batch stops with an error that says what was applied.
func TestViaServerGone(t *testing.T) {
	c := startVia(t, "SSCLI_TIMEOUT=10s")
	batch := c.start("-")
	batch.send("set a 1")
	batch.expect("OK")
	c.api.Close()
	c.await("the port-forward has ended", func() bool { return len(batch.kubectls()) == 0 })
	batch.send("set a 2")
	batch.send("set b 2")
	// sscli sees the end of its connection before it sends line 2, or while line 2 is in flight.
	switch code, _, stderr := batch.ended(); code {
	case 3:
		c.wants(stderr, "line 2", "kubectl cluster-info", "1 applied")
	case 11:
		c.wants(stderr, "line 2", "unknown if it was applied", "1 applied", "1 unknown")
	default:
		t.Fatalf("exit code %d\n%s", code, stderr)
	}
	if a, _ := c.store.Get("a"); string(a.Value) != "1" || len(c.store.Keys()) != 1 {
		t.Errorf("a = %q, keys %q", a.Value, c.store.Keys())
	}
}

// TestViaToken: kubectl creates a new token before the old one expires, and after it has expired.
func TestViaToken(t *testing.T) {
	// The renewal of this token is due 1 s after it was created, 9 s before it expires.
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
