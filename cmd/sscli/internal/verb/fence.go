package verb

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/client/wire"
	"github.com/sscli/sscli/cmd/sscli/internal/app"
	"github.com/sscli/sscli/cmd/sscli/internal/fault"
	"github.com/sscli/sscli/cmd/sscli/internal/fence"
	"github.com/sscli/sscli/format"
)

// send sends the only command of a request. With --force-fence it gets past the fencing token of
// the key. The error for a refused token says what is known about the token.
func send(ctx context.Context, a *app.App, do sender, req Request) (client.Result, error) {
	c := req.Commands[0]
	if req.Force {
		return force(ctx, a, do, c)
	}
	reply, err := do(ctx, c)
	if err != nil && (fault.IsStoreError(wire.ErrorFenceLower)(err) || fault.IsStoreError(wire.ErrorFenceRequired)(err)) {
		err = aboutFence(ctx, a, do, c, err)
	}
	return reply, err
}

// force writes a key although a fencing token protects it. The store does not check where a
// token comes from (protocol.md 4), so force sends the version of the key as the token: it is
// newer than the token that was stored with the key, unless that token was made up. If the
// store refuses it, force sends the present time.
func force(ctx context.Context, a *app.App, do sender, c client.Command) (client.Result, error) {
	if c.Key() == "" {
		return do(ctx, c)
	}
	got, err := do(ctx, client.Get(c.Key()))
	if err != nil {
		return nil, fmt.Errorf("the version of the key, for --force-fence: %w", err)
	}
	now := got.(client.GetResult)
	if !now.Found {
		return do(ctx, c) // a missing key has no token
	}
	token := now.Version
	if token.IsZero() {
		if token, err = tokenAfter(token); err != nil {
			return nil, err
		}
	}
	reply, err := do(ctx, c.WithFence(token))
	if fault.IsStoreError(wire.ErrorFenceLower)(err) {
		if token, err = tokenAfter(token); err != nil {
			return nil, err
		}
		reply, err = do(ctx, c.WithFence(token))
	}
	if err == nil {
		done := "was written with the token " + token.String() + ": a holder of its lock with an older token is fenced out"
		if c.Verb() == wire.VerbDel || c.Verb() == wire.VerbVDel {
			done = "may have had a fencing token and has none now: the holder of its lock writes without protection"
		}
		a.Warn(format.Brief(c.Key())+" "+done, "")
	}
	return reply, err
}

// tokenAfter returns a token with the present time that is newer than another.
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

// A fencedError is a refused token and what is known about it.
type fencedError struct {
	err   error
	known []string
}

func (e *fencedError) Error() string { return e.err.Error() + "; " + strings.Join(e.known, "; ") }

func (e *fencedError) Unwrap() error { return e.err }

// aboutFence finds out what can be known about a token that was refused or missing: when the
// key was written, and who holds the lock of the surrounding lock run. The token that
// protects the key cannot be read (protocol.md 4). With a trace it sends nothing, so that
// the trace shows the user's request only.
func aboutFence(ctx context.Context, a *app.App, do sender, c client.Command, refused error) error {
	if a.Settings.Trace || a.Settings.TraceFile != "" {
		return refused
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	about := &fencedError{err: refused}
	if now, err := do(ctx, client.Get(c.Key())); err == nil && !now.Info().Version.IsZero() {
		version := now.Info().Version
		about.known = append(about.known, fmt.Sprintf("the key was last written at %s (%s), its token cannot be read", version, age(version)))
	}
	if name, ok := a.Env(fence.EnvLockName); ok && name != "" {
		if held, err := do(ctx, client.Get(name)); err == nil {
			about.known = append(about.known, aboutLock(a, name, held.(client.GetResult), c.Fence()))
		}
	}
	if len(about.known) == 0 {
		return refused
	}
	return about
}

func age(v wire.Version) string { return format.Age(time.Since(v.Time())) }

// aboutLock says who holds the surrounding lock, and how much newer its token is.
func aboutLock(a *app.App, name string, held client.GetResult, token string) string {
	if !held.Found {
		return fmt.Sprintf("lock %s is free now", format.Brief(name))
	}
	who := format.Quote(string(held.Value))
	if ours, _ := a.Env(fence.HolderVariable); ours == string(held.Value) {
		who = "the lock run around this command"
	}
	text := fmt.Sprintf("lock %s is held by %s, with the token %s (%s)", format.Brief(name), who, held.Version, age(held.Version))
	if v, err := wire.ParseToken(token); err == nil && v.Compare(held.Version) < 0 {
		text += ", which is newer than yours by " + strings.TrimSuffix(format.Age(held.Version.Time().Sub(v.Time())), " ago")
	}
	return text
}
