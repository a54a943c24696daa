package format

import (
	"fmt"
	"strconv"
	"time"
)

// Lock is the result of `lock acquire`, `renew`, `release` and `hold`.
type Lock struct {
	Op     string // "acquire", "renew", "release" or "hold"
	Name   string
	Holder string
	Token  Version       // nil: released
	TTL    time.Duration // of the lease; 0: released
}

func (l Lock) fields() object {
	return object{
		{"op", "lock_" + l.Op},
		{"name", l.Name},
		{"holder", l.Holder},
		{"token", versionField(l.Token)},
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

// raw writes the token alone, for a shell variable; for a release, what `vdel` writes.
func (l Lock) raw(dst []byte) []byte {
	if none(l.Token) {
		return append(dst, "1\t-\n"...)
	}
	return append(appendVersion(dst, l.Token, ""), '\n')
}

// LockStatus is the result of `lock status`.
type LockStatus struct {
	Name   string
	Held   bool
	Holder string
	Token  Version
	Age    time.Duration // since the token was issued
	Seen   bool          // its notification was seen; otherwise Age relies on the local clock

	Observed time.Duration // --observe; 0: not observed
	Renewals int           // seen while observing
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
		{"token", held(versionField(l.Token))},
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
		line = s.warning.Sprint(line + ", the holder does not seem to renew it")
	}
	return append(append(dst, line...), '\n')
}

// raw writes `held`, the holder, the token and its age in milliseconds, or `free`. With
// --observe the number of renewals follows.
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
