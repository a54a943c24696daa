package format

import (
	"fmt"
	"time"
)

// A Version is a hybrid logical clock reading. Nil means that there is none, as
// does a version with a method IsZero that says so: a struct's zero value is
// easily put where nil was meant.
type Version interface {
	String() string  // as it was received
	Time() time.Time // its wall clock, in UTC
	// Parts are the wall clock in milliseconds since the Unix epoch, the counter
	// and the node.
	Parts() (wall int64, counter uint64, node string)
}

func none(v Version) bool {
	if v == nil {
		return true
	}
	z, ok := v.(interface{ IsZero() bool })
	return ok && z.IsZero()
}

func versionFields(v Version) any {
	if none(v) {
		return nil
	}
	wall, counter, node := v.Parts()
	return object{
		{"hlc", v.String()}, {"wall_ms", wall}, {"counter", counter}, {"node", node}, {"time", timeField(v.Time())},
	}
}

// timeField leaves out years that RFC 3339 cannot write.
func timeField(t time.Time) any {
	return when(t.Year() >= 0 && t.Year() <= 9999, rfc3339(t))
}

func rfc3339(t time.Time) string { return string(appendTime(nil, t)) }

// appendVersion writes absent for no version. The node is text from the network.
func appendVersion(dst []byte, v Version, absent string) []byte {
	if none(v) {
		return append(dst, absent...)
	}
	return AppendEscape(dst, v.String())
}

func appendTime(dst []byte, t time.Time) []byte {
	return t.UTC().AppendFormat(dst, "2006-01-02T15:04:05.000Z07:00")
}

// Age says how long ago something was, for messages.
func Age(d time.Duration) string { return age(d) }

// age says how long ago something was, more coarsely the longer it is.
func age(d time.Duration) string {
	const day = 24 * time.Hour
	var text string
	switch abs := d.Abs(); {
	case abs < time.Second:
		text = abs.Truncate(time.Millisecond).String()
	case abs < day:
		text = abs.Truncate(time.Second).String()
	default:
		text = fmt.Sprintf("%dd%dh", abs/day, abs%day/time.Hour)
	}
	if d < 0 {
		return "in " + text
	}
	return text + " ago"
}
