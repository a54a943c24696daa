package ping_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sscli/sscli/cmd/sscli/internal/app"
	"github.com/sscli/sscli/cmd/sscli/internal/apptest"
	"github.com/sscli/sscli/cmd/sscli/internal/command/ping"
	"github.com/sscli/sscli/cmd/sscli/internal/fault"
	"github.com/sscli/sscli/emulator"
	"github.com/sscli/sscli/format"
)

// run runs ping against a store; nil = none.
var run = apptest.Runner(app.Command{Name: "ping", New: ping.New})

func TestSummary(t *testing.T) {
	var hundred []time.Duration
	for i := range 100 {
		hundred = append(hundred, time.Duration(100-i)*time.Millisecond)
	}
	const ms = time.Millisecond
	for _, tt := range []struct {
		sent     int
		answered []time.Duration
		want     format.PingSummary
	}{
		{3, nil, format.PingSummary{Sent: 3, Lost: 3}},
		{2, []time.Duration{4 * ms}, format.PingSummary{Sent: 2, Lost: 1, Min: 4 * ms, Avg: 4 * ms, Max: 4 * ms, P99: 4 * ms}},
		{100, hundred, format.PingSummary{Sent: 100, Min: ms, Avg: 50500 * time.Microsecond, Max: 100 * ms, P99: 99 * ms}},
	} {
		if diff := cmp.Diff(tt.want, ping.Summary(tt.sent, tt.answered)); diff != "" {
			t.Errorf("%d sent (-want +got):\n%s", tt.sent, diff)
		}
	}
}

// TestRefusal: a refusal by the store counts as a reply.
func TestRefusal(t *testing.T) {
	server := emulator.Start(t, emulator.Options{Policy: emulator.PolicyFunc(func(a emulator.Access) bool { return a.On != ping.Key })})
	code, stdout, stderr := run(t, server.URL(), "-n", "2", "--interval", "0")
	if code != 0 || strings.Count(stdout, "\n") != 3 || stderr != "" {
		t.Errorf("%d, %q, %q, want two replies and a summary", code, stdout, stderr)
	}
}

func TestFlags(t *testing.T) {
	for _, args := range [][]string{{"-n", "0"}, {"--interval", "-1s"}, {"--interval", "5"}, {"x"}} {
		if code, stdout, _ := run(t, "", args...); code != fault.CodeUsage || stdout != "" {
			t.Errorf("%q: %d, %q, want a usage error", args, code, stdout)
		}
	}
}
