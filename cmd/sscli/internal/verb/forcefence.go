package verb

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/cmd/sscli/internal/app"
	"github.com/sscli/sscli/cmd/sscli/internal/fault"
	"github.com/sscli/sscli/cmd/sscli/internal/suggest"
	"github.com/sscli/sscli/format"
	"github.com/sscli/sscli/internal/wire"
)

// send sends the only command of a request. With --force-fence it overrides the key's fencing
// token. The error for a refused or missing token has details about the key's token.
func send(ctx context.Context, a *app.App, s *client.Session, req Request) (client.Result, error) {
	c := req.Commands[0]
	if req.Force {
		return force(ctx, a, s, c)
	}
	result, err := s.Do(ctx, c)
	if err != nil && (isLower(err) || fault.IsStoreError(wire.ErrorFenceRequired)(err)) {
		err = aboutFence(ctx, a, s, c, err)
	}
	if r, ok := result.(client.VDelResult); ok && r.Found && !r.Deleted {
		noteNewline(ctx, a, s, c)
	}
	return result, err
}

// force writes a key although a fencing token protects it. The store does not check where a token
// comes from (protocol.md 4), so force sends the key's version as the token. The version is newer
// than the stored token, unless that token is from the future. If the store refuses the version,
// force tries the current time, and then later times in growing steps, because a token that is later
// than necessary would lock out the lock's holders for longer.
func force(ctx context.Context, a *app.App, s *client.Session, c client.Command) (client.Result, error) {
	if c.Key() == "" {
		return s.Do(ctx, c)
	}
	if c.Verb() == wire.VerbSet { // after a delete, nothing is fenced
		if err := CheckFenceKey(a.Env, c.Key()); err != nil {
			return nil, err
		}
	}
	got, err := s.Do(ctx, client.Get(c.Key()))
	if err != nil {
		return nil, fmt.Errorf("the version of the key, for --force-fence: %w", err)
	}
	now := got.(client.GetResult)
	if !now.Found {
		return s.Do(ctx, c) // a missing key has no token
	}
	written, token := now.Version, now.Version
	if token.IsZero() {
		if token, err = tokenAfter(token); err != nil {
			return nil, err
		}
	}
	result, err := s.Do(ctx, c.WithFence(token))
	if isLower(err) {
		if token, err = tokenAfter(token); err != nil {
			return nil, err
		}
		result, err = s.Do(ctx, c.WithFence(token))
	}
	latest := LatestFence(written).UnixMilli() + 1
	for step := int64(1000); isLower(err) && !written.IsZero() && token.Wall < latest; step *= 2 {
		token = wire.Version{Wall: min(token.Wall+step, latest), Node: "sscli"}
		result, err = s.Do(ctx, c.WithFence(token))
	}
	if err == nil && changed(c, result) {
		a.Warn(format.Brief(c.Key()) + " " + forced(c, token))
	}
	return result, err
}

// changed reports whether the store says that a request changed the key. It is false for a request that only reads.
func changed(c client.Command, result client.Result) bool {
	switch r := result.(type) {
	case client.SetResult:
		return r.Applied
	case client.DelResult:
		return r.Deleted
	case client.VDelResult:
		return r.Deleted
	case client.CallResult:
		return wire.IsWrite(c.Verb()) && (r.Value.Int > 0 || r.Value.Kind == wire.SimpleString)
	}
	return false
}

// forced returns a text that says what a write with --force-fence did with the token.
func forced(c client.Command, token wire.Version) string {
	switch now := time.Now(); {
	case c.Verb() == wire.VerbDel || c.Verb() == wire.VerbVDel:
		return "may have had a fencing token and has none now: the holder of its lock writes without protection"
	case token.Time().After(now):
		return "was written with the token " + token.String() + ", because its token was from the future: holders of its lock can write again after " + FenceTime(token.Time(), now)
	}
	return "was written with the token " + token.String() + ": a holder of its lock with an older token is fenced out"
}

func isLower(err error) bool { return fault.IsStoreError(wire.ErrorFenceLower)(err) }

