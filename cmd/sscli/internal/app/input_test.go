package app

import "testing"

func TestPattern(t *testing.T) {
	for key, want := range map[string]string{
		"a": "", "a/b": "", "C#": "", "a#/b": "", "#/b": "", "1+1": "", "": "",
		"a*": "a*", "a?/b": "a?/b",
		"#": "*", "a/#": "a/*", "a/+/c": "a/*/c", "+": "*", "+/+/#": "*/*/*", "a/+/b*": "a/*/b*",
	} {
		if got := Pattern(key); got != want {
			t.Errorf("%q: %q, want %q", key, got, want)
		}
	}
}
