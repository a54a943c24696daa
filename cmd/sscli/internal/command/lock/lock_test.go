package lock

import (
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/cmd/sscli/internal/app"
	"github.com/sscli/sscli/cmd/sscli/internal/apptest"
	"github.com/sscli/sscli/cmd/sscli/internal/fault"
	"github.com/sscli/sscli/cmd/sscli/internal/process"
	"github.com/sscli/sscli/cmd/sscli/internal/verb"
	"github.com/sscli/sscli/emulator"
)

// TestBusyError: the message about a busy lock says whether the holder renewed the lock, and nothing else about the
// holder. If the holder did not renew it, the message recommends lock break.
func TestBusyError(t *testing.T) {
	token := func(age time.Duration) client.Version {
		return client.Version{Wall: time.Now().Add(-age).UnixMilli(), Node: "StateStore"}
	}
	old, fresh := token(3*time.Minute), token(time.Second)
	for _, test := range []struct {
		what        string
		seen, token client.Version
		since       time.Duration // how long the holder was observed; 0 = not at all
		want        string
		breaks      bool
	}{
		{"an answer at once", client.Version{}, fresh, 0, "", false},
		{"not renewed for long", client.Version{}, old, 0, "; not renewed for 3m[0-9]+s by the local clock: ", true},
		{"a local clock that may be ahead", client.Version{}, token(100 * time.Second), 0, "", false},
		{"a short wait", fresh, fresh, time.Second, "", false},
		{"a wait without a renewal", fresh, fresh, 20 * time.Second, "; not renewed in the [0-9]+s that sscli waited: ", true},
		{"a renewal during the wait", old, fresh, 20 * time.Second, "; renewed while sscli waited", false},
	} {
		for _, holder := range []string{"alice", "21.5", "github-actions"} { // the form of the name does not matter
			f := lockFlags{name: "door", seen: client.LockStatus{Name: "door", Holder: []byte(holder), Token: test.seen}}
			if test.since > 0 {
				f.since = time.Now().Add(-test.since)
			}
			err := f.busyError(&client.LockBusyError{Status: client.LockStatus{Name: "door", Held: true, Holder: []byte(holder), Token: test.token}, Waited: test.since})
			_, note, _ := strings.Cut(err.Error(), " ago)")
			if test.want == "" && note != "" || !regexp.MustCompile("^"+test.want).MatchString(note) {
				t.Errorf("%s, %s: %q, want %q", test.what, holder, note, test.want)
			}
			if _, hint := fault.Of(err); strings.Contains(hint.String(), "sscli lock break door") != test.breaks {
				t.Errorf("%s, %s: %s", test.what, holder, hint)
			}
		}
	}
}

// TestLateGuard: a command that was ended although its lock was renewed is not said to have lost it.
func TestLateGuard(t *testing.T) {
	store := emulator.Start(t)
	s, err := client.New(client.Options{Address: store.Addr().String()})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	l, err := s.Lock(t.Context(), "door")
	if err != nil {
		t.Fatal(err)
	}
	r := &lockRun{reporter: &reporter{lock: l}}
	for renewed, want := range map[bool]string{true: "the lock was renewed in time", false: "was not renewed in time"} {
		err := r.outcome(process.End{Code: 143, Killed: true}, renewed, nil, nil, nil)
		if f, _ := fault.Of(err); f.Code != 8 || !strings.Contains(fault.Message(err), want) {
			t.Errorf("renewed %t: %d, %q, want 8 and %q", renewed, f.Code, fault.Message(err), want)
		}
	}
}

// TestRunNUL: lock run refuses a name that the environment of its command cannot hold.
func TestRunNUL(t *testing.T) {
	store := emulator.Start(t)
	commands, env := []app.Command{{Name: "lock", New: New}}, map[string]string{"SSCLI_URL": store.URL()}
	for _, args := range [][]string{{"a\x00b"}, {"a", "--holder", "h\x00"}} {
		code, _, stderr := apptest.Run(t, commands, env, slices.Concat([]string{"lock", "run"}, args, []string{"--", "echo"})...)
		if code != fault.CodeUsage || !strings.Contains(stderr, "NUL") || !strings.Contains(stderr, verb.EnvLockName) {
			t.Errorf("%q: exit code %d, %s", args, code, stderr)
		}
	}
}