// tokenAfter returns a token that is newer than token. Its time is now, or the time of token if that is
// later.
func tokenAfter(token wire.Version) (wire.Version, error) {
	clock := wire.NewClock("sscli", time.Now)
	err := clock.Observe(token)
	if err == nil {
		token, err = clock.Tick()
	}
	if err != nil {
		return token, fmt.Errorf("the local clock: %w", err)
	}
	return token, nil
}

// aboutFence adds details to the error for a refused or missing token: when the key was written,
// whether the key's token is from the future, and who holds the lock of the surrounding `lock run`.
// The key's token itself cannot be read (protocol.md 4).
func aboutFence(ctx context.Context, a *app.App, s *client.Session, c client.Command, refused error) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	var known []string
	var hint suggest.Hint // nil = the hint in the table of package fault
	lock, _ := a.Env(EnvLockName)
	labelRead(a, c.Key())
	if now, err := s.Do(ctx, client.Get(c.Key())); err == nil && !now.Info().Version.IsZero() {
		version := now.Info().Version
		known = append(known, fmt.Sprintf("the key was last written at %s (%s)", version, age(version)), "the store does not show its token")
		token, err := wire.ParseToken(c.Fence())
		if isLower(refused) && err == nil && IsFenceFromFuture(version, token) {
			known = append(known, AboutFutureFence(version, time.Now())...)
			hint = FutureFenceHint(version, lock != "", suggest.Try("`--force-fence in place of --fence`"), time.Now())
		}
	}
	if lock != "" {
		if hint == nil && c.Fence() == "" {
			hint = suggest.Try("the same command with `--fence lock`, if lock `NAME` protects the key").Fill(suggest.Name, lock)
		}
		labelRead(a, lock)
		if held, err := s.Do(ctx, client.Get(lock)); err == nil {
			known = append(known, aboutLock(a, lock, held.(client.GetResult), c.Fence()))
		}
	}
	if len(known) == 0 {
		return refused
	}
	refused = &fault.DetailError{Err: refused, Details: known}
	if hint != nil {
		refused = &fault.NextError{Err: refused, Hint: hint}
	}
	return refused
}

// labelRead says in a trace that the next GET is sscli's own. The trace does not change what is sent.
func labelRead(a *app.App, key string) {
	if a.Settings.Trace {
		a.Inform("reading " + format.Brief(key) + " for the hint")
	}
}

func age(v wire.Version) string { return format.Age(time.Since(v.Time())) }

// aboutLock returns a text that says who holds the lock of the surrounding `lock run` and, if the
// lock's token is newer than token, by how much. held is the result of reading the lock's key.
func aboutLock(a *app.App, name string, held client.GetResult, token string) string {
	if !held.Found {
		return fmt.Sprintf("lock %s is free now", format.Brief(name))
	}
	who := format.Quote(string(held.Value))
	if ours, _ := a.Env(HolderVariable); ours == string(held.Value) {
		who = "the lock run around this command"
	}
	text := fmt.Sprintf("lock %s is held by %s, with the token %s (%s)", format.Brief(name), who, held.Version, age(held.Version))
	if v, err := wire.ParseToken(token); err == nil && v.Compare(held.Version) < 0 {
		text += ", which is newer than yours by " + format.Span(held.Version.Time().Sub(v.Time()))
	}
	return text
}

// noteNewline prints a note if the value given to VDEL differs from the stored one only by newlines at
// the end. It does nothing with --quiet.
func noteNewline(ctx context.Context, a *app.App, s *client.Session, c client.Command) {
	if a.Settings.Quiet {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	labelRead(a, c.Key())
	result, err := s.Do(ctx, client.Get(c.Key()))
	if err != nil {
		return // the VDEL was answered, and the note is optional
	}
	stored, given := string(result.(client.GetResult).Value), c.Value()
	switch {
	case stored == given:
	case strings.TrimRight(stored, "\r\n") != strings.TrimRight(given, "\r\n"):
	case len(stored) > len(given):
		a.Inform(fmt.Sprintf("the value of %s differs only by a newline at its end, which VALUE does not have", format.Brief(c.Key())))
	default:
		a.Inform(fmt.Sprintf("the value of %s differs only by a newline at the end of VALUE", format.Brief(c.Key())))
	}
}
