package verb

import (
	"strings"
	"testing"
	"time"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/cmd/sscli/internal/app"
	"github.com/sscli/sscli/cmd/sscli/internal/config"
	"github.com/sscli/sscli/emulator"
)

// TestChanged: a key is not written if another client wrote, rewrote with the same value, deleted or created it after
// it was read.
func TestChanged(t *testing.T) {
	server := emulator.Start(t, emulator.Options{})
	s, err := client.Dial(t.Context(), client.Options{Address: server.Addr().String()})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	a := &app.App{Settings: config.Settings{Timeout: time.Minute}}
	set := func(key, value string) {
		if _, err := s.Set(t.Context(), key, []byte(value), client.SetOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	for _, key := range []string{"written", "same", "deleted"} {
		set(key, "old")
	}
	for key, change := range map[string]func(){
		"written": func() { set("written", "new") },
		"same":    func() { set("same", "old") },
		"created": func() { set("created", "new") },
		"deleted": func() {
			if _, err := s.Del(t.Context(), "deleted", client.WriteOptions{}); err != nil {
				t.Fatal(err)
			}
		},
	} {
		before, err := ReadKey(t.Context(), a, s, key)
		if err != nil {
			t.Fatal(err)
		}
		change()
		w := Replacement{App: a, Session: s, Key: key, Before: StateOf(before)}
		w.Changed = func(now client.GetResult) error { return NotWritten(key, now, "meanwhile") }
		err = w.Set(t.Context(), "mine", client.SetOptions{})
		if err == nil || !strings.HasPrefix(err.Error(), key+" ") || !strings.HasSuffix(err.Error(), " meanwhile, nothing was written") {
			t.Errorf("%s: %v", key, err)
		}
		now, err := s.Get(t.Context(), key)
		if err != nil || string(now.Value) == "mine" {
			t.Errorf("%s: %q, %v", key, now.Value, err)
		}
	}
}
