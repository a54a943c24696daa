//go:build unix

package via_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/cmd/sscli/internal/certs"
	"github.com/sscli/sscli/cmd/sscli/internal/config"
	"github.com/sscli/sscli/cmd/sscli/internal/process"
	"github.com/sscli/sscli/cmd/sscli/internal/via"
	"github.com/sscli/sscli/emulator"
	"github.com/sscli/sscli/internal/testkit/viatest"
)

func TestMain(m *testing.M) {
	if process.GuardMain() {
		return
	}
	if filepath.Base(os.Args[0]) == "kubectl" {
		os.Exit(viatest.Main())
	}
	os.Exit(m.Run())
}

// start starts a broker with TLS and tokens, a cluster that contains it, and a way into the cluster.
func start(t *testing.T) (*viatest.Cluster, *via.Way, client.Options) {
	t.Helper()
	dir := t.TempDir()
	cert, err := certs.SelfSigned{Dir: dir, Names: []string{"aio-broker"}, Now: time.Now()}.Prepare(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	verify := func(token []byte, _ time.Time) (emulator.Login, error) {
		if !strings.HasPrefix(string(token), "secret-token") && !strings.HasPrefix(string(token), "e30.") {
			return emulator.Login{}, errors.New("another token")
		}
		return emulator.Login{User: "sscli"}, nil
	}
	server, err := emulator.New(emulator.Options{TLS: &tls.Config{Certificates: []tls.Certificate{cert}}, CheckToken: verify})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	})
	c := viatest.Start(t, server.Addr().String())
	ca, err := os.ReadFile(filepath.Join(dir, "ca.crt"))
	if err != nil {
		t.Fatal(err)
	}
	c.Write(t, "ca.crt", string(ca))
	target, err := config.ParseVia("kubectl:lab/iot/aio-broker")
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	w := via.New(via.Options{Target: target, CA: "bundle", Account: "default", Roots: pool})
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
		for _, word := range []string{"port-forward", "get", "create"} {
			pids, _ := c.Calls(word)
			for _, pid := range pids {
				if syscall.Kill(pid, 0) == nil {
					t.Errorf("kubectl %s with the process id %d is left", word, pid)
				}
			}
		}
	})
	return c, w, client.Options{Address: "aio-broker:18883", TLS: &tls.Config{RootCAs: pool}, Dial: w.Dial, ReadToken: w.Token, Timeout: time.Minute}
}

func dial(t *testing.T, o client.Options) *client.Session {
	t.Helper()
	s, err := client.Dial(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() }) // the error of Close does not matter
	return s
}

// set sets a key, and tries again while the connection is lost.
func set(t *testing.T, s *client.Session) {
	t.Helper()
	var err error
	for end := time.Now().Add(time.Minute); time.Now().Before(end); {
		if _, err = s.Set(t.Context(), "k", []byte("v")); err == nil {
			return
		}
	}
	t.Fatal(err)
}

func TestWay(t *testing.T) {
	c, _, o := start(t)
	s := dial(t, o)
	set(t, s)
	for word, want := range map[string]string{
		"port-forward": "port-forward service/aio-broker :18883 --context=lab --namespace=iot --address=127.0.0.1 --pod-running-timeout=",
		"get":          "get /api/v1/namespaces/iot/configmaps/bundle --context=lab --namespace=iot --raw",
		"create":       "create token default --context=lab --namespace=iot --audience=aio-internal",
	} {
		_, args := c.Calls(word)
		if len(args) != 1 || !strings.Contains(args[0], want) {
			t.Errorf("%q, want one %s", args, want)
		}
	}
}

// TestNewForward: when a forward ends, the next request goes through a new one.
func TestNewForward(t *testing.T) {
	for name, end := range map[string]func(*viatest.Cluster, *testing.T){"pod deleted": (*viatest.Cluster).DeletePod, "kubectl killed": (*viatest.Cluster).Kill} {
		t.Run(name, func(t *testing.T) {
			c, _, o := start(t)
			s := dial(t, o)
			for n := 1; n <= 3; n++ {
				set(t, s)
				if pids, _ := c.Calls("port-forward"); len(pids) != n {
					t.Fatalf("%d forwards, want %d", len(pids), n)
				}
				end(c, t)
				for s.Err() == nil {
					time.Sleep(time.Millisecond)
				}
			}
		})
	}
}

