package wire

import (
	"bytes"
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
// version of a lock's key is a fencing token (protocol.md 3). The zero Version means that
// there is none.
//
// Compare versions with [Version.Compare] or [Version.Equal]: the operator ==
// also compares the text they were parsed from.
type Version struct {
	Wall    int64  // milliseconds since the Unix epoch
	Counter uint64 // orders readings within one millisecond
	Node    string // the clock's name; holds no colon

	text string // as received, so that it can be sent back unmodified; empty for the padded form, plain for the one without padding
}

// A VersionError says why a text is not an HLC.
type VersionError struct {
	Text string
	Want string
}

func (e *VersionError) Error() string {
	return fmt.Sprintf("bad HLC %.80q: want %s", e.Text, e.Want)
}

const hlcForm = "WALLMS:COUNTER:NODE, as in 1696374425000:0:node-1"

// ParseVersion parses the text of an HLC, padded with zeros or not, and keeps the text
// (protocol.md 3.3). Like the SDKs it accepts a signed wall clock and an empty node. The
// error is a *[VersionError].
func ParseVersion(text string) (Version, error) {
	wall, rest, ok := strings.Cut(text, ":")
	counter, node, ok2 := strings.Cut(rest, ":")
	if !ok || !ok2 || strings.Contains(node, ":") {
		return Version{}, &VersionError{text, hlcForm}
	}
	if v, ok := parseForm(wall, counter); ok {
		v.Node = node
		return v, nil
	}
	v := Version{Node: node, text: text}
	var err error
	if v.Wall, err = strconv.ParseInt(wall, 10, 64); err != nil {
		return Version{}, &VersionError{text, "the wall clock in milliseconds, a 64-bit integer, before the first colon"}
	}
	if v.Counter, err = strconv.ParseUint(counter, 10, 64); err != nil {
		return Version{}, &VersionError{text, "a counter of 0 to 2^64-1 between the colons"}
	}
	return v, nil
}

// The numbers of a version have at least so many digits where versions are padded
// (protocol.md 3.1).
const (
	wallDigits    = 15
	counterDigits = 5
)

// plain as the text of a version stands for the text without padding. No version is written
// like this.
const plain = "plain"

// parseForm parses the numbers of a version in one of the two forms that are written in
// practice, padded or plain, with at most 18 digits each. The text of the form need not be kept.
func parseForm[T string | []byte](wall, counter T) (v Version, ok bool) {
	padded := len(wall) == wallDigits && len(counter) >= counterDigits && (counter[0] != '0' || len(counter) == counterDigits)
	if !padded {
		if !isPlain(wall) || !isPlain(counter) {
			return Version{}, false
		}
		v.text = plain
	}
	w, okWall := parseDigits(wall)
	c, okCounter := parseDigits(counter)
	v.Wall, v.Counter = int64(w), c
	return v, okWall && okCounter
}

// isPlain reports whether digits have no padding.
func isPlain[T string | []byte](digits T) bool {
	return len(digits) > 0 && (digits[0] != '0' || len(digits) == 1)
}

// parseDigits parses at most 18 digits.
func parseDigits[T string | []byte](text T) (n uint64, ok bool) {
	if len(text) > 18 {
		return 0, false
	}
	for i := range len(text) {
		digit := text[i] - '0'
		if digit > 9 {
			return 0, false
		}
		n = 10*n + uint64(digit)
	}
	return n, true
}

// ReadVersion is [ParseVersion] for a stream of versions, most of which come from one clock: it
// rarely allocates if the node is the one of last, which was parsed too.
func ReadVersion(text []byte, last Version) (Version, error) {
	if rest, ok := bytes.CutSuffix(text, []byte(last.Node)); ok && last.Node != "" {
		wall, counter, _ := bytes.Cut(rest, []byte(":"))
		if digits, ok := bytes.CutSuffix(counter, []byte(":")); ok {
			if v, ok := parseForm(wall, digits); ok {
				v.Node = last.Node
				return v, nil
			}
		}
	}
	return ParseVersion(string(text))
}

// ParseToken parses a fencing token that a person typed. To catch typing errors it is
// stricter than ParseVersion: no sign, no empty node, only printable characters in the
// node. The error is a *[VersionError].
func ParseToken(text string) (Version, error) {
	v, err := ParseVersion(text)
	switch {
	case err != nil:
		return Version{}, err
	case v.Wall < 0 || strings.ContainsAny(text[:strings.LastIndexByte(text, ':')], "+-"):
		return Version{}, &VersionError{text, "a wall clock and a counter without a sign"}
	case v.Node == "":
		return Version{}, &VersionError{text, "a node after the second colon"}
	case !utf8.ValidString(v.Node) || strings.ContainsFunc(v.Node, func(r rune) bool { return !unicode.IsPrint(r) || r == ' ' }):
		return Version{}, &VersionError{text, "a node of printable characters without spaces"}
	}
	return v, nil
}

// String returns the text that the version was parsed from. For other versions it returns
// the form with the wall clock padded to 15 and the counter to 5 digits, which sorts as
// text like the versions do (protocol.md 3.1).
func (v Version) String() string {
	if v.text != "" && v.text != plain {
		return v.text
	}
	return string(v.append(make([]byte, 0, 64)))
}

// AppendText appends what String returns. Its error is always nil.
func (v Version) AppendText(dst []byte) ([]byte, error) { return v.append(dst), nil }

func (v Version) append(dst []byte) []byte {
	switch {
	case v.text == plain:
		dst = append(strconv.AppendInt(dst, v.Wall, 10), ':')
		dst = append(strconv.AppendUint(dst, v.Counter, 10), ':')
		return append(dst, v.Node...)
	case v.text != "":
		return append(dst, v.text...)
	case v.Wall < 0:
		return fmt.Appendf(dst, "%015d:%05d:%s", v.Wall, v.Counter, v.Node)
	}
	// As above, and quicker: each request has a version.
	dst = append(appendPadded(dst, uint64(v.Wall), wallDigits), ':')
	dst = append(appendPadded(dst, v.Counter, counterDigits), ':')
	return append(dst, v.Node...)
}

// appendPadded appends n with at least so many digits.
func appendPadded(dst []byte, n uint64, digits int) []byte {
	var text [20]byte
	at := len(text)
	for ; n > 0 || digits > 0; digits-- {
		at--
		text[at] = '0' + byte(n%10)
		n /= 10
	}
	return append(dst, text[at:]...)
}

// IsZero reports whether there is no version.
func (v Version) IsZero() bool { return v.Wall == 0 && v.Counter == 0 && v.Node == "" }

// Compare orders by wall clock, then counter, then node as bytes (protocol.md 3.5). The
// padding of the text does not matter.
func (v Version) Compare(o Version) int {
	switch {
	case v.Wall != o.Wall:
		return cmp.Compare(v.Wall, o.Wall)
	case v.Counter != o.Counter:
		return cmp.Compare(v.Counter, o.Counter)
	}
	return cmp.Compare(v.Node, o.Node)
}

// Equal reports whether both are the same reading.
func (v Version) Equal(o Version) bool {
	return v.Wall == o.Wall && v.Counter == o.Counter && v.Node == o.Node
}

// Parts returns the wall clock in milliseconds since the Unix epoch, the counter and the
// node. It lets packages use a Version without importing this one.
func (v Version) Parts() (wall int64, counter uint64, node string) {
	return v.Wall, v.Counter, v.Node
}

// Time returns the wall clock of the version, in UTC.
func (v Version) Time() time.Time { return time.UnixMilli(v.Wall).UTC() }

type versionJSON struct {
	HLC     string `json:"hlc"`
	Wall    int64  `json:"wall_ms"`
	Counter uint64 `json:"counter"`
	Node    string `json:"node"`
	Time    string `json:"time,omitempty"`
}

// MarshalJSON writes the text as `hlc` and the parts as `wall_ms`, `counter`, `node` and,
// for years that RFC 3339 can express, `time`.
func (v Version) MarshalJSON() ([]byte, error) {
	j := versionJSON{HLC: v.String(), Wall: v.Wall, Counter: v.Counter, Node: v.Node}
	if t := v.Time(); t.Year() >= 0 && t.Year() <= 9999 {
		j.Time = t.Format("2006-01-02T15:04:05.000Z07:00")
	}
	return json.Marshal(j)
}

// UnmarshalJSON reads what MarshalJSON writes, and uses only `hlc`. A null leaves the
// version unchanged.
func (v *Version) UnmarshalJSON(data []byte) error {
	if string(data) == "null" {
		return nil
	}
	var j versionJSON
	if err := json.Unmarshal(data, &j); err != nil {
		return err
	}
	parsed, err := ParseVersion(j.HLC)
	if err != nil {
		return err
	}
	*v = parsed
	return nil
}
