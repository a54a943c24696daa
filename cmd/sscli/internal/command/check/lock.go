package check

import (
	"crypto/sha256"
	"fmt"
	"time"

	"github.com/sscli/sscli/format"
)

func lockKind() kind {
	return kind{
		name: aLock, operand: "--lock NAME", flag: "check the lock `NAME`; may be repeated", changesHands: true,
		look: (*spec).lookAtLock, judge: (*verdict).lock, expose: (*spec).exposeLock,
		families: func() []family {
			return []family{
				{"sscli_lock_held", "gauge", "Whether the lock is held."},
				{"sscli_lock_held_seconds", "gauge", "How long the holder has had the lock, as far as it was seen."},
				{"sscli_lock_version_ahead_seconds", "gauge", "How far the lock's fencing token is ahead of this machine's clock."},
				{"sscli_lock_holder_changes_total", "counter", "Changes of the lock's holder that the watch saw."},
			}
		},
	}
}

// lookAtLock judges the holder of a lock.
func (s *spec) lookAtLock(content []byte, _ bool) (found value) {
	if s.holder != nil && !s.holder.Match(content) {
		found.problems = append(found.problems, fmt.Sprintf("held by %s, expected a holder that matches %s", format.Brief(holderOf(content)), s.holder))
	}
	return found
}

// maxHolder is how much of a lock's value is kept, in bytes. A hash of the rest tells holders apart.
const maxHolder = 256

// holderOf returns the holder that a lock's value names.
func holderOf(content []byte) string {
	if len(content) <= maxHolder {
		return string(content)
	}
	return fmt.Sprintf("%s… %x", content[:maxHolder], sha256.Sum256(content))
}

func (v *verdict) lock(from *view, local time.Time) {
	s, b, k := v.spec, &from.broker, from.seen[v.spec]
	switch {
	case !k.found && s.conditions["held"]:
		v.problem(critical, "free, expected it to be held")
	case k.found && s.conditions["free"]:
		v.problem(critical, "held by %s, expected it to be free", format.Brief(k.holder))
	case !k.found:
		v.fact("free")
	default:
		v.fact("held by %s", format.Brief(k.holder))
	}
	for _, problem := range k.value.problems {
		v.problem(critical, "%s", problem)
	}
	v.rate(b, k, local, " of the holder")
	if !k.found {
		return
	}
	if s.conditions["held-max"] && !v.lost(b) {
		v.measure(lasting("held", b.held(k, local)), "held for %s", "", "held-max")
	}
	v.ahead(k, local)
}

// held returns for how long a lock has had its holder, at least: the holder wrote it then, and may have had it before.
func (b *broker) held(k *seen, local time.Time) time.Duration {
	age, _ := b.age(k.version, local)
	if k.since.IsZero() {
		return age.least
	}
	return max(age.least, local.Sub(k.since))
}

func (s *spec) exposeLock(e *exposition, v *view, labels []label, watched bool, local time.Time) {
	k := v.seen[s]
	e.add("sscli_lock_held", truth(k.found), labels...)
	if k.found {
		e.add("sscli_lock_held_seconds", v.broker.held(k, local).Seconds(), labels...)
		if !k.version.IsZero() {
			e.add("sscli_lock_version_ahead_seconds", max(0, k.version.Time().Sub(local).Seconds()), labels...)
		}
	}
	if watched {
		e.add("sscli_lock_holder_changes_total", float64(k.total), labels...)
	}
}
