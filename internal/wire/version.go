package wire

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// A Version is a hybrid logical clock (HLC) reading: the version of a stored value. The
// version of a lock's key is a fencing token (protocol.md 3). The zero Version means no
// version.
//
// Compare versions with [Version.Compare] or [Version.Equal]: the operator == also compares
// the texts from which they were parsed.
type Version struct {
	Wall    int64  // milliseconds since the Unix epoch
	Counter uint64 // orders readings within one millisecond
	Node    string // the clock's name; contains no colon

	text string // the parsed text, so that it can be sent back unmodified; empty if not parsed
}

func badVersion(text, want string) error { return fmt.Errorf("bad HLC %.80q: expected %s", text, want) }

const hlcForm = "WALLMS:COUNTER:NODE, as in 1696374425000:0:node-1"

// ParseVersion parses the text of an HLC, padded with zeros or not, and keeps the text
// (protocol.md 3.3). Like the SDKs it accepts a signed wall clock and an empty node.
func ParseVersion(text string) (Version, error) {
	wall, rest, ok := strings.Cut(text, ":")
	counter, node, ok2 := strings.Cut(rest, ":")
	if !ok || !ok2 || strings.Contains(node, ":") {
		return Version{}, badVersion(text, hlcForm)
	}
	v := Version{Node: node, text: text}
	var err error
	if v.Wall, err = strconv.ParseInt(wall, 10, 64); err != nil || len(wall) > maxNumber {
		return Version{}, badVersion(text, "the wall clock in milliseconds, a 64-bit integer, before the first colon")
	}
	if v.Counter, err = strconv.ParseUint(counter, 10, 64); err != nil || len(counter) > maxNumber {
		return Version{}, badVersion(text, "a counter of 0 to 2^64-1 between the colons")
	}
	return v, nil
}

// ParseToken parses a fencing token that a person typed. To catch typing errors it is
// stricter than ParseVersion: no sign, no empty node, only printable characters in the
// node.
func ParseToken(text string) (Version, error) {
	v, err := ParseVersion(text)
	switch {
	case err != nil:
		return Version{}, err
	case v.Wall < 0 || strings.ContainsAny(text[:strings.LastIndexByte(text, ':')], "+-"):
		return Version{}, badVersion(text, "a wall clock and a counter without a sign")
	case v.Node == "":
		return Version{}, badVersion(text, "a node after the second colon")
	case !utf8.ValidString(v.Node) || strings.ContainsFunc(v.Node, func(r rune) bool { return !unicode.IsPrint(r) || r == ' ' }):
		return Version{}, badVersion(text, "a node of printable characters without spaces")
	}
	return v, nil
}

// String returns the text from which v was parsed. If v was not parsed, String pads the wall
// clock to 15 digits and the counter to 5, so that texts sort like versions (protocol.md 3.1).
func (v Version) String() string {
	if v.text != "" {
		return v.text
	}
	if v.Wall < 0 {
		return fmt.Sprintf("%015d:%05d:%s", v.Wall, v.Counter, v.Node)
	}
	// The same format as above, but faster than Sprintf: each request has a version.
	text := appendPadded(make([]byte, 0, 64), uint64(v.Wall), 1e14)
	text = appendPadded(append(text, ':'), v.Counter, 1e4)
	return string(append(append(text, ':'), v.Node...))
}

// appendPadded appends n, padded with zeros to as many digits as the power of ten in least has.
func appendPadded(dst []byte, n, least uint64) []byte {
	for ; n < least && least > 1; least /= 10 {
		dst = append(dst, '0')
	}
	return strconv.AppendUint(dst, n, 10)
}

// IsZero reports whether v is the zero Version, which means no version.
func (v Version) IsZero() bool { return v.Wall == 0 && v.Counter == 0 && v.Node == "" }

// Compare returns -1, 0 or +1. It compares wall clocks, then counters, then nodes as bytes
// (protocol.md 3.5), and ignores the texts from which they were parsed.
func (v Version) Compare(o Version) int {
	switch {
	case v.Wall != o.Wall:
		return cmp.Compare(v.Wall, o.Wall)
	case v.Counter != o.Counter:
		return cmp.Compare(v.Counter, o.Counter)
	}
	return cmp.Compare(v.Node, o.Node)
}

// Equal reports whether v and o are the same reading. It ignores the texts from which they were parsed.
func (v Version) Equal(o Version) bool {
	return v.Wall == o.Wall && v.Counter == o.Counter && v.Node == o.Node
}

// Time returns the version's wall clock as a time in UTC.
func (v Version) Time() time.Time { return time.UnixMilli(v.Wall).UTC() }

// versionJSON is a version as JSON. HLC decides; the other members are for readers.
type versionJSON struct {
	HLC     string     `json:"hlc,omitempty"`
	HLC64   []byte     `json:"hlc_b64,omitempty"` // in place of HLC if the text is not UTF-8
	Wall    int64      `json:"wall_ms"`
	Counter uint64     `json:"counter"`
	Node    string     `json:"node,omitempty"`
	Node64  []byte     `json:"node_b64,omitempty"`
	Time    *time.Time `json:"time,omitempty"` // nil in years that RFC 3339 cannot represent
}

// MarshalJSON returns the version as sscli prints it, an object with the member hlc, or null for the zero
// Version. [Version.UnmarshalJSON] is the inverse.
func (v Version) MarshalJSON() ([]byte, error) {
	if v.IsZero() {
		return []byte("null"), nil
	}
	text := v.String()
	if _, err := ParseVersion(text); err != nil {
		return nil, err
	}
	j := versionJSON{HLC: text, Wall: v.Wall, Counter: v.Counter, Node: v.Node}
	if !utf8.ValidString(text) {
		j.HLC, j.Node, j.HLC64, j.Node64 = "", "", []byte(text), []byte(v.Node)
	}
	if t := v.Time(); t.Year() >= 0 && t.Year() <= 9999 {
		j.Time = &t
	}
	return json.Marshal(j)
}

// UnmarshalJSON parses the member hlc, or hlc_b64, of a version that MarshalJSON returned or sscli printed,
// and ignores the other members. A null leaves v unchanged.
func (v *Version) UnmarshalJSON(data []byte) error {
	if string(data) == "null" {
		return nil
	}
	var j struct {
		HLC   string `json:"hlc"`
		HLC64 []byte `json:"hlc_b64"`
	}
	if err := json.Unmarshal(data, &j); err != nil {
		return err
	}
	parsed, err := ParseVersion(j.HLC + string(j.HLC64))
	if err != nil {
		return err
	}
	*v = parsed
	return nil
}
