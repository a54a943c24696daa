package serve

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/spf13/pflag"

	"github.com/sscli/sscli/cmd/sscli/internal/app"
	"github.com/sscli/sscli/cmd/sscli/internal/atomicfile"
	"github.com/sscli/sscli/cmd/sscli/internal/certs"
	"github.com/sscli/sscli/cmd/sscli/internal/config"
	"github.com/sscli/sscli/cmd/sscli/internal/fault"
	"github.com/sscli/sscli/emulator"
)

// satFlags configure the service-account tokens that serve issues.
type satFlags struct {
	audience, key, out, user config.Text
	ttl                      string
}

const (
	defaultAccount = "system:serviceaccount:default:sscli"
	defaultSATLife = "1h"
)

func (f *satFlags) bind(fs *pflag.FlagSet) {
	f.user = defaultAccount
	fs.Var(&f.audience, "sat-audience", "`AUDIENCE` of the service-account tokens with which clients may connect, such as aio-internal")
	fs.Var(&f.key, "sat-key", "PEM `FILE` with the key that signs the tokens; created if it does not exist (default: a new key each time)")
	fs.Var(&f.out, "sat-out", "`FILE` to write a token to, which is replaced before it expires (default: token in the directory of --self-signed)")
	fs.Var(&f.user, "sat-user", "`NAME` of the account in that token")
	fs.StringVar(&f.ttl, "sat-ttl", defaultSATLife, "`DURATION` of that token; with a negative one it has expired already")
}

func (f satFlags) life() (time.Duration, error) {
	d, err := config.ParseDuration(f.ttl)
	if err != nil {
		return 0, fault.Usagef("--sat-ttl: %v", err)
	}
	if d > 0 && d < time.Second {
		return 0, fault.Usagef("--sat-ttl %s: want at least 1s", f.ttl)
	}
	return d, nil
}

// check returns a usage error for flags that exclude each other.
func (f satFlags) check(all serveFlags, child bool) error {
	if f.audience == "" {
		if f.key != "" || f.out != "" || f.user != defaultAccount || f.ttl != defaultSATLife {
			return fault.Usagef("--sat-key, --sat-out, --sat-user and --sat-ttl are about the tokens of --sat-audience: want that too")
		}
		return nil
	}
	if all.login.tokens != "" {
		return fault.Usagef("--sat-audience together with --sat-tokens: want one of them")
	}
	if f.out == "" && f.key == "" && all.selfSigned == "" && !child {
		return fault.Usagef("--sat-audience without a file for a token: want --sat-out, or --sat-key to sign tokens with")
	}
	_, err := f.life()
	return err
}

// accounts are the service accounts of a server.
type accounts struct {
	issuer  *emulator.Issuer // nil: no service-account tokens
	user    string
	life    time.Duration
	out     string // the file of a token; empty: none
	temp    string // the directory that close removes; empty: none
	cancel  context.CancelFunc
	renewal sync.WaitGroup
}

// open reads or creates the key. child says that a child process needs a token.
func (f satFlags) open(o *emulator.Options, dir string, child bool) (*accounts, error) {
	acc := &accounts{user: string(f.user), out: string(f.out), cancel: func() {}}
	if f.audience == "" {
		return acc, nil
	}
	var err error
	if acc.life, err = f.life(); err != nil {
		return nil, err
	}
	if acc.issuer, err = f.issuer(); err != nil {
		return nil, err
	}
	o.VerifyToken = acc.issuer.Verify
	switch {
	case acc.out != "":
	case dir != "":
		acc.out = filepath.Join(dir, "token")
	case child:
		if acc.temp, err = os.MkdirTemp("", "sscli-serve-"); err != nil {
			return nil, err
		}
		acc.out = filepath.Join(acc.temp, "token")
	}
	if acc.out != "" {
		acc.out = absolute(acc.out)
	}
	return acc, nil
}

func (f satFlags) issuer() (*emulator.Issuer, error) {
	issuer, err := emulator.NewIssuer(string(f.audience))
	if err != nil || f.key == "" {
		return issuer, err
	}
	text, err := os.ReadFile(string(f.key))
	if errors.Is(err, fs.ErrNotExist) {
		return issuer, f.writeKey(issuer)
	}
	if err != nil {
		return nil, fault.Usagef("--sat-key: %w", err)
	}
	if issuer.Key, err = certs.ReadKey(text, nil); err != nil {
		return nil, fault.Usagef("--sat-key: %s: %w", f.key, err)
	}
	if _, err := issuer.Issue("", time.Now(), 0); err != nil {
		return nil, fault.Usagef("--sat-key: %s: %w", f.key, err)
	}
	return issuer, nil
}

func (f satFlags) writeKey(issuer *emulator.Issuer) error {
	text, err := certs.KeyPEM(issuer.Key)
	if err != nil {
		return err
	}
	if err := atomicfile.Write(string(f.key), text, 0o600); err != nil {
		return fault.Usagef("--sat-key: %w", err)
	}
	return nil
}

// renewAfter is the fraction of a token's life after which it is replaced, as the kubelet does.
const renewAfter = 0.8

// start writes a token, and replaces it before it expires, until close.
func (acc *accounts) start(a *app.App, now func() time.Time) error {
	if acc.issuer == nil || acc.out == "" {
		return nil
	}
	if err := acc.write(now()); err != nil {
		return fault.Usagef("--sat-out: %w", err)
	}
	if acc.life <= 0 {
		return nil
	}
	ctx, cancel := context.WithCancel(context.Background())
	acc.cancel = cancel
	acc.renewal.Go(func() {
		tick := time.NewTicker(time.Duration(float64(acc.life) * renewAfter))
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			if err := acc.write(now()); err != nil {
				a.Warn(fmt.Sprintf("--sat-out: no new token: %v", err), "")
			}
		}
	})
	return nil
}

func (acc *accounts) write(now time.Time) error {
	token, err := acc.issuer.Issue(acc.user, now, acc.life)
	if err != nil {
		return err
	}
	return atomicfile.Write(acc.out, []byte(token+"\n"), 0o600)
}

func (acc *accounts) close() error {
	acc.cancel()
	acc.renewal.Wait()
	if acc.temp == "" {
		return nil
	}
	return os.RemoveAll(acc.temp)
}
