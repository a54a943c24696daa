package accounts_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sscli/sscli/cmd/sscli/internal/accounts"
	"github.com/sscli/sscli/cmd/sscli/internal/app"
	"github.com/sscli/sscli/emulator"
)

// TestTokenRenewal: the token in the file is valid whenever a client reads it.
func TestTokenRenewal(t *testing.T) {
	name := filepath.Join(t.TempDir(), "token")
	synctest.Test(t, func(t *testing.T) {
		flags := accounts.Flags{Audience: "aio-internal", User: "ann"}
		_ = flags.TTL.Set("1h")
		flags.Out.Set(name)
		var o emulator.Options
		acc, err := flags.Open(&o, "", false)
		if err != nil {
			t.Fatal(err)
		}
		if err := acc.Start(&app.App{}, time.Now); err != nil {
			t.Fatal(err)
		}
		seen := make(map[string]bool)
		for range 12 { // one every 20 minutes
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			login, err := o.CheckToken([]byte(strings.TrimSpace(string(text))), time.Now())
			if err != nil || login.User != "ann" {
				t.Errorf("after %d tokens: %+v, %v", len(seen), login, err)
			}
			seen[string(text)] = true
			time.Sleep(20 * time.Minute)
			synctest.Wait()
		}
		if len(seen) != 5 { // at 0, 48, 96, 144 and 192 minutes
			t.Errorf("%d tokens in four hours, want 5", len(seen))
		}
		if err := acc.Close(); err != nil {
			t.Fatal(err)
		}
	})
}
