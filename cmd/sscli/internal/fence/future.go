package fence

import (
	"time"

	"github.com/sscli/sscli/client/wire"
	"github.com/sscli/sscli/format"
)

// MaxAhead is how far ahead of the store's clock a token may be that the store accepts
// (protocol.md 4 row 12).
const MaxAhead = time.Minute

// Latest returns the latest time that the token of a key can have, given the key's version. The version
// has the time of the last write, and each write with a token had a token that was at most MaxAhead ahead.
func Latest(written wire.Version) time.Time { return written.Time().Add(MaxAhead) }

// IsFromFuture reports whether the token of a key is from the future: newer than the key's version, which
// a token that the store issued before the write cannot be. refused is a token that the store refused as
// lower than the key's.
func IsFromFuture(written, refused wire.Version) bool {
	return !written.IsZero() && refused.Compare(written) > 0 && !refused.Time().After(Latest(written))
}

// AboutFuture says what is known of a key's token that is from the future. now is by the local clock.
func AboutFuture(written wire.Version, now time.Time) string {
	return "the key's token is from the future: a clock was ahead, by at most a minute, when the key was written with it; " +
		"tokens that the store issues after " + When(Latest(written), now) + " pass"
}

// FutureHint is what to do about a key's token that is from the future. In a command of lock run
// (inLock) the next token comes by itself. force is the command, or the flag, that gets past the key's token.
func FutureHint(written wire.Version, inLock bool, force string, now time.Time) string {
	hint := "after " + When(Latest(written), now) + ", acquire or renew the lock, and write with the new token"
	if inLock {
		hint = "run it again with --fence lock after " + When(Latest(written), now)
	}
	return hint + "; " + force + " gets past it now, and fences out every holder until then"
}

// When returns a time and how far away it is.
func When(at, now time.Time) string {
	return at.UTC().Format("2006-01-02T15:04:05.000Z") + " (" + format.Age(now.Sub(at)) + ")"
}
