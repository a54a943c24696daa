//go:build unix

package main

import (
	"os"
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
	// Everybody may send requests and receive replies, but nobody may send replies.
	if err := os.WriteFile(acl, []byte("topic readwrite "+wire.RequestTopic+"\ntopic read clients/#\n"), 0o600); err != nil {
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
