package format

import (
	"bytes"
	"testing"
	"time"

	"github.com/sscli/sscli/internal/wire"
)

// sameAsTree checks that a result prints the same as its tree of fields.
func sameAsTree(t *testing.T, r Result) {
	t.Helper()
	var out bytes.Buffer
	p, err := New(&out, Options{Output: "json"})
	if err == nil {
		err = p.Print(r)
	}
	if err != nil {
		t.Fatal(err)
	}
	if want := string(appendObject(nil, collect(r))) + "\n"; out.String() != want {
		t.Errorf("%#v\nprints   %sits tree %s", r, out.String(), want)
	}
}

func TestTree(t *testing.T) {
	for _, results := range samples() {
		for _, r := range results {
			sameAsTree(t, r)
		}
	}
}

// FuzzTree checks that JSON written field by field equals the JSON of the tree.
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
		sameAsTree(t, Get{Key: key, Found: has, Value: value, Version: v, RTT: time.Duration(n)})
		sameAsTree(t, Set{Key: key, Applied: has, Reason: op, Version: v, RTT: time.Duration(n)})
		sameAsTree(t, Event{Op: op, Key: key, Version: v, Time: at, Value: value, HasValue: has, Word: key, Continuity: op, From: at, To: at.Add(time.Duration(n)), Message: key})
		if got, want := string(appendJSON(nil, v)), string(appendObject(nil, collect(versionFields{v}))); got != want {
			t.Errorf("version %s, its tree %s", got, want)
		}
	})
}