// TestLostConnection: the error of a lost connection says why kubectl ended. kubectl says so before it closes the
// connection.
func TestLostConnection(t *testing.T) {
	c, _, o := start(t)
	s := dial(t, o)
	c.DeletePod(t)
	for s.Err() == nil {
		time.Sleep(time.Millisecond)
	}
	const want = "connection lost: kubectl port-forward service/aio-broker: lost connection to pod"
	if s.Err().Error() != want {
		t.Errorf("%v, want %s", s.Err(), want)
	}
}

// TestSilentForward: a forward that accepts connections but carries no bytes is replaced after its connection is
// abandoned.
func TestSilentForward(t *testing.T) {
	c, w, o := start(t)
	c.Write(t, "silent", "yes")
	if err := w.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Token(t.Context()); err != nil { // the start of a second kubectl could use up the time limit
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	if _, err := client.Dial(ctx, o); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("%v, want a timeout", err)
	}
	c.Remove(t, "silent")
	set(t, dial(t, o))
	if pids, _ := c.Calls("port-forward"); len(pids) != 2 {
		t.Errorf("%d forwards, want 2", len(pids))
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
}

// TestSharedForward: connections of one way share a forward, and a worn-out forward still serves its existing
// connections.
func TestSharedForward(t *testing.T) {
	c, _, o := start(t)
	var all sync.WaitGroup
	sessions := make([]*client.Session, 5)
	for i := range sessions {
		all.Go(func() {
			o := o
			sessions[i], _ = client.Dial(t.Context(), o) // nil is reported below
		})
	}
	all.Wait()
	for _, s := range sessions {
		if s == nil {
			t.Fatal("no connection")
		}
		set(t, s)
		defer s.Close()
	}
	if pids, _ := c.Calls("port-forward"); len(pids) != 1 {
		t.Errorf("%d forwards, want 1", len(pids))
	}
	// A connection that receives nothing wears the forward out.
	nc, err := o.Dial(t.Context(), "", "")
	if err != nil {
		t.Fatal(err)
	}
	_ = nc.Close()
	set(t, dial(t, o))
	set(t, sessions[0])
	if pids, _ := c.Calls("port-forward"); len(pids) != 2 || sessions[0].Err() != nil {
		t.Errorf("%d forwards, want 2; the first connection: %v", len(pids), sessions[0].Err())
	}
}

// TestErrors: errors of kubectl are translated, and contain no secret.
func TestErrors(t *testing.T) {
	for _, c := range []struct {
		word, stderr string
		kind         via.Kind
		want         []string // contained in the message or the hint
	}{
		{"port-forward", `Error from server (NotFound): services "aio-broker" not found`, via.NotFound,
			[]string{"kubectl port-forward service/aio-broker: ", "kubectl get services -n iot"}},
		{"port-forward", `error: error upgrading connection: pods "p" is forbidden: User "ann" cannot create resource "pods/portforward" in API group "" in the namespace "iot"`,
			via.Forbidden, []string{`"ann" may not create pods/portforward`, `in the namespace iot: apiGroups: [""], resources: ["pods/portforward"], verbs: ["create"]`}},
		{"port-forward", "error: unable to forward port because pod is not running. Current status=Pending", via.Unreachable, []string{"Pending", "kubectl get pods -n iot"}},
		{"port-forward", "error: timed out waiting for the condition", via.Unreachable, []string{"service/aio-broker: no pod is running", "kubectl get pods -n iot"}},
		{"port-forward", `error: context "lab" does not exist`, via.NotFound, []string{"get-contexts"}},
		{"get", `Error from server (NotFound): configmaps "bundle" not found`, via.NotFound, []string{"kubectl get configmap bundle", "kubectl get configmaps -n iot"}},
		{"create", `error: failed to create token: serviceaccounts "default" not found`, via.NotFound, []string{"kubectl get serviceaccounts"}},
		{"create", "error: You must be logged in to the server (Unauthorized)", via.Unauthorized, []string{"log in to the cluster"}},
		{"create", "Unable to connect to the server: dial tcp 10.0.0.1:443: i/o timeout", via.Unreachable, []string{"kubectl cluster-info"}},
		{"create", "Error: must specify one of -f and -k", via.Missing, []string{"1.24"}},
		{"create", "something else\n\n", via.Other, []string{"something else"}},
	} {
		t.Run(c.word, func(t *testing.T) {
			cluster, _, o := start(t)
			cluster.Write(t, c.word+".fail", c.stderr)
			_, err := client.Dial(t.Context(), o)
			e, ok := errors.AsType[*via.Error](err)
			if !ok || e.Kind != c.kind {
				t.Fatalf("%v, want an *Error of kind %d", err, c.kind)
			}
			for _, want := range c.want {
				if !strings.Contains(e.Error()+"\n"+e.Hint.String(), want) {
					t.Errorf("%v\n%s\nwant %s", e, e.Hint, want)
				}
			}
		})
	}
}

func TestNoKubectl(t *testing.T) {
	_, _, o := start(t)
	t.Setenv("PATH", t.TempDir())
	_, err := client.Dial(t.Context(), o)
	if e, ok := errors.AsType[*via.Error](err); !ok || e.Kind != via.Missing {
		t.Errorf("%v, want an *Error of kind Missing", err)
	}
}

// TestBrokenForward: the error is what kubectl says about a forward that leads nowhere.
func TestBrokenForward(t *testing.T) {
	c, _, o := start(t)
	c.Write(t, "broker", "127.0.0.1:1")
	_, err := client.Dial(t.Context(), o)
	if e, ok := errors.AsType[*via.Error](err); !ok || !strings.Contains(e.Why, "error forwarding port 2 to pod x") {
		t.Errorf("%v", err)
	}
}

// TestHangingKubectl: a hanging kubectl does not block beyond the end of the caller's context, and the next attempt
// waits for the same kubectl.
func TestHangingKubectl(t *testing.T) {
	c, _, o := start(t)
	c.Write(t, "create.hang", "")
	dial := func(ctx context.Context, want error) {
		t.Helper()
		if _, err := client.Dial(ctx, o); !errors.Is(err, want) || !strings.Contains(err.Error(), "kubectl create token default") {
			t.Errorf("%v, want %v of kubectl create token", err, want)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	go func() { // ends the first attempt once kubectl is running
		defer cancel()
		for ctx.Err() == nil {
			if pids, _ := c.Calls("create"); len(pids) > 0 {
				return
			}
			time.Sleep(time.Millisecond)
		}
	}()
	dial(ctx, context.Canceled)
	limited, stop := context.WithTimeout(t.Context(), 2*time.Second)
	defer stop()
	dial(limited, context.DeadlineExceeded)
	if pids, _ := c.Calls("create"); len(pids) != 1 {
		t.Errorf("%d calls, want 1", len(pids))
	}
}

// jwt returns an unsigned token with these times.
func jwt(issued, expires time.Time) string {
	claims := fmt.Sprintf(`{"iat":%d,"exp":%d}`, issued.Unix(), expires.Unix())
	return "e30." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + ".x"
}

// TestTokenRenewal: a token is renewed after 80 % of its lifetime. If there is no new token, the old one is used until
// it expires.
func TestTokenRenewal(t *testing.T) {
	c, w, _ := start(t)
	now := time.Now()
	old := jwt(now.Add(-50*time.Minute), now.Add(10*time.Minute))
	c.Write(t, "token", old)
	token := func() string {
		got, err := w.Token(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return string(got)
	}
	c.Write(t, "create.fail", "")
	if got := token(); got != old {
		t.Fatalf("%s, want the old token", got)
	}
	c.Write(t, "create.fail", "no")
	for range 3 {
		if got := token(); got != old {
			t.Errorf("%s, want the old token", got)
		}
	}
	fresh := jwt(now, now.Add(time.Hour))
	c.Write(t, "token", fresh)
	c.Remove(t, "create.fail")
	for token() != fresh {
		time.Sleep(time.Millisecond)
	}
	before, _ := c.Calls("create")
	token()
	if after, _ := c.Calls("create"); !slices.Equal(before, after) {
		t.Error("a fresh token is asked for again")
	}
}
