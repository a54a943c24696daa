package explain

import (
	"errors"
	"strings"
	"time"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/cmd/sscli/internal/suggest"
	"github.com/sscli/sscli/cmd/sscli/internal/verb"
	"github.com/sscli/sscli/format"
	"github.com/sscli/sscli/internal/wire"
)

// facts holds what sscli knows about a write, its key and the key's lock.
type facts struct {
	key     string
	found   bool
	version client.Version // version of the key; zero = unknown

	lock      string // empty if the user named no lock
	held      bool
	holder    string
	lockToken client.Version // the lock's current token; zero = unknown

	token client.Version // token of the write; zero = none
	now   time.Time      // by the local clock

	asked   bool  // a probe was sent
	refusal error // a *wire.StoreError, if the store refused the probe
}

// The verdicts.
const (
	passes  = "passes"
	refused = "refused"
	unknown = "unknown"
)

// The rules that a verdict names. Some have the same name as a kind of error, such as
// [wire.ErrorFenceRequired].
const (
	ruleUnfenced = "unfenced"
	ruleRequired = "fencing_required"
	ruleLower    = "fencing_lower"
	ruleEqual    = "fencing_equal"
	ruleNewer    = "fencing_newer"
	ruleAhead    = "fencing_ahead"
)

// verdict returns the verdict of the probe or, if no probe was sent, predicts the store's reply by
// the rules of protocol.md 4. A token is the version of a lock, and the store's versions only
// increase. So a key's token is never newer than the key's version, unless a clock was ahead. Even
// then the key's token is at most [wire.MaxDrift] newer.
func (f facts) verdict() format.Explanation {
	e := format.Explanation{
		Key: f.key, Found: f.found, Version: f.version,
		Lock: f.lock, Held: f.held, Holder: f.holder, LockToken: f.lockToken,
		Token: f.token, ToKey: compare(f.token, f.version), ToLock: compare(f.token, f.lockToken),
	}
	if f.held && !f.lockToken.IsZero() && f.found && f.lockToken.Compare(f.version) <= 0 {
		e.AtLeast = f.lockToken
	}
	lock := format.ShWord(f.lock)
	decide := func(verdict, rule, why string, hint suggest.Hint) format.Explanation {
		e.Verdict, e.Rule, e.Why, e.Hint = verdict, rule, why, hint.String()
		return e
	}
	if e.Asked = f.asked; f.asked {
		e.AtLeast = client.Version{}
		return decide(f.answered())
	}
	ask := f.again()
	run := f.run()
	switch {
	case f.isAhead():
		e.AssumesClock = true
		return decide(refused, ruleAhead, "the token is more than a minute ahead of the local clock; if the store's clock is right too, the store refuses every write with it",
			f.parse())
	case f.token.Time().After(f.now) && f.token.Time().After(f.storeClock().Add(wire.MaxDrift)):
		// With a token that is not ahead of the local clock, the store refuses the time of the request first.
		return decide(unknown, "", "the token is ahead of the local clock: if the store's clock is behind, it is too far ahead for the store, which then refuses it",
			ask)
	case !f.found && f.token.IsZero():
		return decide(passes, ruleUnfenced, "a missing key has no fence, so a write needs no token", nil)
	case !f.found:
		return decide(passes, ruleUnfenced, "a missing key has no fence; once written with the token, it refuses every older one, and every write without one", nil)
	case f.token.IsZero() && f.lock == "":
		return decide(unknown, "", "if the key was ever written with a token, a write without one is refused, and that cannot be read",
			ask)
	case f.token.IsZero():
		e.Assumes = true
		return decide(refused, ruleRequired, "if the key is written under lock "+lock+", it is fenced, and refuses every write without a token", run)
	case f.version.IsZero():
		return decide(unknown, "", "the store sent no version of the key to compare the token with", ask)
	case f.token.Compare(f.version) >= 0 && !f.token.Time().Before(verb.LatestFence(f.version)):
		return decide(passes, ruleNewer, "the token is more than a minute newer than the last write of the key, so the key has no newer token", nil)
	case f.token.Compare(f.version) >= 0:
		return decide(unknown, "", "the token is newer than the last write of the key, so it passes unless a clock was ahead then: the key's token can be as late as "+verb.FenceTime(verb.LatestFence(f.version), f.now), ask)
	case f.lock == "":
		return decide(unknown, "", "the key was written after the token was issued, and whether that was with a newer token cannot be read", ask)
	case !f.held:
		return decide(unknown, "", "the key was written after the token was issued, and the lock is free now: who wrote, and with which token, cannot be read", ask)
	case e.AtLeast.IsZero():
		return decide(unknown, "", "the key was written after the token was issued and before the lock's present token: who wrote, and with which token, cannot be read", ask)
	}
	e.Assumes = true
	switch f.token.Compare(f.lockToken) {
	case -1:
		return decide(refused, ruleLower, "the key was written when lock "+lock+" had a newer token than yours: the lock was lost, or renewed, since yours was issued", run)
	case 0:
		return decide(passes, ruleEqual, "the token is the lock's present one, and the key was written since it was issued", nil)
	}
	return decide(passes, ruleNewer, "the token is newer than the lock's, with which the key was written last", nil)
}

