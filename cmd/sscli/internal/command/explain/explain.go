// Package explain is the command `sscli explain`, which says whether the store would refuse a write
// because of its fencing token, and why.
//
// [New] makes the command. The command reads the key and then the lock. facts.verdict (verdict.go) then
// predicts the store's reply.
//
// The store does not reveal a key's token. A verdict that depends on the token is `unknown`, or says
// what it assumes. With --ask, sscli first sends a probe, and the store's reply to the probe is the
// verdict. Nothing is written.
package explain

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/cmd/sscli/internal/app"
	"github.com/sscli/sscli/cmd/sscli/internal/complete"
	"github.com/sscli/sscli/cmd/sscli/internal/config"
	"github.com/sscli/sscli/cmd/sscli/internal/fault"
	"github.com/sscli/sscli/cmd/sscli/internal/suggest"
	"github.com/sscli/sscli/cmd/sscli/internal/verb"
	"github.com/sscli/sscli/format"
	"github.com/sscli/sscli/internal/wire"
)

// New returns the command `sscli explain`.
func New(a *app.App) *cobra.Command {
	var lock, token config.Text
	var ask bool
	cmd := &cobra.Command{
		Use:     "explain KEY",
		Short:   "Show why a fenced write is or would be refused",
		GroupID: app.GroupDebug,
		Long: `Compare the token of a write (--fence) with what is known about KEY and about the lock
that protects it (--lock). Print what the store would answer, by which rule, and what to
do. Nothing is written.

The store does not say which token a key has. But a key's token is never newer than the
key's version, or at most a minute newer if a clock was ahead when the key was written. If
every write of KEY carries the newest token of the lock, as with --fence lock in lock run,
then a key that was written after the lock's present token was issued has that token. A
verdict that assumes this says so. A token that is ahead of the local clock may be too far
ahead of the store's clock, so the verdict is unknown.

--ask asks the store. It sends VDEL with the token and with a random value that KEY cannot
have, so that nothing is deleted. The verdict is the store's reply. The protocol does not
say so, but sscli assumes that such a VDEL leaves the value, the version and the fencing
token of KEY as they are, and that the store checks the token before the value. --ask
needs permission to write KEY, and in a protected context it asks you first.

The exit code is 0 if the write would pass, 6 if it would be refused, and 11 if that
cannot be known.`,
		Example: `  sscli explain valve/position --lock valve --fence "$SSCLI_FENCE"
  sscli explain valve/position    # would a write without a token pass?
  sscli explain valve/position --ask`,
		ValidArgsFunction: complete.Keys(a, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch len(args) {
			case 0:
				return fault.Usagef("missing KEY")
			case 1:
			default:
				return &fault.UsageError{
					Err:  fmt.Errorf("%.64q after KEY: expected one KEY, and its lock as --lock LOCK", args[1]),
					Hint: suggest.Run("--lock", args[1]),
				}
			}
			f := facts{key: args[0], lock: string(lock)}
			if err := client.Get(f.key).Check(); err != nil {
				return &fault.UsageError{Err: err}
			}
			if f.lock == f.key {
				return fault.Usagef("--lock %s: a lock does not protect its own key", format.Brief(f.lock))
			}
			if token != "" {
				var err error
				if f.token, err = verb.ParseFence(a.Env, string(token)); err == nil {
					err = verb.CheckFenceKey(a.Env, f.key)
				}
				if err != nil {
					return err
				}
			}
			if f.asked = ask; ask {
				if err := a.Confirm(cmd.Context(), "explain --ask "+format.Brief(f.key)); err != nil {
					return err
				}
			}
			return a.WithSession(cmd.Context(), func(s *client.Session, o client.Options) error {
				return explain(cmd.Context(), a, s, f)
			})
		},
	}
	cmd.Flags().Var(&lock, "lock", "the `LOCK` that protects KEY")
	cmd.Flags().BoolVar(&ask, "ask", false, "ask the store, with a VDEL that cannot delete the key")
	cmd.Flags().Var(&token, "fence", "the `TOKEN` of the write, or lock for the token of the surrounding lock run (default: none)")
	return cmd
}

func explain(ctx context.Context, a *app.App, s *client.Session, f facts) error {
	a.RememberKey(f.key)
	if f.asked {
		if err := f.ask(ctx, s); err != nil {
			return err
		}
	}
	if err := f.read(ctx, s); err != nil {
		return err
	}
	e := f.verdict()
	if err := a.Emit(e); err != nil {
		return err
	}
	switch e.Verdict {
	case refused:
		return &fault.ExitError{Code: fault.CodeFencing}
	case unknown:
		return &fault.ExitError{Code: fault.CodeUnknown}
	}
	return nil
}

// ask sends the probe: a VDEL with a random value, which the key cannot hold. The caller must read the
// key after the probe. Only then can the version of the key show whether a refusal is due to a clock
// that was ahead.
func (f *facts) ask(ctx context.Context, s *client.Session) error {
	probe := client.VDel(f.key, []byte("sscli explain --ask "+rand.Text()), client.WriteOptions{Fence: f.token})
	result, err := s.Do(ctx, probe)
	if lost, ok := errors.AsType[*client.LostReplyError](err); ok {
		err = lost.Err // do not report an unknown outcome, because a probe changes nothing
	}
	if refusal, ok := errors.AsType[*wire.StoreError](err); ok {
		switch refusal.Kind() {
		case wire.ErrorFenceRequired, wire.ErrorFenceLower, wire.ErrorFenceAhead:
			f.refusal = refusal
			return nil
		}
	}
	if err == nil && result.(client.VDelResult).Deleted {
		err = &client.ReplyError{Err: errors.New("the store says that the key had a random value, and that it was deleted")}
	}
	if err != nil {
		return fault.Describe(probe, err)
	}
	return nil
}

// read reads the key and then the lock. In this order, if the lock's token is older than the key's
// version, the lock already had that token when the key was written.
func (f *facts) read(ctx context.Context, s *client.Session) error {
	key, err := s.Get(ctx, f.key)
	if err != nil {
		return fault.Describe(client.Get(f.key), err)
	}
	f.found, f.version = key.Found, key.Version
	if f.lock != "" {
		status, err := s.LockStatus(ctx, f.lock)
		if err != nil {
			return fault.AboutReading(f.lock, fmt.Errorf("lock %s: %w", format.Brief(f.lock), err))
		}
		f.held, f.holder, f.lockToken = status.Held, string(status.Holder), status.Token
	}
	f.now = time.Now()
	return nil
}
