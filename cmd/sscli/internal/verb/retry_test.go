package verb_test

import (
	"strings"
	"sync/atomic"
	"testing"

	"github.com/sscli/sscli/cmd/sscli/internal/app"
	"github.com/sscli/sscli/cmd/sscli/internal/apptest"
	"github.com/sscli/sscli/cmd/sscli/internal/command/basics"
	"github.com/sscli/sscli/cmd/sscli/internal/command/ping"
	"github.com/sscli/sscli/cmd/sscli/internal/fault"
	"github.com/sscli/sscli/cmd/sscli/internal/verb"
	"github.com/sscli/sscli/emulator"
)

// run runs a command line against a store.
var run = apptest.Runner(
	app.Command{Name: "get", New: verb.Command(basics.Get)}, app.Command{Name: "set", New: verb.Command(basics.Set)},
	app.Command{Name: "scan", New: verb.Command(basics.Scan)}, app.Command{Name: "ping", New: ping.New},
)

// TestRetryFor: a request that was not sent waits up to --retry-for for the broker, unless the broker refuses for a
// permanent reason.
func TestRetryFor(t *testing.T) {
	const unavailable, badLogin = 0x88, 0x86
	for _, tt := range []struct {
		args    string
		reason  byte
		refused int32 // how many times the broker refuses a connection
		code    int
		tries   int32 // minimum number of connections; the exact number if the broker accepts one or refuses permanently
		stderr  string
	}{
		{"set a 1", unavailable, 1, fault.CodeConnection, 1, "CONNACK 0x88"},
		{"set a 1 --retry-for 1m", unavailable, 3, 0, 4, "trying again for up to 1m0s"},
		{"set a 1 --retry-for 1m", unavailable, 3, 0, 4, "the broker answers again after"},
		{"get a --retry-for 1m", unavailable, 3, 0, 4, "trying again"},
		{"get a a --retry-for 1m", unavailable, 3, 0, 4, "the broker answers again after"},
		{"scan --retry-for 1m", unavailable, 3, 0, 4, "the broker answers again after"},
		{"ping -n 1 --retry-for 1m", unavailable, 3, 0, 4, "the broker answers again after"},
		{"ping -n 1 --wait 1m", unavailable, 3, 0, 4, "trying again for up to 1m0s"},
		{"ping -n 1 --wait 1m -q", unavailable, 3, 0, 4, ""},
		{"set a 1 --retry-for 1m", badLogin, 1, fault.CodeLogin, 1, "CONNACK 0x86"},
		{"ping --wait 1m", badLogin, 1, fault.CodeLogin, 1, "CONNACK 0x86"},
		{"set a 1 --retry-for 200ms", unavailable, 1 << 20, fault.CodeConnection, 2, "no answer for"},
		{"ping --wait 200ms", unavailable, 1 << 20, fault.CodeConnection, 2, "no answer for"},
		{"get a --retry-for 0", unavailable, 0, fault.CodeUsage, 0, "--retry-for"},
		{"ping --wait -1s", unavailable, 0, fault.CodeUsage, 0, "--wait"},
	} {
		t.Run(tt.args, func(t *testing.T) {
			t.Parallel()
			store := emulator.Start(t)
			apptest.Put(t, store, "a", "1")
			var tries atomic.Int32
			store.RefuseConnect(func(string, string) byte {
				if tries.Add(1) <= tt.refused {
					return tt.reason
				}
				return 0
			})
			code, _, stderr := run(t, store.URL(), strings.Fields(tt.args)...)
			n := tries.Load()
			if code != tt.code || n < tt.tries || n != tt.tries && tt.refused < 100 || !strings.Contains(stderr, tt.stderr) || tt.stderr == "" && stderr != "" {
				t.Errorf("code %d after %d connections, want %d after %d: %q, want %q", code, n, tt.code, tt.tries, stderr, tt.stderr)
			}
		})
	}
}

// TestRetryForOneWrite: a write that was sent is not sent again, whatever its outcome.
func TestRetryForOneWrite(t *testing.T) {
	store := emulator.Start(t)
	var sent atomic.Int32
	store.Intercept(func(r emulator.Request) emulator.Action {
		if r.Verb() == "SET" {
			sent.Add(1)
			return emulator.Action{Drop: true}
		}
		return emulator.Action{}
	})
	if code, _, stderr := run(t, store.URL(), "set", "a", "1", "--retry-for", "1m", "-t", "2s"); code == 0 || sent.Load() != 1 {
		t.Errorf("code %d, sent %d times: %s", code, sent.Load(), stderr)
	}
}

// TestPingWaitsForStore: ping --wait waits until a store answers, not only a broker.
func TestPingWaitsForStore(t *testing.T) {
	store := emulator.Start(t)
	var asked atomic.Int32
	store.Intercept(func(emulator.Request) emulator.Action { return emulator.Action{Drop: asked.Add(1) <= 2} })
	code, stdout, stderr := run(t, store.URL(), "ping", "-n", "1", "--wait", "1m", "-t", "2s")
	if code != 0 || asked.Load() < 4 || !strings.Contains(stderr, "timed out; asking again for up to 1m0s") {
		t.Errorf("code %d after %d requests: %q, %q", code, asked.Load(), stdout, stderr)
	}
}