// answered returns the verdict that follows from the store's reply to the probe.
func (f facts) answered() (verdict, rule, why string, hint suggest.Hint) {
	kind := wire.ErrorUnknown
	if refusal, ok := errors.AsType[*wire.StoreError](f.refusal); ok {
		kind = refusal.Kind()
	}
	switch {
	case f.refusal == nil && !f.found:
		return passes, ruleUnfenced, "a missing key has no fence", nil
	case f.refusal == nil && f.token.IsZero():
		return passes, ruleUnfenced, "the store did not refuse a write without a token, so the key is not fenced", nil
	case f.refusal == nil:
		return passes, "", "the store did not refuse the token", nil
	case kind == wire.ErrorFenceRequired:
		return refused, ruleRequired, "the key is fenced: the store refuses a write without a token", f.run()
	case kind == wire.ErrorFenceAhead:
		return refused, ruleAhead, "the token is more than a minute ahead of the store's clock", f.parse()
	case verb.IsFenceFromFuture(f.version, f.token):
		force := suggest.Try("`sscli set KEY … --force-fence`").Fill(suggest.Key, f.key)
		return refused, ruleLower, strings.Join(verb.AboutFutureFence(f.version, f.now), "; "), verb.FutureFenceHint(f.version, false, force, f.now)
	}
	return refused, ruleLower, "the key has a newer token than yours: the lock was lost, or renewed, since yours was issued", f.run()
}

// again returns a hint: this `sscli explain` with --ask.
func (f facts) again() suggest.Hint {
	argv := []string{"sscli", "explain"}
	last := strings.HasPrefix(f.key, "-") // after --, and so after the flags
	if !last {
		argv = append(argv, f.key)
	}
	if f.lock != "" {
		argv = append(argv, "--lock", f.lock)
	}
	if !f.token.IsZero() {
		argv = append(argv, "--fence", f.token.String())
	}
	argv = append(argv, "--ask")
	if last {
		argv = append(argv, "--", f.key)
	}
	return suggest.Run(argv...).Then(" asks the store")
}

// run returns a hint: a command line that writes the key under the lock.
func (f facts) run() suggest.Hint {
	run := "`sscli lock run LOCK -- sscli set KEY … --fence lock`"
	if f.lock == "" {
		run += ", with the lock that protects the key"
	}
	return suggest.Try(run).Fill(suggest.Key, f.key).Fill(suggest.OtherLock, f.lock)
}

func (f facts) parse() suggest.Hint {
	return suggest.Try("`sscli hlc parse TOKEN` shows its time; use the token exactly as the lock's reply gave it").Fill(suggest.Token, f.token.String())
}

// isAhead reports whether the token is too far ahead of the store's clock, if that clock shows at least the
// local time.
func (f facts) isAhead() bool {
	clock := f.storeClock()
	if f.now.After(clock) {
		clock = f.now
	}
	return f.token.Time().Sub(clock) > wire.MaxDrift
}

// storeClock returns a time that the store's clock has reached: that of the newest version that was read.
func (f facts) storeClock() (clock time.Time) {
	for _, v := range []client.Version{f.version, f.lockToken} {
		if !v.IsZero() && v.Time().After(clock) {
			clock = v.Time()
		}
	}
	return clock
}

// compare returns "older", "equal" or "newer": how version a relates to version b. It returns "" if
// either version is zero.
func compare(a, b wire.Version) string {
	if a.IsZero() || b.IsZero() {
		return ""
	}
	return [...]string{"older", "equal", "newer"}[a.Compare(b)+1]
}
