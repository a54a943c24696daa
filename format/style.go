package format

import (
	"strconv"
	"time"

	"github.com/fatih/color"
)

// A style holds the options of the human output.
type style struct {
	now                       func() time.Time
	key, faint, warning, fail *color.Color
}

func newStyle(o Options) style {
	paint := func(attributes ...color.Attribute) *color.Color {
		c := color.New(attributes...)
		// o.Color was decided for this stream. By itself, the package looks at the
		// environment and at standard output.
		if o.Color {
			c.EnableColor()
		} else {
			c.DisableColor()
		}
		return c
	}
	s := style{
		now:     o.Now,
		key:     paint(color.Bold),
		faint:   paint(color.Faint),
		warning: paint(color.FgYellow),
		fail:    paint(color.FgRed),
	}
	if s.now == nil {
		s.now = time.Now
	}
	return s
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
	line := versionLine(v) + "  (" + age(s.now().Sub(v.Time())) + ")"
	return append(append(dst, s.faint.Sprint(line)...), '\n')
}

func versionLine(v Version) string {
	line := appendVersion([]byte("version "), v, "")
	return string(appendTime(append(line, "  "...), v.Time()))
}

// integer appends a number as redis-cli prints it, and its meaning if that is not empty.
func (s *style) integer(dst []byte, n int64, meaning string) []byte {
	dst = strconv.AppendInt(append(dst, "(integer) "...), n, 10)
	if meaning != "" {
		dst = append(append(dst, "  "...), s.faint.Sprint(meaning)...)
	}
	return append(dst, '\n')
}

// keyed appends the key that the following result is about.
func (s *style) keyed(dst []byte, key string) []byte {
	return append(append(dst, s.key.Sprint(Word(key))...), ' ')
}
