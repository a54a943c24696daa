package format

import (
	"strings"
	"testing"
	"time"

	"github.com/sscli/sscli/internal/wire"
)

// identifiers fit on a line of 80 columns, but not side by side.
var identifiers = struct{ key, holder, token string }{
	"plants/berlin/line-17/press-3/setpoint",
	"deploy@build-agent-17.example.com:31337:9f3c1a2b4c5d6e7f",
	"1696374425000:12345:StateStore-6c9f8d7b5-abcde",
}

func newVersion(t *testing.T, text string) Version {
	t.Helper()
	v, err := wire.ParseVersion(text)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// TestIdentifiersStayWhole: rows of every kind show keys, versions, tokens and holders in full, and no line
// is wider than the terminal. Only values are cut, and "wide" cuts nothing.
func TestIdentifiersStayWhole(t *testing.T) {
	id, value := identifiers, []byte(strings.Repeat("0123456789", 20))
	v := newVersion(t, id.token)
	tests := []struct {
		name  string
		rows  []Result
		want  []string
		whole bool // the rows have nothing that can be cut
	}{
		{"watch", []Result{
			Event{Op: "set", Key: id.key, Version: v, Value: value, HasValue: true},
			Event{Op: "delete", Key: "a", Version: v},
			Event{Op: "initial", Key: "a", Version: v, Value: []byte("1"), HasValue: true},
		}, []string{id.key, id.token}, false},
		{"get", []Result{
			Get{Key: "a", Found: true, Value: []byte("1"), Version: v, Many: true},
			Get{Key: id.key, Found: true, Value: value, Version: v, Many: true},
		}, []string{id.key, id.token}, false},
		{"del", []Result{Del{Op: "del", Key: id.key, Deleted: true, Version: v, Many: true}}, []string{id.key, id.token}, true},
		{"lock list", []Result{
			LockStatus{List: true, Name: "a", Held: true, Holder: id.holder, Token: v, Age: time.Second},
			LockStatus{List: true, Name: id.key, Held: true, Holder: id.holder, Token: v, Age: time.Hour},
			LockStatus{List: true, Name: "b"},
		}, []string{id.key, id.holder, id.token}, true},
		{"lock list --observe", []Result{
			LockStatus{List: true, Name: "a", Held: true, Holder: id.holder, Token: v, Renewals: Renewals{Observed: time.Minute}},
		}, []string{id.holder, id.token}, true},
		{"lock trace", []Result{
			LockEvent{What: "changed_hands", Name: id.key, Holder: id.holder, Before: "other-" + id.holder, Token: v, For: time.Minute, Inferred: true, Why: "its value was written over, or the notification of its deletion was lost"},
			LockEvent{What: "renewed", Name: "a", Holder: id.holder, Token: v, For: time.Minute, Renewals: 12, Every: time.Second},
		}, []string{id.key, "other-" + id.holder, id.token}, true},
	}
	for _, test := range tests {
		for _, width := range []int{80, 100, 132} {
			o := terminal(width, 24)
			out := render(t, o, test.rows...)
			for _, want := range test.want {
				if !strings.Contains(out, want) {
					t.Errorf("%s on %d columns does not show %s whole:\n%s", test.name, width, want, out)
				}
			}
			for line := range strings.Lines(out) {
				if line = strings.TrimSuffix(line, "\n"); Columns(line) > width {
					t.Errorf("%s: %d columns, the terminal has %d: %s", test.name, Columns(line), width, line)
				}
			}
			if cut := strings.Contains(out, "…"); cut == test.whole {
				t.Errorf("%s on %d columns: cut is %v:\n%s", test.name, width, cut, out)
			}
			o.Output = "wide"
			if out := render(t, o, test.rows...); strings.Contains(out, "…") || !test.whole && !strings.Contains(out, string(value)) {
				t.Errorf("wide cuts %s:\n%s", test.name, out)
			}
		}
	}
}

// TestWideShowsWholeValues: "wide" shows a value in full even if it is longer than the screen.
func TestWideShowsWholeValues(t *testing.T) {
	o := terminal(80, 24)
	value := []byte(strings.Repeat("line\n", 100))
	if out := render(t, o, Get{Found: true, Value: value}); strings.Count(out, "line") == 100 {
		t.Error("the human form cuts nothing")
	}
	o.Output = "wide"
	if out := render(t, o, Get{Found: true, Value: value}); strings.Count(out, "line\n") != 100 {
		t.Errorf("wide:\n%s", out)
	}
}

// TestAlignedLocks: rows of lock list that continue on a second line are aligned, and so are the headings.
func TestAlignedLocks(t *testing.T) {
	var rows []Row
	var results []Result
	for _, name := range []string{"build", "deploy-staging"} {
		r := LockStatus{List: true, Name: name, Held: true, Holder: "deploy@build-agent-17:31337:9f3c1a2b", Token: stored(), Age: 3 * time.Second}
		rows, results = append(rows, r), append(results, r)
	}
	var out strings.Builder
	p, err := New(&out, terminal(80, 24))
	if err != nil {
		t.Fatal(err)
	}
	p.Measure(rows...)
	for _, r := range results {
		if err := p.Print(r); err != nil {
			t.Fatal(err)
		}
	}
	want := `NAME            LOCK  VALUE                                      AGE
    TOKEN
build           held  "deploy@build-agent-17:31337:9f3c1a2b"  3s ago
    1696374425000:1:StateStore
deploy-staging  held  "deploy@build-agent-17:31337:9f3c1a2b"  3s ago
    1696374425000:1:StateStore
`
	if out.String() != want {
		t.Errorf("got:\n%s\nwant:\n%s", out.String(), want)
	}
}
