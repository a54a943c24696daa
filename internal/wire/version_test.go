package wire_test

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/sscli/sscli/internal/wire"
)

func mustVersion(t testing.TB, text string) wire.Version {
	t.Helper()
	v, err := wire.ParseVersion(text)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestVersionErrorsSayWhatWasExpected(t *testing.T) {
	const form = "WALLMS:COUNTER:NODE, as in 1696374425000:0:node-1"
	tests := []struct{ text, want string }{
		{"", form},
		{"node", form},
		{"1:2", form},
		{"1:2:3:4", form},
		{strings.Repeat(":", 100_000), form},
		{"a:0:n", "the wall clock in milliseconds, a 64-bit integer, before the first colon"},
		{"9223372036854775808:0:n", "the wall clock in milliseconds, a 64-bit integer, before the first colon"},
		{"::", "the wall clock in milliseconds, a 64-bit integer, before the first colon"},
		{"1::n", "a counter of 0 to 2^64-1 between the colons"},
		{"1:-1:n", "a counter of 0 to 2^64-1 between the colons"},
		{strings.Repeat("0", 20) + "1:0:n", "the wall clock in milliseconds, a 64-bit integer, before the first colon"},
		{"1:" + strings.Repeat("0", 20) + "1:n", "a counter of 0 to 2^64-1 between the colons"},
		{"1:18446744073709551616:n", "a counter of 0 to 2^64-1 between the colons"},
	}
	for _, test := range tests {
		for name, parse := range map[string]func(string) (wire.Version, error){"ParseVersion": wire.ParseVersion, "ParseToken": wire.ParseToken} {
			v, err := parse(test.text)
			if diff := gocmp.Diff(fmt.Sprintf("bad HLC %.80q: expected %s", test.text, test.want), fmt.Sprint(err)); diff != "" || v != (wire.Version{}) {
				t.Errorf("%s(%.80q): got %+v and an error (-want +got):\n%s", name, test.text, v, diff)
			}
			if len(err.Error()) > 250 {
				t.Errorf("%s(%.80q): the error has %d bytes", name, test.text, len(err.Error()))
			}
		}
	}
}

func TestTokensThatLookLikeASlipAreRefused(t *testing.T) {
	const (
		sign  = "a wall clock and a counter without a sign"
		node  = "a node after the second colon"
		chars = "a node of printable characters without spaces"
	)
	tests := []struct{ text, want string }{
		{"-1:0:n", sign},
		{"-0:0:n", sign},
		{"+1:0:n", sign},
		{"1:0:", node},
		{"1:0: n", chars},
		{"1:0:n ", chars},
		{"1:0:n\n", chars},
		{"1:0:\x00", chars},
		{"1:0:\x7f", chars},
		{"1:0:\u200b", chars},
		{"1:0:\u00a0", chars},
		{"1:0:\xff", chars},
	}
	for _, test := range tests {
		v, err := wire.ParseToken(test.text)
		if diff := gocmp.Diff(fmt.Sprintf("bad HLC %.80q: expected %s", test.text, test.want), fmt.Sprint(err)); diff != "" || v != (wire.Version{}) {
			t.Errorf("%q: got %+v and an error (-want +got):\n%s", test.text, v, diff)
		}
	}
	for _, text := range []string{"0:0:n", "1696374425000:1:StateStore", "001696374425000:00001:a-b+c", "1:2:é", "9223372036854775807:18446744073709551615:n"} {
		if v, err := wire.ParseToken(text); err != nil || v.String() != text {
			t.Errorf("%q: got %v, %v", text, v, err)
		}
	}
}

func TestVersionsAreSentBackAsTheyCame(t *testing.T) {
	for _, text := range []string{"1:2:n", "+1:02:n", "00000000000000000001:2:n", "001696374425000:00001:StateStore", "0:0:"} {
		v := mustVersion(t, text)
		copied := v
		if copied.String() != text {
			t.Errorf("got %q, want %q", copied.String(), text)
		}
	}
}

func TestVersionOrderIsWallThenCounterThenNode(t *testing.T) {
	ascending := []string{
		"-9223372036854775808:18446744073709551615:z",
		"-5:0:a",
		"0:0:",
		"0:0:a",
		"9:99999:z",
		"10:0:a",
		"10:9:z",
		"10:10:B",
		"10:10:a",
		"10:10:aa",
		"10:10:\xff",
		"10:9223372036854775808:a",
		"10:18446744073709551615:a",
		"9223372036854775807:0:a",
	}
	for i, a := range ascending {
		for j, b := range ascending {
			va, vb := mustVersion(t, a), mustVersion(t, b)
			if got, want := va.Compare(vb), cmp.Compare(i, j); got != want {
				t.Errorf("Compare(%q, %q) = %d, want %d", a, b, got, want)
			}
			if va.Equal(vb) != (i == j) {
				t.Errorf("Equal(%q, %q) = %v", a, b, va.Equal(vb))
			}
		}
	}
}

func TestPaddingDoesNotCountInTheOrder(t *testing.T) {
	a, b := mustVersion(t, "1:2:n"), mustVersion(t, "000000000000001:00002:n")
	if !a.Equal(b) || a.Compare(b) != 0 || a == b {
		t.Errorf("want %q and %q equal, with a text of their own", a, b)
	}
}

func TestOnlyTheVersionOfNothingIsZero(t *testing.T) {
	var none wire.Version
	if !none.IsZero() || !mustVersion(t, "0:0:").IsZero() {
		t.Error("want the zero Version and its text zero")
	}
	for _, text := range []string{"1:0:", "0:1:", "0:0:n"} {
		if mustVersion(t, text).IsZero() {
			t.Errorf("%q is zero", text)
		}
	}
}

func TestVersionTimeIsUTC(t *testing.T) {
	got := mustVersion(t, "1696374425000:1:StateStore").Time()
	if want := time.Date(2023, 10, 3, 23, 7, 5, 0, time.UTC); got != want {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestVersionJSONIsDecidedByTheHLC(t *testing.T) {
	var v wire.Version
	if err := json.Unmarshal([]byte(`{"wall_ms":9,"counter":9,"node":"x","hlc":"1:2:n"}`), &v); err != nil || v != mustVersion(t, "1:2:n") {
		t.Errorf("got %+v, %v", v, err)
	}
}

// TestVersionJSONRoundTrip: a version survives JSON with its text, alone, behind a pointer, in a slice and in
// a map.
func TestVersionJSONRoundTrip(t *testing.T) {
	type held struct {
		V     wire.Version
		P     *wire.Version
		Slice []wire.Version
		Map   map[string]wire.Version
		Zero  wire.Version `json:",omitzero"`
	}
	for _, text := range []string{"1696374425000:1:StateStore", "001696374425000:00001:StateStore", "-5:0:", "1:18446744073709551615:\"<&\u2028", "1:2:\xff", "9223372036854775807:0:n"} {
		v := mustVersion(t, text)
		want := held{v, &v, []wire.Version{v, {}}, map[string]wire.Version{"k": v}, wire.Version{}}
		data, err := json.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		var got held
		if err := json.Unmarshal(data, &got); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%q: got %+v, %v, from %s", text, got, err, data)
		}
	}
	made := wire.Version{Wall: 1, Counter: 2, Node: "n"}
	data, err := json.Marshal(made)
	var got wire.Version
	if err := errors.Join(err, json.Unmarshal(data, &got)); err != nil || !got.Equal(made) {
		t.Errorf("got %+v, %v, from %s", got, err, data)
	}
	if _, err := json.Marshal(wire.Version{Node: "a:b"}); err == nil {
		t.Error("a node with a colon was written, and cannot be read")
	}
}

func TestVersionJSONNullLeavesTheVersion(t *testing.T) {
	held := struct{ V wire.Version }{mustVersion(t, "1:2:n")}
	if err := json.Unmarshal([]byte(`{"V":null}`), &held); err != nil || held.V.String() != "1:2:n" {
		t.Errorf("got %+v, %v", held, err)
	}
}

func TestBadVersionJSONLeavesTheVersion(t *testing.T) {
	for _, data := range []string{`{}`, `{"hlc":""}`, `{"hlc":"1:2"}`, `{"hlc":1}`, `"1:2:n"`, `[]`, `7`, `{"wall_ms":1,"counter":2,"node":"n"}`} {
		v := mustVersion(t, "1:2:n")
		if err := json.Unmarshal([]byte(data), &v); err == nil || v.String() != "1:2:n" {
			t.Errorf("%s: got %+v, %v", data, v, err)
		}
	}
}

// FuzzVersion: a version keeps its text, and its total order is that of the padded texts.
func FuzzVersion(f *testing.F) {
	f.Add("001696374425000:00001:StateStore", "1696374425000:1:StateStore")
	f.Add("1000:5:A", "1000:10:A")
	f.Add("001696374425000:00001:StateStore", "001696374425000:100001:StateStore")
	f.Add("999999999999999:999999999999999999:StateStore", "999999999999999:012345:StateStore")
	f.Add("-5:0:", "+5:18446744073709551615:\"<&\u2028")
	f.Add("9223372036854775807:0:\xff", "1:2:3:4")
	f.Add("000000000000000000001:0:n", "00000000000000000001:00000000000000000001:n")
	f.Fuzz(func(t *testing.T, textA, textB string) {
		a, err := wire.ParseVersion(textA)
		if err == nil && !a.IsZero() {
			var back wire.Version
			data, err := json.Marshal(a)
			if err := errors.Join(err, json.Unmarshal(data, &back)); err != nil || back != a {
				t.Fatalf("%q became %+v, %v, as JSON %s", textA, back, err, data)
			}
		}
		token, tokenErr := wire.ParseToken(textA)
		if err != nil {
			if err := versionError(a, err); err != nil {
				t.Fatal(err)
			}
			if tokenErr == nil {
				t.Fatalf("%q is a token but no version", textA)
			}
			return
		}
		if wall, rest, _ := strings.Cut(textA, ":"); len(wall) > 20 || strings.IndexByte(rest, ':') > 20 {
			t.Fatalf("%q has more digits than a number", textA)
		}
		if tokenErr == nil && (token != a || token.Wall < 0 || token.Node == "" || !utf8.ValidString(textA)) {
			t.Fatalf("token %+v, version %+v", token, a)
		}
		if a.String() != textA {
			t.Fatalf("%q became %q", textA, a.String())
		}
		if padded := pad(a); !mustVersion(t, padded).Equal(a) {
			t.Fatalf("%q is not %q", padded, textA)
		}

		b, err := wire.ParseVersion(textB)
		if err != nil {
			return
		}
		if a.Compare(b) != -b.Compare(a) || a.Equal(b) != (a.Compare(b) == 0) || a.Compare(a) != 0 {
			t.Fatalf("%q and %q: no order", textA, textB)
		}
		if fits(a) && fits(b) && a.Compare(b) != strings.Compare(pad(a), pad(b)) {
			t.Fatalf("%q and %q are not in the order of %q and %q", textA, textB, pad(a), pad(b))
		}
	})
}

// pad returns the padded text of a version, whatever its original text.
func pad(v wire.Version) string {
	return wire.Version{Wall: v.Wall, Counter: v.Counter, Node: v.Node}.String()
}

// fits reports whether the padding is wide enough for the order of texts.
func fits(v wire.Version) bool {
	return v.Wall >= 0 && v.Wall < int64(math.Pow10(15)) && v.Counter < 100_000
}
