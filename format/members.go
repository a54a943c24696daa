package format

import (
	"encoding"
	"strconv"
	"time"
	"unicode/utf8"
)

// A streamed result names its fields one by one instead of all at once. It is for results
// that come at a high rate: as JSON they need no tree of fields, which would cost more than
// all the rest.
type streamed interface {
	members(m *members)
}

// members takes the fields of an object, in their order: as JSON text or, to collect, as a tree.
// A field that the object does not have is not named.
type members struct {
	dst     []byte // the JSON text so far, from before the object on
	collect bool
	tree    object
}

// collect returns the fields of a streamed result as a tree.
func collect(r streamed) object {
	m := members{collect: true, tree: make(object, 0, 12)}
	r.members(&m)
	return m.tree
}

// name begins a field of the JSON text.
func (m *members) name(name string) {
	if m.dst[len(m.dst)-1] != '{' {
		m.dst = append(m.dst, ',')
	}
	m.dst = append(append(append(m.dst, '"'), name...), `":`...)
}

// add adds a leaf of any type, or a tree.
func (m *members) add(name string, value any) {
	if m.collect {
		m.tree = append(m.tree, field{name, value})
		return
	}
	if s, ok := value.(string); ok {
		name, s = member(name, s)
		m.name(name)
		m.dst = appendString(m.dst, s)
		return
	}
	m.name(name)
	m.dst = appendJSON(m.dst, value)
}

func (m *members) text(name, s string) {
	if m.collect || !utf8.ValidString(s) {
		m.add(name, s)
		return
	}
	m.name(name)
	m.dst = appendString(m.dst, s)
}

// bytes adds bytes as a string.
func (m *members) bytes(name string, b []byte) {
	if m.collect || !utf8.Valid(b) {
		m.add(name, string(b))
		return
	}
	m.name(name)
	m.dst = appendString(m.dst, b)
}

func (m *members) bool(name string, b bool) { m.add(name, b) } // to convert a bool allocates nothing

func (m *members) float(name string, f float64) {
	if m.collect {
		m.add(name, f)
		return
	}
	m.name(name)
	m.dst = appendFloat(m.dst, f)
}

func (m *members) time(name string, t time.Time) {
	if m.collect {
		m.add(name, t)
		return
	}
	m.name(name)
	m.dst = append(appendTime(append(m.dst, '"'), t), '"')
}

// version adds a version, if there is one.
func (m *members) version(name string, v Version) {
	switch {
	case none(v):
	case m.collect:
		m.add(name, v)
	default:
		m.name(name)
		m.dst = appendVersionObject(m.dst, v)
	}
}

// rtt adds a duration in milliseconds, unless it is 0: not measured.
func (m *members) rtt(name string, d time.Duration) {
	if d != 0 {
		m.float(name, milliseconds(d))
	}
}

// A versionFields is a version whose parts are fields.
type versionFields struct {
	Version
}

// versionObject is what a Version is for a template.
func versionObject(v Version) object { return collect(versionFields{v}) }

// appendVersionObject appends what a Version is in the json output.
func appendVersionObject(dst []byte, v Version) []byte {
	m := members{dst: append(dst, '{')}
	versionFields{v}.members(&m)
	return append(m.dst, '}')
}

func (v versionFields) members(m *members) {
	v.hlc(m)
	wall, counter, node := v.Parts()
	if m.collect {
		m.add("wall_ms", wall)
		m.add("counter", counter)
	} else {
		m.name("wall_ms")
		m.dst = strconv.AppendInt(m.dst, wall, 10)
		m.name("counter")
		m.dst = strconv.AppendUint(m.dst, counter, 10)
	}
	m.text("node", node)
	if t := v.Time(); t.Year() >= 0 && t.Year() <= 9999 { // RFC 3339 has no other years
		m.time("time", t)
	}
}

// hlc adds the text of a version, of which most need no escape and no string of their own.
func (v versionFields) hlc(m *members) {
	const name = "hlc"
	appender, ok := v.Version.(encoding.TextAppender)
	if m.collect || !ok {
		m.text(name, v.String())
		return
	}
	before := len(m.dst)
	m.name(name)
	m.dst = append(m.dst, '"')
	begin := len(m.dst)
	dst, err := appender.AppendText(m.dst)
	if text := dst[begin:]; err != nil || plain(text, `"\`) < len(text) {
		m.dst = dst[:before]
		m.text(name, v.String())
		return
	}
	m.dst = append(dst, '"')
}
