package format

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestEscape(t *testing.T) {
	for _, tt := range []struct{ in, escaped, quoted, word string }{
		{"", "", `""`, `""`},
		{"plain", "plain", `"plain"`, "plain"},
		{"ça/1.5:a_b=c@d%e+f,g-h", "ça/1.5:a_b=c@d%e+f,g-h", `"ça/1.5:a_b=c@d%e+f,g-h"`, "ça/1.5:a_b=c@d%e+f,g-h"},
		{"two words", "two words", `"two words"`, `"two words"`},
		{"a\n\r\t\\\"", `a\n\r\t\\"`, `"a\n\r\t\\\""`, `"a\n\r\t\\\""`},
		{"\x00\x1b\x7f", `\x00\x1b\x7f`, `"\x00\x1b\x7f"`, `"\x00\x1b\x7f"`},
		{"\xff\xc3", `\xff\xc3`, `"\xff\xc3"`, `"\xff\xc3"`},
		{"\u202e\u200b\u0085\u00a0", `\xe2\x80\xae\xe2\x80\x8b\xc2\x85\xc2\xa0`, `"\xe2\x80\xae\xe2\x80\x8b\xc2\x85\xc2\xa0"`, `"\xe2\x80\xae\xe2\x80\x8b\xc2\x85\xc2\xa0"`},
		{"\ufffd", "\ufffd", "\"\ufffd\"", "\"\ufffd\""},
		{"-", "-", `"-"`, `"-"`},
		{"--px", "--px", `"--px"`, `"--px"`},
		{"#a", "#a", `"#a"`, `"#a"`},
		{`{t}\setPoint`, `{t}\\setPoint`, `"{t}\\setPoint"`, `"{t}\\setPoint"`},
	} {
		got := []string{Escape(tt.in), Quote([]byte(tt.in)), Word(tt.in)}
		if diff := cmp.Diff([]string{tt.escaped, tt.quoted, tt.word}, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", tt.in, diff)
		}
	}
}

func TestUnescape(t *testing.T) {
	for _, tt := range []struct{ in, want, err string }{
		{in: "a\x00\xff\n", want: "a\x00\xff\n"},
		{in: `\n\r\t\\\x41\xfF`, want: "\n\r\t\\A\xff"},
		{in: `ab\q`, err: `byte 2: expected one of \n \r \t \\ \xHH, got \q`},
		{in: `ab\"`, err: `byte 2: expected one of \n \r \t \\ \xHH, got \"`},
		{in: `ab\é`, err: `byte 2: expected one of \n \r \t \\ \xHH, got \é`},
		{in: "ab\\\x1b", err: `byte 2: expected one of \n \r \t \\ \xHH, got \\x1b`},
		{in: `ab\`, err: `byte 2: expected one of \n \r \t \\ \xHH, got \`},
		{in: `\x4`, err: `byte 0: expected \x and two hexadecimal digits, got \x4`},
		{in: `\x4g`, err: `byte 0: expected \x and two hexadecimal digits, got \x4g`},
		{in: `\x+4`, err: `byte 0: expected \x and two hexadecimal digits, got \x+4`},
	} {
		got, err := Unescape(tt.in)
		check(t, tt.in, got, tt.want, err, tt.err)
	}
}

func TestUnquote(t *testing.T) {
	for _, tt := range []struct{ in, want, err string }{
		{in: `""`},
		{in: `"a\"\n"`, want: "a\"\n"},
		{in: "\"a\nb\"", want: "a\nb"},
		{in: "", err: `byte 0: expected a " at the start, got the end of the text`},
		{in: "a", err: `byte 0: expected a " at the start, got a`},
		{in: `"a`, err: `byte 2: expected a closing ", got the end of the text`},
		{in: `"a\"`, err: `byte 4: expected a closing ", got the end of the text`},
		{in: `"a\`, err: `byte 3: expected a closing ", got the end of the text`},
		{in: `"a"b`, err: `byte 3: expected the end of the text after the closing ", got b`},
		{in: `"a\q"`, err: `byte 2: expected one of \n \r \t \\ \" \xHH, got \q`},
	} {
		got, err := Unquote(tt.in)
		check(t, tt.in, got, tt.want, err, tt.err)
	}
}

func check(t *testing.T, in, got, want string, err error, wantErr string) {
	t.Helper()
	gotErr := ""
	if err != nil {
		gotErr = err.Error()
	}
	if got != want || gotErr != wantErr {
		t.Errorf("%q: got %q, error %q; want %q, error %q", in, got, gotErr, want, wantErr)
	}
}

func FuzzEscape(f *testing.F) {
	f.Add("a\n\x00\xff\\\"\u202e")
	f.Fuzz(func(t *testing.T, s string) {
		escaped := Escape(s)
		if !shows(escaped, "") || escaped != Escape([]byte(s)) {
			t.Errorf("Escape(%q) = %q", s, escaped)
		}
		if back, err := Unescape(escaped); back != s || err != nil {
			t.Errorf("Unescape(%q) = %q, %v; want %q", escaped, back, err, s)
		}
		quoted := Quote(s)
		if back, err := Unquote(quoted); back != s || err != nil {
			t.Errorf("Unquote(%q) = %q, %v; want %q", quoted, back, err, s)
		}
		if word := Word(s); word != s && word != quoted || strings.HasPrefix(word, "#") || strings.HasPrefix(word, "-") {
			t.Errorf("Word(%q) = %q", s, word)
		}
		// Users can type escapes that Escape does not write. Their decoded text must survive a round trip.
		if decoded, err := Unescape(s); err == nil {
			if again, err := Unescape(Escape(decoded)); again != decoded || err != nil {
				t.Errorf("Unescape(%q) = %q, and that does not survive: %q, %v", s, decoded, again, err)
			}
		}
	})
}

func TestShWord(t *testing.T) {
	for word, want := range map[string]string{
		"/tmp/ca.crt": "/tmp/ca.crt", "": "''", "my certs": "'my certs'", "it's": `'it'\''s'`, "$(x)": "'$(x)'", "~": "'~'",
		"=ls": "'=ls'", "é": "'é'", "a\n'\\": `$'a\x0a\x27\x5c'`, "\xff0": `$'\xff0'`,
	} {
		if got := ShWord(word); got != want {
			t.Errorf("%q: %s, want %s", word, got, want)
		}
	}
}

// FuzzShWord: bash reads the word as exactly these bytes.
func FuzzShWord(f *testing.F) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		f.Skip("no bash")
	}
	for _, word := range []string{"", "plain", "two words", "$(exit 3)", "`exit 3`", "a'; exit 3; '", "!!", "\\", "\x01\xff\x0a9", "é\u202e", "#", "-n"} {
		f.Add(word)
	}
	f.Fuzz(func(t *testing.T, word string) {
		if strings.Contains(word, "\x00") {
			return // an argument cannot contain this byte
		}
		got, err := exec.Command(bash, "-c", "printf %s "+ShWord(word)).Output()
		if err != nil || string(got) != word {
			t.Errorf("%q as %s: bash takes it for %q, %v", word, ShWord(word), got, err)
		}
	})
}
