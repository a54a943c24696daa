package format

import (
	"strings"
	"testing"
	"time"
)

// TestCutColumn: a long holder wraps no row of lock list, and the ages stay in their column.
func TestCutColumn(t *testing.T) {
	holders := []string{"job-7", `{"host":"` + strings.Repeat("h", 100) + `"}`, strings.Repeat("\xff\x00", 40), strings.Repeat("日", 50)}
	for _, width := range []int{80, 100, 120, 200} {
		var out strings.Builder
		p, err := New(&out, Options{Output: "human", Terminal: true, Size: func() (int, int) { return width, 24 }})
		if err != nil {
			t.Fatal(err)
		}
		var rows []Row
		for _, holder := range holders {
			rows = append(rows, LockStatus{List: true, Name: "locks/build", Held: true, Holder: holder, Token: stored(), Age: 3 * time.Second})
		}
		p.Measure(rows...)
		for _, row := range rows {
			if err := p.Print(row); err != nil {
				t.Fatal(err)
			}
		}
		ages := -1
		for line := range strings.Lines(out.String()) {
			line = strings.TrimSuffix(line, "\n")
			if n := Columns(line); n > width {
				t.Errorf("%d columns, the terminal has %d: %s", n, width, line)
			}
			before, _, ok := strings.Cut(line, "3s ago")
			if !ok {
				continue // the titles
			}
			if n := Columns(before); ages >= 0 && n != ages {
				t.Errorf("the age begins at %d, not at %d: %s", n, ages, line)
			} else {
				ages = n
			}
		}
		if ages < 0 || !strings.Contains(out.String(), "…") {
			t.Errorf("%d columns: nothing was cut:\n%s", width, out.String())
		}
	}
}
