package format

import (
	"testing"
)

func TestWidth(t *testing.T) {
	for want, text := range []string{
		0: "\u0301\u20dd\u1161\u11a8",
		1: "aé~ßЖא☎❤ｱ€\u00a0",
		2: "日語ひカ한！\u3000⌚😀🀄",
	} {
		for _, r := range text {
			if got := Width(r); got != want {
				t.Errorf("%U: got %d, want %d", r, got, want)
			}
		}
	}
}

func TestCut(t *testing.T) {
	for _, tt := range []struct {
		text    string
		columns int
		want    string
	}{
		{"abc", 3, "abc"},
		{"abcd", 3, "ab…"},
		{"日本", 4, "日本"},
		{"日本", 3, "日…"},
		{"日本語", 4, "日…"},
		{"日本語", 5, "日本…"},
		{"e\u0301e\u0301", 2, "e\u0301e\u0301"},
		{"e\u0301e\u0301x", 2, "e\u0301…"},
		{"abc", 1, "…"},
		{"abc", 0, ""},
		{"", 0, ""},
	} {
		if got := Cut(tt.text, tt.columns); got != tt.want {
			t.Errorf("Cut(%q, %d) = %q, want %q", tt.text, tt.columns, got, tt.want)
		}
	}
}

func FuzzCut(f *testing.F) {
	f.Add("日本語 e\u0301 text", 5)
	f.Fuzz(func(t *testing.T, text string, columns int) {
		text = Escape(text)
		got := Cut(text, columns)
		switch n := Columns(got); {
		case n > max(columns, 0):
			t.Errorf("Cut(%q, %d) = %q has %d columns", text, columns, got, n)
		case Columns(text) <= columns && got != text:
			t.Errorf("Cut(%q, %d) = %q, but it fits", text, columns, got)
		case n < columns-1 && got != text: // a wide character may leave one column
			t.Errorf("Cut(%q, %d) = %q has only %d columns", text, columns, got, n)
		}
	})
}
