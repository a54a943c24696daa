package format

import (
	"strconv"
	"time"

	"github.com/fatih/color"
)

// A style is what the human output needs to know besides the result.
type style struct {
	now                       func() time.Time
	key, faint, warning, fail *color.Color
}

func newStyle(o Options) style {
	paint := func(attributes ...color.Attribute) *color.Color {
		c := color.New(attributes...)
		// Whether to color was decided for this stream; the package would look
		// at the environment and at standard output.
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

// version appends a line of its own, if there is a version.
func (s *style) version(dst []byte, v Version) []byte {
	if none(v) {
		return dst
	}
	return append(append(dst, s.faint.Sprint(versionLine(v))...), '\n')
}

// versionAndAge is for what was stored by somebody else, some time ago.
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

// integer appends a number as redis-cli does, with what it means if that is not
// plain.
func (s *style) integer(dst []byte, n int64, meaning string) []byte {
	dst = strconv.AppendInt(append(dst, "(integer) "...), n, 10)
	if meaning != "" {
		dst = append(append(dst, "  "...), s.faint.Sprint(meaning)...)
	}
	return append(dst, '\n')
}

// keyed appends a key to stand before the answer about it.
func (s *style) keyed(dst []byte, key string) []byte {
	return append(append(dst, s.key.Sprint(Word(key))...), ' ')
}
