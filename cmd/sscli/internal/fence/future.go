package fence

import (
	"time"

	"github.com/sscli/sscli/format"
	"github.com/sscli/sscli/internal/wire"
)

// MaxAhead is the maximum time that a token may be ahead of the store's clock. The store refuses a
// token that is further ahead (protocol.md 4 row 12).
const MaxAhead = time.Minute

// Latest returns the latest time that a key's token can have, given the key's version. The version
// holds the time of the last write, and the store accepts no token that is more than MaxAhead ahead of
// that time.
func Latest(written wire.Version) time.Time { return written.Time().Add(MaxAhead) }

// IsFromFuture reports whether a key's token is from the future, that is, newer than the key's version.
// A token that the store issued before the write cannot be newer. refused is a token that the store
// refused because the key's token is higher.
func IsFromFuture(written, refused wire.Version) bool {
	return !written.IsZero() && refused.Compare(written) > 0 && !refused.Time().After(Latest(written))
}

// AboutFuture returns a text that explains that a key's token is from the future. now is the local
// time.
func AboutFuture(written wire.Version, now time.Time) string {
	return "the key's token is from the future: a clock was ahead, by at most a minute, when the key was written with it; " +
		"tokens that the store issues after " + When(Latest(written), now) + " pass"
}

// FutureHint returns the hint for a key's token that is from the future. inLock is true if the command
// runs under `lock run`, which renews the token. force is the command or the flag that overrides the
// key's token.
func FutureHint(written wire.Version, inLock bool, force string, now time.Time) string {
	hint := "after " + When(Latest(written), now) + ", acquire or renew the lock, and write with the new token"
	if inLock {
		hint = "run it again with --fence lock after " + When(Latest(written), now)
	}
	return hint + "; " + force + " overrides the key's token now, and fences out every holder until then"
}

// When formats a time, and adds how far the time is from now.
func When(at, now time.Time) string {
	return at.UTC().Format("2006-01-02T15:04:05.000Z") + " (" + format.Age(now.Sub(at)) + ")"
}
