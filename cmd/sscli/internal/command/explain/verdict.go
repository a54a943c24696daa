package explain

import (
	"time"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/client/wire"
	"github.com/sscli/sscli/cmd/sscli/internal/app"
	"github.com/sscli/sscli/format"
)

// facts hold what is known of a write before it is sent.
type facts struct {
	key     string
	found   bool
	version client.Version // of the key; zero = not known

	lock      string // empty = not named
	held      bool
	holder    string
	lockToken client.Version // zero = not known

	token client.Version // of the write; zero = none
	now   time.Time      // by the local clock
}

// The verdicts.
const (
	passes  = "passes"
	refused = "refused"
	unknown = "unknown"
)

// The rules that a verdict can follow from. Most are named after a kind of error.
const (
	ruleUnfenced = "unfenced" // a key that is missing has no fence
	ruleRequired = "fencing_required"
	ruleLower    = "fencing_lower"
	ruleEqual    = "fencing_equal"
	ruleNewer    = "fencing_newer"
	ruleAhead    = "fencing_ahead"
)

// maxAhead is how far a token may be ahead of the store's clock (protocol.md 4 row 12).
const maxAhead = time.Minute

// verdict decides what the store would reply, by the rules of protocol.md 4. Versions grow, and a
// token is the version of a lock. So the token of a write is never newer than the version of the
// written key, unless a client invented the token.
func (f facts) verdict() format.Explanation {
	e := format.Explanation{
		Key: f.key, Found: f.found, Version: app.Version(f.version),
		Lock: f.lock, Held: f.held, Holder: f.holder, LockToken: app.Version(f.lockToken),
		Token: app.Version(f.token), ToKey: compare(f.token, f.version), ToLock: compare(f.token, f.lockToken),
	}
	if f.held && !f.lockToken.IsZero() && f.found && f.lockToken.Compare(f.version) <= 0 {
		e.AtLeast = f.lockToken
	}
	key, lock := format.ShWord(f.key), format.ShWord(f.lock)
	run := "sscli lock run " + lock + " -- sscli set " + key + " … --fence lock"
	decide := func(verdict, rule, why, hint string) format.Explanation {
		e.Verdict, e.Rule, e.Why, e.Hint = verdict, rule, why, hint
		return e
	}
	switch {
	case f.isAhead():
		return decide(refused, ruleAhead, "the token is more than a minute ahead of the local clock; if the store's clock is right too, the store refuses every write with it",
			"sscli hlc parse "+format.ShWord(f.token.String())+" shows its time; use the token exactly as the lock's reply gave it")
	case !f.found && f.token.IsZero():
		return decide(passes, ruleUnfenced, "a missing key has no fence, so a write needs no token", "")
	case !f.found:
		return decide(passes, ruleUnfenced, "a missing key has no fence; once written with the token, it refuses every older one, and every write without one", "")
	case f.token.IsZero() && f.lock == "":
		return decide(unknown, "", "if the key was ever written with a token, a write without one is refused, and that cannot be read",
			"sscli explain "+key+" --lock LOCK, with the lock that protects the key")
	case f.token.IsZero():
		e.Assumes = true
		return decide(refused, ruleRequired, "if the key is written under lock "+lock+", it is fenced, and refuses every write without a token", run)
	case f.version.IsZero():
		return decide(unknown, "", "the store sent no version of the key to compare the token with", "")
	case f.token.Compare(f.version) >= 0:
		return decide(passes, ruleNewer, "the token is newer than the last write of the key, so the key has no newer token, unless a client invented one", "")
	case f.lock == "":
		return decide(unknown, "", "the key was written after the token was issued, and whether that was with a newer token cannot be read",
			"sscli explain "+key+" --lock LOCK --fence "+format.ShWord(f.token.String())+", with the lock that protects the key")
	case !f.held:
		return decide(unknown, "", "the key was written after the token was issued, and the lock is free now: who wrote, and with which token, cannot be read", run)
	case e.AtLeast == nil:
		return decide(unknown, "", "the key was written after the token was issued and before the lock's present token: who wrote, and with which token, cannot be read", run)
	}
	e.Assumes = true
	switch f.token.Compare(f.lockToken) {
	case -1:
		return decide(refused, ruleLower, "the key was written when lock "+lock+" had a newer token than yours: the lock was lost, or renewed, since yours was issued", run)
	case 0:
		return decide(passes, ruleEqual, "the token is the lock's present one, and the key was written since it was issued", "")
	}
	return decide(passes, ruleNewer, "the token is newer than the lock's, with which the key was written last", "")
}

// isAhead reports whether the token is too far ahead of the store's clock. That clock is at least as
// late as the newest version that was read.
func (f facts) isAhead() bool {
	clock := f.now
	for _, v := range []client.Version{f.version, f.lockToken} {
		if !v.IsZero() && v.Time().After(clock) {
			clock = v.Time()
		}
	}
	return f.token.Time().Sub(clock) > maxAhead
}

// compare returns older, equal or newer for a compared with b; empty if one is not known.
func compare(a, b wire.Version) string {
	if a.IsZero() || b.IsZero() {
		return ""
	}
	return [...]string{"older", "equal", "newer"}[a.Compare(b)+1]
}
