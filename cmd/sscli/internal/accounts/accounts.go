// Package accounts decides who may connect to a server that sscli runs. It reads users, tokens and
// rules from the flags of `sscli serve`. In place of a Kubernetes cluster, it signs service-account
// tokens, writes one to a file, and replaces it before it expires. It can also verify a cluster's
// tokens.
package accounts

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/spf13/pflag"

	"github.com/sscli/sscli/cmd/sscli/internal/app"
	"github.com/sscli/sscli/cmd/sscli/internal/config"
	"github.com/sscli/sscli/cmd/sscli/internal/fault"
	"github.com/sscli/sscli/cmd/sscli/internal/usage"
	"github.com/sscli/sscli/emulator"
	"github.com/sscli/sscli/internal/files"
	"github.com/sscli/sscli/internal/pemfile"
)

// Flags holds the values of the flags --sat-…, except --sat-tokens, which is in [Login]. These
// flags configure the tokens that a server accepts and issues.
type Flags struct {
	Audience, User config.Text
	Key, Out       config.File
	TTL            usage.Duration

	// For tokens that a cluster issues.
	JWKS   config.File // or a URL
	Issuer config.Text
}

const (
	defaultAccount = "system:serviceaccount:default:sscli"
	defaultSATLife = "1h"
)

// Bind adds the flags to fs.
func (f *Flags) Bind(fs *pflag.FlagSet) {
	f.User = defaultAccount
	fs.Var(&f.Audience, "sat-audience", "accept service-account tokens for this `AUDIENCE`, such as aio-internal")
	fs.Var(&f.JWKS, "sat-jwks", "`FILE` or URL of the public keys of the cluster that issues the tokens, as from kubectl get --raw /openid/v1/jwks")
	fs.Var(&f.Issuer, "sat-issuer", "`ISSUER` that the tokens of --sat-jwks must name (default: any)")
	fs.Var(&f.Key, "sat-key", "PEM `FILE` with the key that signs the tokens; created if it does not exist (default: a new key each time)")
	fs.Var(&f.Out, "sat-out", "`FILE` to write a token to, which is replaced before it expires (default: token in the directory of --self-signed)")
	fs.Var(&f.User, "sat-user", "`NAME` of the account in the token of --sat-out")
	_ = f.TTL.Least(usage.Signed).Set(defaultSATLife) // it is valid
	fs.Var(&f.TTL, "sat-ttl", "let the token of --sat-out expire after `DURATION`; a negative one makes an expired token")
}

// Check returns a usage error for flags that exclude or require each other. tokens is true if
// --sat-tokens is given. placed is true if Open chooses a file for the token even without --sat-out.
func (f Flags) Check(tokens, placed bool) error {
	issues := f.Key != "" || f.Out != "" || f.User != defaultAccount || f.TTL.String() != defaultSATLife
	switch {
	case f.Issuer != "" && f.JWKS == "":
		return fault.Usagef("--sat-issuer without the keys of the issuer: add --sat-jwks")
	case f.Audience == "" && f.JWKS != "":
		return fault.Usagef("--sat-jwks without an audience: add --sat-audience, such as aio-internal")
	case f.Audience == "" && issues:
		return fault.Usagef("--sat-key, --sat-out, --sat-user and --sat-ttl require --sat-audience")
	case f.Audience != "" && tokens:
		return fault.Usagef("--sat-audience together with --sat-tokens: use only one of them")
	case f.JWKS != "" && issues:
		return fault.Usagef("--sat-jwks together with --sat-key, --sat-out, --sat-user or --sat-ttl: the cluster issues the tokens")
	case f.Audience == "", f.JWKS != "":
		return nil
	case f.Out == "" && f.Key == "" && !placed:
		return fault.Usagef("--sat-audience without a file for a token: add --sat-out, or --sat-key to sign tokens with")
	}
	if f.TTL.Duration > 0 && f.TTL.Duration < time.Second {
		return fault.Usagef("--sat-ttl %s: must be at least 1s", f.TTL)
	}
	return nil
}

// Accounts issues the service-account tokens of a server.
type Accounts struct {
	issuer  *emulator.Issuer // nil = the server issues no tokens
	user    string
	life    time.Duration
	out     string // the file for a token; empty = none
	temp    string // the directory that Close removes; empty = none
	cancel  context.CancelFunc
	renewal sync.WaitGroup
}

