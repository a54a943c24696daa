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
			f.Details = append(f.Details, text())
		}
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
		if rows > 3 && Columns(f.Message) < 140 && !slices.ContainsFunc(f.Hint, func(step Step) bool { return Columns(step.Text) > 50 }) {
			t.Fatalf("%d lines of 80 columns: %+v\n%s", rows, f, out.String())
		}
		if message, _ := f.fit(); !slices.ContainsFunc([]int{0, 1, 2, 3}, func(n int) bool {
			return n <= len(f.Details) && message == Fault{Message: f.Message, Details: f.Details[:n]}.Text()
		}) {
			t.Fatalf("cut elsewhere than at a detail: %+v\n%s", f, message)
		}
		if message, hint := f.fit(); len(f.Text())+len(f.Hint.String()) < 60 && (message != f.Text() || hint != f.Hint.String()) {
			t.Fatalf("%+v: not whole: %q, %q", f, message, hint)
		}
	}
	f := Fault{Code: 6, Kind: "fencing_lower", Message: "first", Details: []string{strings.Repeat("second ", 30)}, Hint: Hint{{Text: "a"}, {Text: strings.Repeat("b ", 60)}}}
	var out bytes.Buffer
	p, err := New(&out, Options{Output: "json"})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Print(f); err != nil || !strings.Contains(out.String(), f.Text()) || !strings.Contains(out.String(), f.Hint.String()) {
		t.Errorf("%v: %s", err, out.String())
	}
}

// TestFaultKeepsTheFirstStep: details of the message make room for the first step of the hint. If nothing does, the hint says
// where the step is.
func TestFaultKeepsTheFirstStep(t *testing.T) {
	rule := "the rule to ask for: " + strings.Repeat("r", 100)
	refused := `get "a": MQTT CONNECT to 127.0.0.1:1883: CONNACK 0x87 not authorized`
	sent := `sent: user "ann" with the password in a file, as client "ann"`
	f := Fault{Message: refused, Details: []string{sent}, Hint: Hint{{Text: rule}, {Text: "-i with another client id"}}}
	if message, hint := f.fit(); message != refused || !strings.HasPrefix(hint, rule) {
		t.Errorf("%q, %q", message, hint)
	}
	f.Hint = Hint{{Text: rule + strings.Repeat("r", 100)}, {Text: "add a rule for the topic or the client id, or for both"}, {Text: "--trace shows topics"}}
	f.Message, f.Details = strings.Repeat("a ", 60), nil
	if message, hint := f.fit(); message != f.Message || hint != "add a rule for the topic or the client id, or for both; more: -o json" {
		t.Errorf("%q, %q", message, hint)
	}
}
