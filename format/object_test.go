package format

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sscli/sscli/client/wire"
)

// sameInTemplate checks that a template gets the fields that the json output has.
func sameInTemplate(t *testing.T, r Result) {
	t.Helper()
	var printed, got any
	for output, to := range map[string]*any{"json": &printed, "template={{json .}}": &got} {
		line := render(t, Options{Output: output}, r)
		if err := json.Unmarshal([]byte(line), to); err != nil {
			t.Fatalf("%s: %q: %v", output, line, err)
		}
	}
	if diff := cmp.Diff(printed, got); diff != "" {
		t.Errorf("%#v: (-json +template)\n%s", r, diff)
	}
}

// FuzzTree checks that the json output is valid, and has the fields that a template gets.
func FuzzTree(f *testing.F) {
	f.Add("setpoint", []byte("21.5"), "1696374425000:1:StateStore", "set", int64(1), true)
	f.Add("\xff", []byte("\"\\\n\xe2\x80\xae"), "-1:00002:\"\\", "gap", int64(-5_000_000), false)
	f.Add("", []byte{}, "9223372036854775807:2:\xff", "unaudited", int64(1)<<62, true)
	f.Fuzz(func(t *testing.T, key string, value []byte, version, op string, n int64, has bool) {
		v, err := wire.ParseVersion(version)
		if err != nil {
			return
		}
		at := time.UnixMicro(n % 4e15)
		sameInTemplate(t, Get{Key: key, Found: has, Value: value, Version: v, RTT: time.Duration(n)})
		sameInTemplate(t, Set{Key: key, Applied: has, Reason: op, Version: v, RTT: time.Duration(n)})
		sameInTemplate(t, Event{Op: op, Key: key, Version: v, Time: at, Value: value, HasValue: has, Word: key, Continuity: op, From: at, To: at.Add(time.Duration(n)), Message: key})
		if got, want := string(appendJSON(nil, v)), string(appendObject(nil, collect(versionFields{v}))); got != want {
			t.Errorf("version %s, its tree %s", got, want)
		}
	})
}
