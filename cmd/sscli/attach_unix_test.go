//go:build unix

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/sscli/sscli/internal/testkit/mosquitto"
	"github.com/sscli/sscli/internal/wire"
)

// TestAttachRefused: when a broker refuses the replies of an attached store, serve reports it at most once a second,
// and reports the total at the end.
func TestAttachRefused(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long")
	}
	t.Parallel()
	acl := filepath.Join(t.TempDir(), "acl")
	// Everybody may send requests and receive replies, but may send replies only to their own client id.
	if err := os.WriteFile(acl, []byte("topic readwrite "+wire.RequestTopic+"\ntopic read clients/#\npattern write clients/%c/#\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	broker := mosquitto.Start(t, "", mosquitto.Anonymous+"\nacl_file "+acl)
	env := []string{"SSCLI_URL=mqtt://" + broker.Addresses[0]}
	store := converse(t, env, nil, "serve", "--attach")
	ask := func() {
		t.Helper()
		s := converse(t, env, nil, "get", "k", "-t", "2s")
		if code := s.end(); code != 124 {
			t.Errorf("get: exit code %d, want 124: %s", code, s.screen())
		}
	}
	// Requests that arrive before the store has subscribed are not answered either.
	for !strings.Contains(store.screen(), "refused") {
		ask()
	}
	const want = "sscli: warning: the broker refused a reply: PUBACK 0x87 not authorized for \"clients/"
	store.await(want)
	for range 3 {
		ask()
	}
	if err := store.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code := store.end(); code != 143 {
		t.Errorf("serve: exit code %d, want 143", code)
	}
	if !strings.HasSuffix(store.screen(), " replies and notifications refused by the broker\n") {
		t.Errorf("no count at the end: %s", store.screen())
	}
}

// TestAttachRights: a store without a right that it needs does not say that it is ready, but names the topic.
func TestAttachRights(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, acl, want string }{
		{"no requests", "topic write " + wire.RequestTopic + "\ntopic readwrite clients/#", "no message arrives on \"" + wire.RequestTopic + "\""},
		{"no own request", "topic read " + wire.RequestTopic + "\ntopic readwrite clients/#", "PUBACK 0x87 not authorized for \"" + wire.RequestTopic + "\""},
		{"no replies", "topic readwrite " + wire.RequestTopic + "\ntopic read clients/#", "PUBACK 0x87 not authorized for \"clients/sscli-store-"},
		{"no reply arrives", "topic readwrite " + wire.RequestTopic + "\ntopic write clients/#", "no message arrives on \"clients/sscli-store-"},
		{"nothing", "topic readwrite other", "PUBACK 0x87 not authorized for \"clients/sscli-store-"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			acl := filepath.Join(t.TempDir(), "acl")
			if err := os.WriteFile(acl, []byte(c.acl+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			broker := mosquitto.Start(t, "", mosquitto.Anonymous+"\nacl_file "+acl)
			store := serveAttached(t, broker.Addresses[0])
			if code := store.end(); code != 4 || !strings.Contains(store.screen(), c.want) || strings.Contains(store.screen(), readyAttached) {
				t.Errorf("exit code %d, want 4 and %s: %s", code, c.want, store.screen())
			}
		})
	}
}

// TestAttachRefusedNotification: notifications that the broker refuses do not delay the reply of the write.
func TestAttachRefusedNotification(t *testing.T) {
	t.Parallel()
	acl := filepath.Join(t.TempDir(), "acl")
	if err := os.WriteFile(acl, []byte("topic readwrite "+wire.RequestTopic+"\ntopic readwrite clients/+/services/#\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	broker := mosquitto.Start(t, "set_tcp_nodelay true", mosquitto.Anonymous+"\nacl_file "+acl)
	address := broker.Addresses[0]
	store := serveAttached(t, address)
	store.await(readyAttached)
	env := []string{"SSCLI_URL=mqtt://" + address}
	both := func(cmd *exec.Cmd) { cmd.Stdout = cmd.Stderr }
	watch := converse(t, env, both, "watch", "k", "-o", "raw")
	watch.await("initial")
	for range 30 {
		s := converse(t, env, nil, "set", "k", "v")
		if code := s.end(); code != 0 {
			t.Fatalf("set: exit code %d: %s", code, s.screen())
		}
	}
	store.await("the broker refused a reply: PUBACK 0x87")
}

// TestAttachOneFile: a second store cannot use the data file of the first one, and the file of a store that ended is
// whole.
func TestAttachOneFile(t *testing.T) {
	t.Parallel()
	broker := mosquitto.Start(t, "set_tcp_nodelay true", mosquitto.Anonymous)
	address, file := broker.Addresses[0], filepath.Join(t.TempDir(), "store.db")
	store := serveAttached(t, address, "--data", file)
	store.await(readyAttached)
	env := []string{"SSCLI_URL=mqtt://" + address}
	if s := converse(t, env, nil, "set", "recipe", "A"); s.end() != 0 {
		t.Fatal(s.screen())
	}
	for _, args := range [][]string{{"serve", "--attach", "--data", file}, {"serve", "--data", file, "--listen", "127.0.0.1:0"}} {
		if args[1] == "--data" {
			env = nil
		}
		second := converse(t, env, nil, args...)
		if code := second.end(); code != 13 || !strings.Contains(second.screen(), "is in use by the process") {
			t.Errorf("%q: exit code %d: %s", args, code, second.screen())
		}
	}
	store.signal(syscall.SIGTERM)
	store.end()
}
