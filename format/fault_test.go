package format

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// TestFaultFits: an error with its hint takes at most three lines of 80 columns, whatever it says; one that fits is whole, and
// so is the json output.
func TestFaultFits(t *testing.T) {
	words := []string{"lock", `"a; b"`, "it's", "'x; y'", "the store answered:", `"é\"; 世界"`, strings.Repeat("long", 60), "sscli get a"}
	r := rand.New(rand.NewPCG(1, 2))
	text := func() string {
		var b strings.Builder
		for range r.IntN(30) {
			b.WriteString(words[r.IntN(len(words))] + []string{" ", " ", "; "}[r.IntN(3)])
		}
		return strings.TrimRight(b.String(), " ;")
	}
	for range 2_000 {
		f := Fault{Code: 1, Kind: "kind", Message: text(), Line: r.IntN(3)}
		for range r.IntN(4) {
			f.Hint = append(f.Hint, Step{Text: text(), Command: r.IntN(2) == 0})
		}
		var out bytes.Buffer
		p, err := New(&out, Options{Output: "human"})
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Print(f); err != nil {
			t.Fatal(err)
		}
		rows := 0
		for line := range strings.Lines(out.String()) {
			rows += max(1, (Columns(strings.TrimRight(line, "\n"))+79)/80)
		}
		if first := phrases(f.Message); rows > 3 && (len(first) == 0 || Columns(first[0]) < 140) && !slices.ContainsFunc(f.Hint, func(step Step) bool { return Columns(step.Text) > 50 }) {
			t.Fatalf("%d lines of 80 columns: %+v\n%s", rows, f, out.String())
		}
		if quotes := strings.Count(strings.ReplaceAll(out.String(), `\"`, ""), `"`); quotes%2 != 0 {
			t.Fatalf("cut inside of quotes: %+v\n%s", f, out.String())
		}
		if message, hint := f.fit(); len(f.Message)+len(f.Hint.String()) < 60 && (message != f.Message || hint != f.Hint.String()) {
			t.Fatalf("%+v: not whole: %q, %q", f, message, hint)
		}
	}
	f := Fault{Code: 6, Kind: "fencing_lower", Message: "first; " + strings.Repeat("second ", 30), Hint: Hint{{Text: "a"}, {Text: strings.Repeat("b ", 60)}}}
	var out bytes.Buffer
	p, err := New(&out, Options{Output: "json"})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Print(f); err != nil || !strings.Contains(out.String(), f.Message) || !strings.Contains(out.String(), f.Hint.String()) {
		t.Errorf("%v: %s", err, out.String())
	}
}

// TestFaultKeepsTheFirstStep: details of the message make room for the first step of the hint. If nothing does, the hint says
// where the step is.
func TestFaultKeepsTheFirstStep(t *testing.T) {
	rule := "the rule to ask for: " + strings.Repeat("r", 100)
	refused := `get "a": MQTT CONNECT to 127.0.0.1:1883: CONNACK 0x87 not authorized`
	f := Fault{Message: refused + `; sent: user "ann" with the password in a file, as client "ann"`, Hint: Hint{{Text: rule}, {Text: "-i with another client id"}}}
	if message, hint := f.fit(); message != refused || !strings.HasPrefix(hint, rule) {
		t.Errorf("%q, %q", message, hint)
	}
	f.Hint = Hint{{Text: rule + strings.Repeat("r", 100)}, {Text: "add a rule for the topic or the client id, or for both"}, {Text: "--trace shows topics"}}
	f.Message = strings.Repeat("a ", 60)
	if message, hint := f.fit(); message != f.Message || hint != "add a rule for the topic or the client id, or for both; more: -o json" {
		t.Errorf("%q, %q", message, hint)
	}
}

// TestPhrases: a semicolon in quotes does not end a phrase.
func TestPhrases(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "a": "a", "a; b": "a|b", `get "a; b"; c`: `get "a; b"|c`, `"\"; a"; b`: `"\"; a"|b`,
		"lock 'x; y' protects; the broker's rules; x": "lock 'x; y' protects|the broker's rules|x", `'it'\''s; a'; b`: `'it'\''s; a'|b`, "a;b": "a;b",
	} {
		if got := strings.Join(phrases(text), "|"); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
