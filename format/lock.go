package format

import (
	"fmt"
	"strconv"
	"time"
)

// Lock is a step that was taken with a lock: `lock acquire`, `renew`, `release` and
// `hold`.
type Lock struct {
	Op     string // "acquire", …
	Name   string
	Holder string
	Token  Version       // none when released
	TTL    time.Duration // of the lease; zero when released
}

func (l Lock) fields() object {
	return object{
		{"op", "lock_" + l.Op},
		{"name", l.Name},
		{"holder", l.Holder},
		{"token", versionFields(l.Token)},
		{"ttl_ms", when(l.TTL != 0, l.TTL.Milliseconds())},
	}
}

func (l Lock) human(dst []byte, s *style) []byte {
	dst = append(dst, "OK\n"...)
	if none(l.Token) {
		return dst
	}
	return append(append(dst, s.faint.Sprint(tokenLine(l.Token))...), '\n')
}

func tokenLine(v Version) string {
	line := appendVersion([]byte("token "), v, "unknown")
	if none(v) {
		return string(line)
	}
	return string(appendTime(append(line, "  "...), v.Time()))
}

// raw is the token alone, for a shell's variable; a release is what vdel answers.
func (l Lock) raw(dst []byte) []byte {
	if none(l.Token) {
		return append(dst, "1\t-\n"...)
	}
	return append(appendVersion(dst, l.Token, ""), '\n')
}

// LockStatus is the answer to `lock status`.
type LockStatus struct {
	Name   string
	Held   bool
	Holder string
	Token  Version
	Age    time.Duration // since the token was given
	Seen   bool          // it was seen to be given; if not, Age is what the local clock makes of it

	Observed time.Duration // --observe; zero: not
	Renewals int           // that were seen meanwhile
}

func (l LockStatus) fields() object {
	held := func(value any) any { return when(l.Held, value) }
	by := "local_clock"
	if l.Seen {
		by = "notification"
	}
	return object{
		{"op", "lock_status"},
		{"name", l.Name},
		{"held", l.Held},
		{"holder", held(l.Holder)},
		{"token", held(versionFields(l.Token))},
		{"age_ms", when(l.Held && !none(l.Token), milliseconds(l.Age))},
		{"age_by", when(l.Held && !none(l.Token), by)},
		{"observed_ms", when(l.Observed != 0, l.Observed.Milliseconds())},
		{"renewals", when(l.Observed != 0, l.Renewals)},
	}
}

func (l LockStatus) human(dst []byte, s *style) []byte {
	if l.Held {
		dst = append(append(dst, "held by "...), Quote(l.Holder)...)
		line := tokenLine(l.Token)
		if !none(l.Token) {
			line += "  (" + age(l.Age) + ")"
		}
		dst = append(append(append(dst, '\n'), s.faint.Sprint(line)...), '\n')
	} else {
		dst = append(dst, "free\n"...)
	}
	if l.Observed == 0 {
		return dst
	}
	line := fmt.Sprintf("renewals in %v: %d", l.Observed, l.Renewals)
	if l.Held && l.Renewals == 0 {
		line = s.warning.Sprint(line + ", the holder seems not to renew it")
	}
	return append(append(dst, line...), '\n')
}

// raw is `held`, the holder, the token and its age in milliseconds, or `free`; with
// --observe the number of renewals comes last.
func (l LockStatus) raw(dst []byte) []byte {
	if l.Held {
		dst = AppendEscape(append(dst, "held\t"...), l.Holder)
		dst = appendVersion(append(dst, '\t'), l.Token, "-")
		dst = append(dst, '\t')
		if none(l.Token) {
			dst = append(dst, '-')
		} else {
			dst = strconv.AppendInt(dst, l.Age.Milliseconds(), 10)
		}
	} else {
		dst = append(dst, "free"...)
	}
	if l.Observed != 0 {
		dst = strconv.AppendInt(append(dst, '\t'), int64(l.Renewals), 10)
	}
	return append(dst, '\n')
}
