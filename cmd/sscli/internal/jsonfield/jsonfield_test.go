package jsonfield

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestDiff(t *testing.T) {
	for _, tt := range []struct {
		old, now string
		want     []string // path, old and new value of each change
	}{
		{`{"config":{"mode":"auto","n":1}}`, `{"config":{"n":1,"mode":"manual"}}`, []string{`.config.mode`, `"auto"`, `"manual"`}},
		{`{"a":1}`, `{"a":1.0}`, []string{`.a`, `1`, `1.0`}},
		{`{"a":12345678901234567890}`, `{"a":12345678901234567891}`, []string{`.a`, `12345678901234567890`, `12345678901234567891`}},
		{`{"list":[1,2,3]}`, `{"list":[1,5]}`, []string{`.list[1]`, `2`, `5`, `.list[2]`, `3`, ``}},
		{`[]`, `[null]`, []string{`.[0]`, ``, `null`}},
		{`{"a":null}`, `{}`, []string{`.a`, `null`, ``}},
		{`{"a":{"b":1}}`, `{"a":[{"b":1}]}`, []string{`.a`, `{"b":1}`, `[{"b":1}]`}},
		{`{"odd name":1,"":2,"é":3}`, `{"odd name":2,"":3,"é":4}`, []string{`.[""]`, `2`, `3`, `.["odd name"]`, `1`, `2`, `.é`, `3`, `4`}},
		{`"a"`, `"<b>"`, []string{`.`, `"a"`, `"<b>"`}},
		{" { \"a\" : [ 1 , {} ] } ", `{"a":[1,{}]}`, nil},
		{`{"a":1,"a":2}`, `{"a":2}`, nil},
	} {
		old, ok := Parse([]byte(tt.old))
		now, ok2 := Parse([]byte(tt.now))
		if !ok || !ok2 {
			t.Fatalf("%s, %s: not JSON", tt.old, tt.now)
		}
		var got []string
		for _, c := range Diff(old, now) {
			got = append(got, c.Path.String(), c.Old.String(), c.New.String())
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s, %s (-want +got):\n%s", tt.old, tt.now, diff)
		}
	}
}

func TestParse(t *testing.T) {
	for _, text := range []string{"", " ", "a", "{", `{"a":1} x`, `{"a":1}{}`, "\"\xff\"", `{'a':1}`, "01"} {
		if v, ok := Parse([]byte(text)); ok || v.Exists() {
			t.Errorf("%q is taken for JSON: %s", text, v)
		}
	}
}

func TestAt(t *testing.T) {
	v, _ := Parse([]byte(`{"config":{"mode":"auto","list":[1,{"x":null}]},"odd name":true}`))
	for path, want := range map[string]string{
		".":                      v.String(),
		".config.mode":           `"auto"`,
		".config.list[0]":        `1`,
		".config.list[1].x":      `null`,
		`.["odd name"]`:          `true`,
		`.["config"]["mode"]`:    `"auto"`,
		".config.list[2]":        ``,
		".config.list.x":         ``,
		".config.mode.deeper":    ``,
		".config[0]":             ``,
		".missing.altogether[3]": ``,
	} {
		p, err := ParsePath(path)
		if err != nil {
			t.Fatal(err)
		}
		if got := v.At(p); got.String() != want || got.Exists() != (want != "") {
			t.Errorf("%s: got %q, want %q", path, got, want)
		}
	}
}

// TestParsePathWithoutDot: a path may begin with a bracket.
func TestParsePathWithoutDot(t *testing.T) {
	for text, want := range map[string]string{"[0]": ".[0]", `["odd name"].x`: `.["odd name"].x`} {
		if p, err := ParsePath(text); err != nil || p.String() != want {
			t.Errorf("%s: %v, %v; want %s", text, p, err, want)
		}
	}
}

