package lock_test

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sscli/sscli/cmd/sscli/internal/app"
	"github.com/sscli/sscli/cmd/sscli/internal/apptest"
	"github.com/sscli/sscli/cmd/sscli/internal/command/lock"
	"github.com/sscli/sscli/emulator"
	"github.com/sscli/sscli/internal/wire"
)

// run runs a subcommand of lock against a store.
var run = apptest.Runner(app.Command{Name: "lock", New: lock.New})

// hold acquires or renews a lock for a minute, as holder.
func hold(t *testing.T, store *emulator.Server, name, holder string) {
	t.Helper()
	now := wire.Version{Wall: store.Now().UnixMilli(), Node: "test"}
	payload := wire.AppendRequest(nil, wire.VerbSet, name, holder, wire.OptionNEX, wire.OptionPX, "60000")
	r := store.Do(emulator.NewRequest("", payload, emulator.Property{Name: wire.PropTimestamp, Value: now.String()}))
	if string(r.Payload) != "+OK\r\n" {
		t.Errorf("%s did not get %s: %q", holder, name, r.Payload)
	}
}

// version returns the version of a key.
func version(t *testing.T, store *emulator.Server, key string) string {
	t.Helper()
	e, ok := store.Get(key)
	if !ok {
		t.Fatalf("no key %s", key)
	}
	return e.Version.String()
}

// TestStatus: the exit code is 0 only while the lock is held. The token of the lock is the newest version of its key.
func TestStatus(t *testing.T) {
	t.Parallel()
	store := emulator.Start(t, emulator.Options{Policy: emulator.PolicyFunc(func(a emulator.Access) bool { return a.On != "secret" })})
	status := func(wantCode int, want string) {
		t.Helper()
		code, stdout, stderr := run(t, store.URL(), "status", "build", "-o", "template={{.held}} {{.holder}} {{with .token}}{{.hlc}}{{end}}")
		if diff := cmp.Diff(want, stdout); code != wantCode || stderr != "" || diff != "" {
			t.Errorf("exit code %d, want %d: %s(-want +got):\n%s", code, wantCode, stderr, diff)
		}
	}
	status(1, "false  \n")
	hold(t, store, "build", "job 7")
	acquired := version(t, store, "build")
	status(0, "true job 7 "+acquired+"\n")
	hold(t, store, "build", "job 7")
	renewed := version(t, store, "build")
	if renewed == acquired {
		t.Error("the renewal did not change the version")
	}
	status(0, "true job 7 "+renewed+"\n")
	store.FastForward(2 * time.Minute)
	status(1, "false  \n")

	for args, want := range map[string]string{
		"status build -o human":        "free",
		"status secret":                "not authorized",
		"status":                       "missing NAME",
		"status build --observe soon":  "expected a duration such as 500ms, 10s or 2m",
		"status build --observe 0":     "must be greater than 0",
		"list build --observe -1s":     "must not be negative",
		"status build* -o human":       "lock list 'build*'",
		"list nobody* --observe 100ms": "no key matches \"nobody*\"",
	} {
		if _, stdout, stderr := run(t, store.URL(), strings.Fields(args)...); !strings.Contains(stdout+stderr, want) {
			t.Errorf("%s: want %q\n%s%s", args, want, stdout, stderr)
		}
	}
}

// observe runs a lock command with --observe, which watches the lock name. Once the command has read the lock for its
// watch, observe calls change. The watch does not end before change has returned.
func observe(t *testing.T, store *emulator.Server, name string, change func(), args ...string) (code int, stdout, stderr string) {
	t.Helper()
	requests, registrations := 0, 0
	watched, changed := make(chan int, 1), make(chan struct{})
	before := store.State().Replies
	store.Intercept(func(r emulator.Request) emulator.Action {
		requests++
		switch {
		case r.Key() != name:
		case r.Verb() == wire.VerbKeyNotify:
			if registrations++; registrations == 2 { // the command ends its watch
				<-changed
			}
		case registrations == 1 && r.Verb() == wire.VerbGet:
			select {
			case watched <- requests:
			default:
			}
		}
		return emulator.Action{}
	})
	defer store.Intercept(nil)
	go func() {
		defer close(changed)
		var n int
		select {
		case n = <-watched:
		case <-t.Context().Done():
			return
		}
		if err := store.Await(t.Context(), func(s emulator.State) bool { return s.Replies-before >= n }); err != nil {
			t.Error(err)
			return
		}
		change()
	}()
	return run(t, store.URL(), args...)
}

