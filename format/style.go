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
	size    func() (width, height int) // of the terminal; 0, 0 = not a terminal
	columns columns
	wide    bool // the output is "wide": cut nothing

	key, faint, warning, fail *color.Color
	set, deleted              *color.Color // for events: the key was set or deleted
	name, text, other         *color.Color // for JSON: names, strings and all other values
}

func newStyle(o Options) style {
	paint := func(attributes ...color.Attribute) *color.Color {
		c := color.New(attributes...)
		// By default, package color chooses by the environment and standard output, but o.Color
		// is the caller's choice for this stream.
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

// program writes "sscli: ", the prefix of lines on standard error, and the formatted text.
func (w *writer) program(format string, args ...any) {
	w.print(w.faint.Sprint("sscli:"), " ")
	w.printf(format, args...)
}

// phrases writes phrases, two spaces apart, and a newline. On a terminal, a phrase that does not
// fit starts a new line. A phrase wider than a whole line is broken at its spaces.
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

// version writes a line with v, or nothing if there is no version.
func (w *writer) version(v Version) {
	if !v.IsZero() {
		w.print(w.faint.Sprint(versionLine("version", v)), "\n")
	}
}

// versionAndAge writes a line with v and its age, or the line "version unknown" if there is no version.
func (w *writer) versionAndAge(v Version) {
	line := "version unknown"
	if !v.IsZero() {
		line = versionLine("version", v) + "  (" + Age(w.now().Sub(v.Time())) + ")"
	}
	w.print(w.faint.Sprint(line), "\n")
}

// versionLine returns a line with what, v and the time of v. what is the label "version" or "token".
func versionLine(what string, v Version) string {
	return string(appendTime(append(appendVersion([]byte(what+" "), v, ""), "  "...), v.Time()))
}

// answer writes meaning, which is the store's reply in words, and then n, the store's reply, as
// redis-cli prints it.
func (w *writer) answer(meaning string, n int64) {
	w.print(meaning, "  ", w.faint.Sprint(integer(n)), "\n")
}

// integer returns n as redis-cli prints it.
func integer(n int64) string { return "(integer) " + strconv.FormatInt(n, 10) }