func TestParsePathErrors(t *testing.T) {
	for text, want := range map[string]string{
		"":          "the path is empty: expected one such as .config.mode, or a dot for the whole value",
		"mode":      `byte 0: expected .name, [number] or ["name"], as in .config.mode or .list[2]`,
		"[0":        `byte 0: expected .name, [number] or ["name"], as in .config.mode or .list[2]`,
		".a..b":     `byte 2: expected .name, [number] or ["name"], as in .config.mode or .list[2]`,
		".a[01]":    `byte 2: expected .name, [number] or ["name"], as in .config.mode or .list[2]`,
		".a[-1]":    `byte 2: expected .name, [number] or ["name"], as in .config.mode or .list[2]`,
		".a[":       `byte 2: expected .name, [number] or ["name"], as in .config.mode or .list[2]`,
		`.a["b]`:    `byte 2: expected .name, [number] or ["name"], as in .config.mode or .list[2]`,
		`.a["b"`:    `byte 2: expected .name, [number] or ["name"], as in .config.mode or .list[2]`,
		`.a["\q"]`:  `byte 2: expected .name, [number] or ["name"], as in .config.mode or .list[2]`,
		".a b":      `byte 2: expected .name, [number] or ["name"], as in .config.mode or .list[2]`,
		".a.":       `byte 2: expected .name, [number] or ["name"], as in .config.mode or .list[2]`,
		".a[9e9]":   `byte 2: expected .name, [number] or ["name"], as in .config.mode or .list[2]`,
		".a[1]\xff": `byte 5: expected .name, [number] or ["name"], as in .config.mode or .list[2]`,
	} {
		if p, err := ParsePath(text); err == nil || err.Error() != want {
			t.Errorf("%q: %v, %v; want %s", text, p, err, want)
		}
	}
}

// FuzzPath checks that a path survives writing and parsing.
func FuzzPath(f *testing.F) {
	for _, text := range []string{".", ".config.mode", ".list[2]", `.["odd name"]`, `.a["\u0000\"]"][0]`, ".[0][1].é"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, err := ParsePath(text)
		if err != nil {
			return
		}
		again, err := ParsePath(p.String())
		if err != nil || again.String() != p.String() || len(again) != len(p) {
			t.Fatalf("%q is written as %q, which is read as %q, %v", text, p, again, err)
		}
		for i := range p {
			if p[i] != again[i] {
				t.Errorf("%q is written as %q, which is read as %q", text, p, again)
			}
		}
	})
}

// FuzzDiff checks that applying the changes to one value gives the other, and that a value does not differ from itself.
func FuzzDiff(f *testing.F) {
	f.Add(`{"config":{"mode":"auto","n":[1,2]},"x":1.0}`, `{"config":{"mode":"manual","n":[1]},"y":1e0}`)
	f.Add(`[1,{"a":[]},null]`, `[1,{"a":[[]]},"null",{}]`)
	f.Add(`{}`, `[]`)
	f.Fuzz(func(t *testing.T, a, b string) {
		old, ok := Parse([]byte(a))
		now, ok2 := Parse([]byte(b))
		if !ok || !ok2 {
			return
		}
		if same := Diff(old, old); len(same) > 0 {
			t.Errorf("%s differs from itself: %v", a, same)
		}
		changes := Diff(old, now)
		for _, c := range changes {
			if got := old.At(c.Path); !Equal(got, c.Old) {
				t.Errorf("%s at %s: got %s, and the change says %s", a, c.Path, got, c.Old)
			}
			if got := now.At(c.Path); !Equal(got, c.New) {
				t.Errorf("%s at %s: got %s, and the change says %s", b, c.Path, got, c.New)
			}
			if read, err := ParsePath(c.Path.String()); err != nil || read.String() != c.Path.String() {
				t.Errorf("%s is read as %s, %v", c.Path, read, err)
			}
		}
		patched, _ := Parse([]byte(a))
		for _, c := range changes {
			patched = patch(patched, c.Path, c.New)
		}
		patched = trim(patched)
		if !Equal(patched, now) {
			t.Errorf("%s to %s: %v leads to %s", a, b, changes, patched)
		}
	})
}

// removed marks an element that patch has removed from an array.
type removed struct{}

// patch returns v with the field at p replaced. Removed elements leave a mark for trim.
func patch(v Value, p Path, field Value) Value {
	if len(p) == 0 {
		return field
	}
	s := p[0]
	switch parent := v.v.(type) {
	case map[string]any:
		name := s.(string)
		inner, here := parent[name]
		got := patch(Value{inner, here}, p[1:], field)
		if !got.here {
			delete(parent, name)
		} else {
			parent[name] = got.v
		}
	case []any:
		i := s.(int)
		for len(parent) <= i {
			parent = append(parent, removed{})
		}
		got := patch(Value{parent[i], true}, p[1:], field)
		if !got.here {
			parent[i] = removed{}
		} else {
			parent[i] = got.v
		}
		v.v = parent
	}
	return v
}

// trim removes the marks that patch left.
func trim(v Value) Value {
	switch parent := v.v.(type) {
	case map[string]any:
		for name, inner := range parent {
			parent[name] = trim(Value{inner, true}).v
		}
	case []any:
		var kept = []any{}
		for _, inner := range parent {
			if _, gone := inner.(removed); !gone {
				kept = append(kept, trim(Value{inner, true}).v)
			}
		}
		v.v = kept
	}
	return v
}
