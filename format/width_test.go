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
		case n < columns-1 && got != text: // a wide character may leave one column empty
			t.Errorf("Cut(%q, %d) = %q has only %d columns", text, columns, got, n)
		}
	})
}

func TestCutMiddle(t *testing.T) {
	for _, test := range []struct {
		text    string
		columns int
		want    string
	}{
		{"short", 10, "short"},
		{"plants/berlin/line-1/setpoint", 15, "plants/…etpoint"},
		{"plants/berlin/line-2/setpoint", 12, "plant…tpoint"},
		{"日本語日本語", 7, "日…本語"},
		{"abcdef", 2, "a…"},
		{"abcdef", 0, ""},
		{"aaaae\u0301bb", 5, "aa…bb"},
	} {
		got := CutMiddle(test.text, test.columns)
		if got != test.want || Columns(got) > test.columns {
			t.Errorf("CutMiddle(%q, %d) = %q, want %q", test.text, test.columns, got, test.want)
		}
	}
}

func FuzzCutMiddle(f *testing.F) {
	f.Add("plants/berlin/line-1/setpoint", uint8(15))
	f.Add("e\u0301日", uint8(3))
	f.Fuzz(func(t *testing.T, text string, columns uint8) {
		text = printable(text)
		got := CutMiddle(text, int(columns))
		if Columns(got) > int(columns) || Columns(text) <= int(columns) && got != text {
			t.Errorf("CutMiddle(%q, %d) = %q", text, columns, got)
		}
	})
}
