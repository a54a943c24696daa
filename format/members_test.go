package format

import (
	"bytes"
	"testing"
	"time"

	"github.com/sscli/sscli/client/wire"
)

// streamedAsTree holds that a result prints the same as its tree of fields.
func streamedAsTree(t *testing.T, r Result) {
	t.Helper()
	var out bytes.Buffer
	p, err := New(&out, Options{Output: "json"})
	if err == nil {
		err = p.Print(r)
	}
	if err != nil {
		t.Fatal(err)
	}
	if want := string(appendObject(nil, r.fields())) + "\n"; out.String() != want {
		t.Errorf("%#v\nprints   %sits tree %s", r, out.String(), want)
	}
}

func TestStreamed(t *testing.T) {
	found := 0
	for _, results := range samples() {
		for _, r := range results {
			if _, ok := r.(streamed); ok {
				found++
				streamedAsTree(t, r)
			}
		}
	}
	if found == 0 {
		t.Error("no sample is streamed")
	}
}

// FuzzStreamed has the tree of fields, in which all other results are written, judge those that
// are streamed.
func FuzzStreamed(f *testing.F) {
	f.Add("setpoint", []byte("21.5"), "1696374425000:1:StateStore", "set", int64(1), true)
	f.Add("\xff", []byte("\"\\\n\xe2\x80\xae"), "-1:00002:\"\\", "gap", int64(-5_000_000), false)
	f.Add("", []byte{}, "9223372036854775807:2:\xff", "unaudited", int64(1)<<62, true)
	f.Fuzz(func(t *testing.T, key string, value []byte, version, op string, n int64, has bool) {
		v, err := wire.ParseVersion(version)
		if err != nil {
			return
		}
		at := time.UnixMicro(n % 4e15)
		streamedAsTree(t, Get{Key: key, Found: has, Value: value, Version: v, RTT: time.Duration(n)})
		streamedAsTree(t, Set{Key: key, Applied: has, Reason: op, Version: v, RTT: time.Duration(n)})
		streamedAsTree(t, Event{Op: op, Key: key, Version: v, Time: at, Value: value, HasValue: has, Word: key, Continuity: op, From: at, To: at.Add(time.Duration(n)), Message: key})
		if got, want := string(appendVersionObject(nil, v)), string(appendObject(nil, versionObject(v))); got != want {
			t.Errorf("version %s, its tree %s", got, want)
		}
	})
}