// TestObserve: --observe counts renewals by the holder. It counts none if nobody renews the lock, or if another holder
// acquires it.
func TestObserve(t *testing.T) {
	t.Parallel()
	const form = "template={{.holder}} {{.renewals}}"
	for _, tt := range []struct {
		name   string
		change func(*testing.T, *emulator.Server)
		code   int
		want   string // regular expression that the output matches
	}{
		{"idle", func(*testing.T, *emulator.Server) {}, 0, "^job-7 0\n$"},
		{"renewed", func(t *testing.T, store *emulator.Server) { hold(t, store, "build", "job-7") }, 0, "^job-7 1\n$"},
		{"renewed twice", func(t *testing.T, store *emulator.Server) {
			hold(t, store, "build", "job-7")
			hold(t, store, "build", "job-7")
		}, 0, "^job-7 [12]\n$"}, // 1 if both renewals are seen only in the last version
		{"taken over", func(t *testing.T, store *emulator.Server) {
			store.FastForward(2 * time.Minute)
			hold(t, store, "build", "job-8")
		}, 0, "^job-8 0\n$"},
		{"released", func(_ *testing.T, store *emulator.Server) { apptest.Remove(store, "build") }, 1, "^ 0\n$"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			store := emulator.Start(t)
			hold(t, store, "build", "job-7")
			code, stdout, stderr := observe(t, store, "build", func() { tt.change(t, store) }, "status", "build", "--observe", "300ms", "-o", form)
			if code != tt.code || !regexp.MustCompile(tt.want).MatchString(stdout) {
				t.Errorf("exit code %d, %q, want %d and %s\n%s", code, stdout, tt.code, tt.want, stderr)
			}
			if !strings.Contains(stderr, `observing lock "build" for 300ms`) {
				t.Errorf("%s", stderr)
			}
		})
	}
}

// TestList: list prints each lock once. The exit code is 1 only if a NAME is free, not if a pattern finds no locks. A
// lock that cannot be read does not hide the others.
func TestList(t *testing.T) {
	t.Parallel()
	store := emulator.Start(t, emulator.Options{Policy: emulator.PolicyFunc(func(a emulator.Access) bool { return a.On != "secret" })})
	for _, name := range []string{"locks/build", "locks/deploy", "other"} {
		hold(t, store, name, "job-7")
	}
	for _, tt := range []struct {
		args         string
		code         int
		want, stderr string
	}{
		{"locks/*", 0, "locks/build maybe: job-7\nlocks/deploy maybe: job-7\n", ""},
		{"locks/deploy locks/* locks/deploy", 0, "locks/deploy job-7\nlocks/build maybe: job-7\n", ""},
		{"", 0, "locks/build maybe: job-7\nlocks/deploy maybe: job-7\nother maybe: job-7\n", ""},
		{"nobody other", 1, "nobody \nother job-7\n", ""},
		{"nobody*", 0, "", "no key matches \"nobody*\""},
		{"secret other", 4, "other job-7\n", `get "secret": the store answered: not authorized`},
	} {
		args := append([]string{"list", "-o", "template={{.name}} {{.holder}}{{with .value}}maybe: {{.}}{{end}}"}, strings.Fields(tt.args)...)
		code, stdout, stderr := run(t, store.URL(), args...)
		if diff := cmp.Diff(tt.want, stdout); code != tt.code || diff != "" || !strings.Contains(stderr, tt.stderr) {
			t.Errorf("%q: exit code %d, want %d\n%s(-want +got):\n%s", tt.args, code, tt.code, stderr, diff)
		}
	}
	code, stdout, stderr := observe(t, store, "locks/build", func() { hold(t, store, "locks/build", "job-7") },
		"list", "locks/*", "secret", "--observe", "300ms", "-o", "template={{.name}} {{.held}} {{.renewals}}")
	if diff := cmp.Diff("locks/build true 1\nlocks/deploy  0\n", stdout); code != 4 || diff != "" || !strings.Contains(stderr, "observing 2 locks for 300ms") {
		t.Errorf("exit code %d: %s(-want +got):\n%s", code, stderr, diff)
	}
}

// TestBreakAnother: a lock is not broken if it gets another holder after the first was shown.
func TestBreakAnother(t *testing.T) {
	store := emulator.Start(t)
	hold(t, store, "build", "job-7")
	store.Intercept(func(r emulator.Request) emulator.Action {
		if r.Verb() == wire.VerbVDel {
			store.Intercept(nil)
			_, _ = store.Set("build", "job-8")
		}
		return emulator.Action{}
	})
	code, stdout, stderr := run(t, store.URL(), "break", "build", "--yes")
	if code != 1 || stdout != "" || !strings.Contains(stderr, `lock "build" is no longer held by "job-7": nothing was deleted`) || !strings.Contains(stderr, "try: sscli lock status build") {
		t.Errorf("code %d, %q, %q", code, stdout, stderr)
	}
}
