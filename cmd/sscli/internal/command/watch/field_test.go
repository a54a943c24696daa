package watch_test

import (
	"context"
	"regexp"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sscli/sscli/emulator"
)

// TestWatchFieldBreaks breaks the connection of watch --field twice. After a break that proves
// that nothing happened, a field that is the same is not news; after a gap it is.
func TestWatchFieldBreaks(t *testing.T) {
	t.Parallel()
	store := emulator.Start(t)
	put := func(value string) {
		t.Helper()
		if _, err := store.Set("cfg", value); err != nil {
			t.Fatal(err)
		}
	}
	put(`{"mode":"auto"}`)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	await := func(reached func(emulator.State) bool) {
		t.Helper()
		if err := store.Await(ctx, reached); err != nil {
			t.Fatal(err)
		}
	}
	type result struct {
		code           int
		stdout, stderr string
	}
	ended := make(chan result, 1)
	go func() {
		code, stdout, stderr := runWatch(t, store, "cfg", "--field", ".mode", "-n", "2")
		ended <- result{code, stdout, stderr}
	}()
	// A watch asks for a key, and then reads it: two requests.
	read := 2
	await(func(s emulator.State) bool { return s.Replies == read && s.Registrations == 1 })
	put(`{"mode":"auto","n":1}`)
	await(func(s emulator.State) bool { return s.Notifications == 1 })
	store.DropAll()
	read += 2
	await(func(s emulator.State) bool { return s.Replies == read && s.Registrations == 1 })
	put(`{"mode":"manual"}`)
	await(func(s emulator.State) bool { return s.Notifications == 2 })
	store.RefuseConnect(func(string, string) byte { return 0x88 })
	store.DropAll()
	await(func(s emulator.State) bool { return s.Clients == 0 })
	put(`{"mode":"manual","n":2}`)
	store.RefuseConnect(nil)
	read += 2
	await(func(s emulator.State) bool { return s.Replies == read && s.Registrations == 1 })
	put(`{"mode":"end"}`)
	got := <-ended
	want := `initial	cfg	V	-	"auto"
set	cfg	V	"auto"	"manual"
gap	cfg	lost	T	T
resync	cfg	V	"manual"	"manual"
set	cfg	V	"manual"	"end"
end	count
`
	stdout := regexp.MustCompile(`\d{13}:\d+:StateStore`).ReplaceAllString(got.stdout, "V")
	stdout = regexp.MustCompile(`\d{4}-\S+Z`).ReplaceAllString(stdout, "T")
	if diff := cmp.Diff(want, stdout); diff != "" || got.code != 0 {
		t.Errorf("exit code %d (-want +got):\n%s%s", got.code, diff, got.stderr)
	}
}
