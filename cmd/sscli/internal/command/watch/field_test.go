package watch_test

import (
	"context"
	"io"
	"regexp"
	"testing"
	"time"

	"github.com/sscli/sscli/cmd/sscli/internal/app"
	"github.com/sscli/sscli/cmd/sscli/internal/apptest"
	"github.com/sscli/sscli/cmd/sscli/internal/command/watch"
	"github.com/sscli/sscli/emulator"
)

// TestWatchFieldBreaks breaks the connection of watch --field twice. If watch can prove that it missed nothing, an
// unchanged field is not reported again; after a gap it is.
func TestWatchFieldBreaks(t *testing.T) {
	t.Parallel()
	store := emulator.Start(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	await := func(reached func(emulator.State) bool) {
		t.Helper()
		if err := store.Await(ctx, reached); err != nil {
			t.Fatal(err)
		}
	}
	apptest.Put(t, store, "cfg", `{"mode":"auto"}`)
	apptest.Put(t, store, "mark", `{"mode":1}`)
	w := apptest.Start(t, []app.Command{{Name: "watch", New: watch.New}}, map[string]string{"SSCLI_URL": store.URL()},
		"watch", "cfg", "mark", "--field", ".mode", "-n", "3")
	version, at := regexp.MustCompile(`\d{13}:\d+:StateStore`), regexp.MustCompile(`\d{4}-\S+Z`)
	printed := func(want string) {
		t.Helper()
		line, err := w.Stdout.ReadString('\n')
		line = at.ReplaceAllString(version.ReplaceAllString(line, "V"), "T")
		if err != nil || line != want+"\n" {
			t.Fatalf("watch printed %q, %v; want %q", line, err, want)
		}
	}
	printed(`initial	cfg	V	-	"auto"`)
	printed(`initial	mark	V	-	1`)

	// The line about mark proves that watch has already seen the change of cfg.
	apptest.Put(t, store, "cfg", `{"mode":"auto","n":1}`)
	apptest.Put(t, store, "mark", `{"mode":2}`)
	printed(`set	mark	V	1	2`)
	store.DropAll()
	// Each key is registered and then read: eight requests over both connections.
	await(func(s emulator.State) bool { return s.Replies == 8 })
	apptest.Put(t, store, "cfg", `{"mode":"manual"}`)
	printed(`set	cfg	V	"auto"	"manual"`)

	store.RefuseConnect(func(string, string) byte { return 0x88 })
	store.DropAll()
	await(func(s emulator.State) bool { return s.Clients == 0 })
	apptest.Put(t, store, "cfg", `{"mode":"manual","n":2}`)
	store.RefuseConnect(nil)
	printed(`gap	cfg	lost	T	T`)
	printed(`resync	cfg	V	"manual"	"manual"`)
	apptest.Put(t, store, "cfg", `{"mode":"end"}`)
	printed(`set	cfg	V	"manual"	"end"`)
	printed(`end	count`)
	if rest, err := io.ReadAll(w.Stdout); len(rest) > 0 || err != nil {
		t.Errorf("watch printed %q, %v after the end", rest, err)
	}
	if code, stderr := w.Wait(t); code != 0 {
		t.Errorf("exit code %d:\n%s", code, stderr)
	}
}
