package help

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestBlocks(t *testing.T) {
	const text = `Prose of two
lines.  Two blanks after a sentence are none.

There are
    expect CODE CMD...   succeeds
                         if so
    sleep DURATION       waits

	not a table
	at  all

human     for people
template=TEXT
          a template
-5`
	want := []Block{
		{Prose: "Prose of two lines.  Two blanks after a sentence are none."},
		{Prose: "There are"},
		{Rows: [][2]string{{"expect CODE CMD...", "succeeds if so"}, {"sleep DURATION", "waits"}}},
		{Literal: []string{"not a table", "at  all"}},
		{Rows: [][2]string{{"human", "for people"}, {"template=TEXT", "a template"}}},
		{Prose: "-5"},
	}
	if diff := cmp.Diff(want, Blocks(text)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
