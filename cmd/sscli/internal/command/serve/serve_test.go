package serve

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sscli/sscli/cmd/sscli/internal/app"
	"github.com/sscli/sscli/cmd/sscli/internal/process"
	"github.com/sscli/sscli/emulator"
)

func TestEnviron(t *testing.T) {
	t.Setenv("SSCLI_HOST", "elsewhere")
	t.Setenv("SSCLI_URL", "mqtt://elsewhere")
	env := process.Environ(map[string]string{"SSCLI_URL": "mqtt://here"}, "SSCLI_HOST")
	if !slices.Contains(env, "SSCLI_URL=mqtt://here") {
		t.Error("a variable was not set")
	}
	for _, kv := range env {
		if strings.Contains(kv, "elsewhere") {
			t.Errorf("%s was left", kv)
		}
	}
}

// TestTokenRenewal: whenever somebody reads the file, its token is good.
func TestTokenRenewal(t *testing.T) {
	name := filepath.Join(t.TempDir(), "token")
	synctest.Test(t, func(t *testing.T) {
		flags := satFlags{audience: "aio-internal", user: "ann", ttl: "1h", out: "token"}
		flags.out.Set(name)
		var o emulator.Options
		acc, err := flags.open(&o, "", false)
		if err != nil {
			t.Fatal(err)
		}
		if err := acc.start(&app.App{}, time.Now); err != nil {
			t.Fatal(err)
		}
		seen := make(map[string]bool)
		for range 12 { // of 20 minutes
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			login, err := o.VerifyToken([]byte(strings.TrimSpace(string(text))), time.Now())
			if err != nil || login.User != "ann" {
				t.Errorf("after %d tokens: %+v, %v", len(seen), login, err)
			}
			seen[string(text)] = true
			time.Sleep(20 * time.Minute)
			synctest.Wait()
		}
		if len(seen) != 5 { // at 0, 48, 96, 144, 192 minutes
			t.Errorf("%d tokens in four hours, want 5", len(seen))
		}
		if err := acc.close(); err != nil {
			t.Fatal(err)
		}
	})
}
