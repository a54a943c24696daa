package verb

import (
	"time"

	"github.com/sscli/sscli/cmd/sscli/internal/suggest"
	"github.com/sscli/sscli/format"
	"github.com/sscli/sscli/internal/wire"
)

// MaxFenceAhead is the maximum time that a token may be ahead of the store's clock. The store refuses a
// token that is further ahead (protocol.md 4 row 12).
const MaxFenceAhead = time.Minute

// LatestFence returns the latest time that a key's token can have, given the key's version. The version
// holds the time of the last write, and the store accepts no token that is more than MaxAhead ahead of
// that time.
func LatestFence(written wire.Version) time.Time { return written.Time().Add(MaxFenceAhead) }

// IsFenceFromFuture reports whether a key's token is from the future, that is, newer than the key's version.
// A token that the store issued before the write cannot be newer. refused is a token that the store
// refused because the key's token is higher.
func IsFenceFromFuture(written, refused wire.Version) bool {
	return !written.IsZero() && refused.Compare(written) > 0 && !refused.Time().After(LatestFence(written))
}

// AboutFutureFence returns a text that explains that a key's token is from the future. now is the local
// time.
func AboutFutureFence(written wire.Version, now time.Time) string {
	return "the key's token is from the future: a clock was ahead, by at most a minute, when the key was written with it; " +
		"tokens that the store issues after " + FenceTime(LatestFence(written), now) + " pass"
}

// FutureFenceHint returns the hint for a key's token that is from the future. inLock is true if the command
// runs under `lock run`, which renews the token. force is the command or the flag that overrides the
// key's token.
func FutureFenceHint(written wire.Version, inLock bool, force suggest.Hint, now time.Time) suggest.Hint {
	passes := FenceTime(LatestFence(written), now)
	hint := suggest.Say("after " + passes + ", acquire or renew the lock, and write with the new token")
	if inLock {
		hint = suggest.Say("run it again with --fence lock after " + passes)
	}
	return append(hint, force.Then(" overrides the key's token now, and fences out every holder until then")...)
}

// FenceTime formats a time, and adds how far the time is from now.
func FenceTime(at, now time.Time) string {
	return at.UTC().Format("2006-01-02T15:04:05.000Z") + " (" + format.Age(now.Sub(at)) + ")"
}
