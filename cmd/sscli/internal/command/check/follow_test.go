package check

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sscli/sscli/cmd/sscli/internal/app"
	"github.com/sscli/sscli/cmd/sscli/internal/apptest"
	"github.com/sscli/sscli/cmd/sscli/internal/config"
	"github.com/sscli/sscli/emulator"
	"github.com/sscli/sscli/internal/files"
)

// TestPasswordFileAway: once the broker was asked, a password file that is away for a moment is tried again, as a
// refused login is.
func TestPasswordFileAway(t *testing.T) {
	t.Parallel()
	store := emulator.Start(t, emulator.Options{CheckLogin: emulator.Passwords(map[string]string{"ann": "new"})})
	password := filepath.Join(t.TempDir(), "password")
	write := func(text string) {
		t.Helper()
		if err := files.RetryBusy(func() error { return os.WriteFile(password, []byte(text), 0o600) }); err != nil {
			t.Fatal(err)
		}
	}
	write("old")
	a := apptest.NewApp([]app.Command{{Name: "check", New: New}}, nil, os.Stdout, os.Stderr)
	a.Settings = config.Settings{Address: store.Addr().String(), Username: "ann", PasswordFile: password, Timeout: time.Minute}
	v := newView("site", nil, nil, time.Minute, false, true)
	ctx, stop := context.WithCancel(t.Context())
	logged, ended := make(chan string), make(chan error, 1)
	m := &monitor{views: []*view{v}, apps: []*app.App{a}, pause: time.Millisecond, now: time.Now,
		log: func(text string, args ...any) {
			select {
			case logged <- fmt.Sprintf(text, args...):
			case <-ctx.Done():
			}
		}}
	go func() { ended <- m.follow(ctx, a, v, true) }()
	await := func(want string) {
		t.Helper()
		for {
			select {
			case text := <-logged:
				t.Log(text)
				if strings.Contains(text, want) {
					return
				}
			case err := <-ended:
				t.Fatalf("ended before %q: %v", want, err)
			}
		}
	}
	await("trying again")
	if err := files.RetryBusy(func() error { return os.Remove(password) }); err != nil { // it may be being read
		t.Fatal(err)
	}
	await("open " + password)
	write("new")
	for up := false; !up; {
		v.mu.Lock()
		up = v.broker.err == nil
		v.mu.Unlock()
		select {
		case <-logged:
		case err := <-ended:
			t.Fatalf("ended before the login: %v", err)
		case <-time.After(time.Millisecond):
		}
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// TestRefusedWatch: that a key may not be watched is logged, and it is asked for again only after a pause, while the
// others are watched.
func TestRefusedWatch(t *testing.T) {
	t.Parallel()
	const pause = 200 * time.Millisecond
	asked := make(chan time.Time, 100)
	store := emulator.Start(t, emulator.Options{Policy: emulator.PolicyFunc(func(a emulator.Access) bool {
		refused := a.Method == emulator.Read && a.On == "secret"
		if refused {
			select {
			case asked <- time.Now():
			default:
			}
		}
		return !refused
	})})
	a := apptest.NewApp([]app.Command{{Name: "check", New: New}}, nil, os.Stdout, os.Stderr)
	a.Settings = config.Settings{Address: store.Addr().String(), Timeout: time.Minute}
	v := newView("site", nil, []*spec{{kind: aKey, target: "open"}, {kind: aKey, target: "secret"}}, time.Minute, false, false)
	ctx, stop := context.WithCancel(t.Context())
	logged, ended := make(chan string, 100), make(chan error, 1)
	m := &monitor{views: []*view{v}, apps: []*app.App{a}, noWrite: true, pause: time.Minute, refuse: pause, now: time.Now,
		log: func(text string, args ...any) {
			select {
			case logged <- fmt.Sprintf(text, args...):
			default:
			}
		}}
	go func() { ended <- m.follow(ctx, a, v, true) }()
	if text := <-logged; !strings.HasPrefix(text, "site: secret cannot be watched: ") || !strings.HasSuffix(text, "; trying again in 200ms") {
		t.Errorf("%q", text)
	}
	first := <-asked
	for text := range logged { // of the next time
		if strings.Contains(text, "secret cannot be watched") {
			break
		}
	}
	last := first
	for len(asked) > 0 {
		last = <-asked
	}
	if last.Sub(first) < pause {
		t.Errorf("asked again after %v", last.Sub(first))
	}
	apptest.Put(t, store, "open", "1")
	for found := false; !found; {
		v.mu.Lock()
		found = v.seen[v.specs[0]].found
		v.mu.Unlock()
		select {
		case err := <-ended:
			t.Fatal(err)
		case <-time.After(time.Millisecond):
		}
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
