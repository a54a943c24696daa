package format

import (
	"fmt"
	"math"
	"time"

	"github.com/sscli/sscli/internal/wire"
)

// A Version is the version of a key or, for a lock's key, the fencing token. The zero Version means no
// version.
type Version = wire.Version

// appendVersion appends v, or absent if there is no version. It escapes v, because the node in v is
// text from the network.
func appendVersion(dst []byte, v Version, absent string) []byte {
	if v.IsZero() {
		return append(dst, absent...)
	}
	return AppendEscape(dst, v.String())
}

func versionText(v Version, absent string) string { return string(appendVersion(nil, v, absent)) }

func appendTime(dst []byte, t time.Time) []byte {
	// AppendFormat is faster with RFC3339 than with a layout that has milliseconds.
	t = t.UTC()
	dst = t.AppendFormat(dst, time.RFC3339)
	ms := t.Nanosecond() / int(time.Millisecond)
	return append(dst[:len(dst)-len("Z")], '.', '0'+byte(ms/100), '0'+byte(ms/10%10), '0'+byte(ms%10), 'Z')
}

// Age returns a text such as "3m12s ago", or "in 3m12s" for a negative d: see [Coarse].
func Age(d time.Duration) string {
	if d < 0 {
		return "in " + Coarse(d)
	}
	return Coarse(d) + " ago"
}

// Coarse returns the length of d as text, such as 3m12s. It omits the sign, and truncates d to whole
// milliseconds, seconds, minutes or hours, depending on its length.
func Coarse(d time.Duration) string {
	const day = 24 * time.Hour
	switch abs := d.Abs(); {
	case abs == math.MaxInt64: // time.Sub returns the longest duration for any longer one
		return fmt.Sprintf("more than %dd", abs/day)
	case abs < time.Second:
		return abs.Truncate(time.Millisecond).String()
	case abs < time.Hour:
		return abs.Truncate(time.Second).String()
	case abs < day:
		return fmt.Sprintf("%dh%dm", abs/time.Hour, abs%time.Hour/time.Minute)
	default:
		return fmt.Sprintf("%dd%dh", abs/day, abs%day/time.Hour)
	}
}
