package check

import (
	"cmp"
	"fmt"
	"math"
	"time"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/format"
)

// A storeClock is what is known of the store's own clock: at the local time at, it was between least and most.
//
// Versions show the store's hybrid clock, which is never behind its own clock. A client with a fast clock sets it ahead,
// by at most broker.drift, and there it stays until the store's own clock has caught up. A counter of 0 shows
// that the store took the time from its own clock.
type storeClock struct {
	at, least, most time.Time
	exact           bool // no client had set it ahead
}

// clockOf derives the store's clock from a measurement of the skew that was made at the local time at.
func (b *broker) clockOf(skew client.Skew, at time.Time) *storeClock {
	reading := at.Add(-skew.Ahead)
	c := &storeClock{at, reading.Add(-skew.Bound), reading.Add(skew.Bound), skew.Exact}
	if !skew.Exact {
		c.least = c.least.Add(-b.drift)
	}
	return c
}

// fresh is for how long an exact reading is used when later ones are not exact.
const fresh = 10 * time.Minute

// now returns the bounds of the store's time at a local time.
func (c *storeClock) now(local time.Time) (least, most time.Time) {
	since := local.Sub(c.at) // on the monotonic clock, so that it does not matter whether the local clock is set
	return c.least.Add(since), c.most.Add(since)
}

// fastClient is why the store's own clock is not known.
const fastClient = "a client with a fast clock has set the store's clock ahead"

// forever stands for a duration without an upper bound.
const forever = time.Duration(math.MaxInt64)

// A span is a duration that is known to be between two.
type span struct{ least, most time.Duration }

// precise is the difference between the bounds of a span up to which it counts as one duration.
const precise = 100 * time.Millisecond

// age returns how long ago a key was written, by its version, and why that is not known better. Without a measurement
// of the store's clock, it is by the local clock, unless a version shows that the two clocks differ.
func (b *broker) age(version client.Version, local time.Time) (age span, why string) {
	least, most := local, local
	switch {
	case version.IsZero():
		return span{0, forever}, "the store sent no version"
	case b.clock != nil:
		least, most = b.clock.now(local)
		if !b.clock.exact {
			why = fastClient
		}
	case b.newest.Sub(local) > time.Second:
		return span{0, forever}, fmt.Sprintf("a version is %s ahead of this machine's clock", format.Span(b.newest.Sub(local)))
	}
	written := version.Time()
	age = span{max(0, least.Sub(written)), max(0, most.Sub(written))}
	if version.Counter != 0 {
		age.most += b.drift
		why = cmp.Or(why, "a client with a fast clock may have set the version ahead (see --drift)")
	}
	return age, why
}

// remembered narrows the age of a key by what earlier looks saw, which counts whatever the clocks show.
func (s span) remembered(k *seen, local time.Time) span {
	if !k.since.IsZero() {
		s.least = max(s.least, local.Sub(k.since))
	}
	if !k.after.IsZero() {
		s.most = min(s.most, local.Sub(k.after))
	}
	if s.most = max(s.most, s.least); s.most-s.least <= precise {
		s.most = s.least
	}
	return s
}

// skew returns how far the local clock is ahead of the store's, at least and at most; negative = behind.
func (b *broker) skew(local time.Time) span {
	least, most := b.clock.now(local)
	return span{local.Round(0).Sub(most), local.Round(0).Sub(least)}
}
