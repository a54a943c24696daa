package format

import (
	"strconv"
	"time"

	"github.com/fatih/color"
)

// A style holds the options and the state of the human output.
type style struct {
	now     func() time.Time
	size    func() (width, height int) // of the terminal; 0, 0: none
	columns columns

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
	if s.size == nil {
		s.size = func() (width, height int) { return 0, 0 }
	}
	return s
}

// program appends the name of the program, which begins the lines for standard error.
func (s *style) program(dst []byte) []byte {
	return append(append(dst, s.faint.Sprint("sscli:")...), ' ')
}

// version appends a line with the version, if there is one.
func (s *style) version(dst []byte, v Version) []byte {
	if none(v) {
		return dst
	}
	return append(append(dst, s.faint.Sprint(versionLine(v))...), '\n')
}

// versionAndAge appends a line with the version and how long ago it was written.
func (s *style) versionAndAge(dst []byte, v Version) []byte {
	if none(v) {
		return append(append(dst, s.faint.Sprint("version unknown")...), '\n')
	}
	line := versionLine(v) + "  (" + Age(s.now().Sub(v.Time())) + ")"
	return append(append(dst, s.faint.Sprint(line)...), '\n')
}

func versionLine(v Version) string {
	line := appendVersion([]byte("version "), v, "")
	return string(appendTime(append(line, "  "...), v.Time()))
}

// answer appends the meaning of a number that the store answered, and then the number as
// redis-cli prints it.
func (s *style) answer(dst []byte, meaning string, n int64) []byte {
	return append(append(append(dst, meaning...), "  "+s.faint.Sprint(integer(n))...), '\n')
}

// integer returns a number as redis-cli prints it.
func integer(n int64) string { return "(integer) " + strconv.FormatInt(n, 10) }