// Open reads or creates the signing key, or reads the cluster's keys, and sets o.CheckToken. It
// also chooses the file to which Start writes the token: --sat-out or, without it, a file in dir.
// If dir is empty too, Open chooses a file in a temporary directory, but only if child is true,
// because a child process needs a token. Without --sat-audience, Open leaves o as it is.
func (f Flags) Open(o *emulator.Options, dir string, child bool) (*Accounts, error) {
	acc := &Accounts{user: string(f.User), life: f.TTL.Duration, out: string(f.Out), cancel: func() {}}
	if f.Audience == "" {
		return acc, nil
	}
	if f.JWKS != "" {
		keys := &clusterKeys{source: string(f.JWKS)}
		if err := keys.read(); err != nil {
			return nil, fault.Usagef("--sat-jwks: %w", err)
		}
		v := emulator.Verifier{Audience: string(f.Audience), Issuer: string(f.Issuer), Key: keys.key}
		o.CheckToken = v.Verify
		return acc, nil
	}
	var err error
	if acc.issuer, err = f.issuer(); err != nil {
		return nil, err
	}
	o.CheckToken = acc.issuer.Verify
	switch {
	case acc.out != "":
	case dir != "":
		acc.out = filepath.Join(dir, "token")
		if err := checkOwn(acc.out); err != nil {
			return nil, err
		}
	case child:
		if acc.temp, err = os.MkdirTemp("", "sscli-serve-"); err != nil {
			return nil, err
		}
		acc.out = filepath.Join(acc.temp, "token")
	}
	if path, err := filepath.Abs(acc.out); err == nil && acc.out != "" {
		acc.out = path
	}
	return acc, nil
}

// checkOwn returns an error if a file that the user has not named exists, and holds no token that an
// Issuer has issued. A token of a cluster names its issuer, and ours do not.
func checkOwn(name string) error {
	text, err := files.ReadFile(name, files.MaxText)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fault.Usagef("--self-signed: %w", err)
	}
	var claims jwt.RegisteredClaims
	if _, _, err := jwt.NewParser().ParseUnverified(strings.TrimSpace(string(text)), &claims); err != nil || claims.Issuer != "" {
		return fault.Usagef("--self-signed: %s is not a token of sscli serve: use another directory, or --sat-out", name)
	}
	return nil
}

func (f Flags) issuer() (*emulator.Issuer, error) {
	issuer, err := emulator.NewIssuer(string(f.Audience))
	if err != nil || f.Key == "" {
		return issuer, err
	}
	text, err := files.ReadFile(string(f.Key), files.MaxText)
	if errors.Is(err, fs.ErrNotExist) {
		return issuer, f.writeKey(issuer)
	}
	if err != nil {
		return nil, fault.Usagef("--sat-key: %w", err)
	}
	if issuer.Key, err = pemfile.ReadKey(text, nil); err != nil {
		return nil, fault.Usagef("--sat-key: %s: %w", f.Key, err)
	}
	if _, err := issuer.Issue("", time.Now(), 0); err != nil {
		return nil, fault.Usagef("--sat-key: %s: %w", f.Key, err)
	}
	return issuer, nil
}

func (f Flags) writeKey(issuer *emulator.Issuer) error {
	text, err := pemfile.KeyPEM(issuer.Key)
	if err != nil {
		return err
	}
	if err := files.Write(string(f.Key), text, 0o600); err != nil {
		return fault.Usagef("--sat-key: %w", err)
	}
	return nil
}

// renewAfter is the fraction of a token's lifetime after which the token is replaced. The kubelet uses
// the same fraction.
const renewAfter = 0.8

// Start writes a token to the file that Open chose, and replaces the token before it expires, until
// Close is called. It does nothing if there is no such file.
func (acc *Accounts) Start(a *app.App, now func() time.Time) error {
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
				a.Warn(fmt.Sprintf("--sat-out: no new token: %v", err))
			}
		}
	})
	return nil
}

func (acc *Accounts) write(now time.Time) error {
	token, err := acc.issuer.Issue(acc.user, now, acc.life)
	if err != nil {
		return err
	}
	return files.Write(acc.out, []byte(token+"\n"), 0o600)
}

// File returns the name of the file that holds the token, or "" if there is none.
func (acc *Accounts) File() string { return acc.out }

// Close stops replacing the token, and removes the temporary directory, if there is one.
func (acc *Accounts) Close() error {
	acc.cancel()
	acc.renewal.Wait()
	if acc.temp == "" {
		return nil
	}
	return files.RetryBusy(func() error { return os.RemoveAll(acc.temp) })
}
