package repl

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/sscli/sscli/internal/testkit/screentest"
)

// TestScreen draws random lines and changes the terminal's size in between. The line must appear once, below
// the earlier output, with the cursor in its place.
func TestScreen(t *testing.T) {
	alphabet := []rune("abc日😀é\u0301" + string(rune(byteBase+'\n')) + string(rune(byteBase+'\t')) + string(rune(byteBase+0xff)))
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 0))
		columns, rows := 20+r.IntN(60), 40
		terminal := screentest.New(columns, rows)
		terminal.Write([]byte("before\r\n"))
		s := screen{w: terminal, size: func() (int, int) { return columns, rows }}
		for range 20 {
			if r.IntN(3) == 0 {
				columns = 20 + r.IntN(60)
				terminal.Resize(columns, rows)
			}
			line := make([]rune, r.IntN(120))
			for i := range line {
				line[i] = alphabet[r.IntN(len(alphabet))]
			}
			cursor := r.IntN(len(line) + 1)
			s.draw("prompt> ", line, cursor)

			want := "before\nprompt> " + visible(line, "\n   ...> ")
			if got := terminal.String(); got != trimmed(want) {
				t.Fatalf("seed %d: %d columns, %q at %d: got\n%q\nwant\n%q", seed, columns, string(line), cursor, got, trimmed(want))
			}
			l := arrange("prompt> ", line, cursor, columns)
			column, row := terminal.Cursor()
			if column != l.column || row != l.row+1 {
				t.Fatalf("seed %d: the cursor is at %d,%d, want %d,%d", seed, column, row, l.column, l.row+1)
			}
			if err := terminal.Fault(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func visible(line []rune, newline string) string {
	var b strings.Builder
	for i, r := range line {
		before := rune(0)
		if i > 0 {
			before = line[i-1]
		}
		if r == byteBase+'\n' {
			b.WriteString(newline)
			continue
		}
		text, _ := appearance(r, before)
		b.WriteString(strings.TrimSuffix(strings.TrimPrefix(text, inverse), upright))
	}
	return b.String()
}

// trimmed returns a text in the form of Screen's output.
func trimmed(text string) string {
	lines := strings.Split(text, "\n")
	for i, l := range lines {
		lines[i] = strings.TrimRight(l, " ")
	}
	return strings.TrimRight(strings.Join(lines, "\n"), "\n")
}
