package format

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/fatih/color"
)

// A style holds the options and the state of the human output.
type style struct {
	now     func() time.Time
	size    func() (width, height int) // of the terminal; 0, 0: none
	columns columns
	wide    bool // the output is "wide": nothing is cut

	key, faint, warning, fail *color.Color
	set, deleted              *color.Color // what happened to a key
	name, text, other         *color.Color // in JSON
}

func newStyle(o Options) style {
	paint := func(attributes ...color.Attribute) *color.Color {
		c := color.New(attributes...)
		// o.Color is the decision for this stream. Without it, package color would decide by
		// the environment and standard output.
		if o.Color {
			c.EnableColor()
		} else {
			c.DisableColor()
		}
		return c
	}
	s := style{
		now:     o.Now,
		size:    o.Size,
		wide:    o.Output == "wide",
		key:     paint(color.Bold),
		faint:   paint(color.Faint),
		warning: paint(color.FgYellow),
		fail:    paint(color.FgRed),
		set:     paint(color.FgGreen),
		deleted: paint(color.FgRed),
		name:    paint(color.FgCyan),
		text:    paint(color.FgGreen),
		other:   paint(color.FgYellow),
	}
	if s.now == nil {
		s.now = time.Now
	}
	if s.size == nil || s.wide {
		s.size = func() (width, height int) { return 0, 0 }
	}
	return s
}

// A writer collects the text of results.
type writer struct {
	out []byte
	style
}

func (w *writer) print(parts ...string) {
	for _, part := range parts {
		w.out = append(w.out, part...)
	}
}

func (w *writer) printf(format string, args ...any) { w.out = fmt.Appendf(w.out, format, args...) }

// program writes the name of the program, which begins the lines for standard error, and a text.
func (w *writer) program(format string, args ...any) {
	w.print(w.faint.Sprint("sscli:"), " ")
	w.printf(format, args...)
}

// phrases writes phrases, two spaces apart, and a newline. On a terminal a line that would be too long goes
// on in the next one. A phrase is divided only where it has a space, and only if it is wider than a line.
func (w *writer) phrases(phrases []part) {
	width, _ := w.size()
	column := 0
	write := func(space int, text string, paint *color.Color) {
		if column > 0 && width > 0 && column+space+Columns(text) > width {
			w.print("\n")
			column, space = 0, continuation
		}
		w.print(strings.Repeat(" ", space))
		w.out = appendPainted(w.out, paint, text)
		column += space + Columns(text)
	}
	for i, p := range phrases {
		space := gap
		if i == 0 {
			space = 0
		}
		if width == 0 || continuation+Columns(p.text) <= width {
			write(space, p.text, p.paint)
			continue
		}
		for word := range strings.SplitSeq(p.text, " ") {
			write(space, word, p.paint)
			space = 1
		}
	}
	w.print("\n")
}

// version writes a line with the version, if there is one.
func (w *writer) version(v Version) {
	if !none(v) {
		w.print(w.faint.Sprint(versionLine("version", v)), "\n")
	}
}

// versionAndAge writes a line with the version and how long ago it was written.
func (w *writer) versionAndAge(v Version) {
	line := "version unknown"
	if !none(v) {
		line = versionLine("version", v) + "  (" + Age(w.now().Sub(v.Time())) + ")"
	}
	w.print(w.faint.Sprint(line), "\n")
}

// versionLine returns a version or a token after a word that says which of them it is, and its time.
func versionLine(what string, v Version) string {
	return string(appendTime(append(appendVersion([]byte(what+" "), v, ""), "  "...), v.Time()))
}

// answer writes the meaning of a number that the store replied, and then the number as redis-cli
// prints it.
func (w *writer) answer(meaning string, n int64) {
	w.print(meaning, "  ", w.faint.Sprint(integer(n)), "\n")
}

// integer returns a number as redis-cli prints it.
func integer(n int64) string { return "(integer) " + strconv.FormatInt(n, 10) }
