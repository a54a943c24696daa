package accounts

import (
	"bytes"
	"crypto/subtle"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/sscli/sscli/cmd/sscli/internal/config"
	"github.com/sscli/sscli/cmd/sscli/internal/fault"
	"github.com/sscli/sscli/cmd/sscli/internal/suggest"
	"github.com/sscli/sscli/emulator"
	"github.com/sscli/sscli/internal/files"
	"github.com/sscli/sscli/internal/policy"
)

// Login holds the values of the flags --users, --allow, --policy, --attributes, --sat-tokens and --no-login,
// which define who may connect to a server and what they may do.
type Login struct {
	Users, Tokens config.File  // files of users and of service-account tokens
	Allow         []string     // rules
	Policy        config.Files // files of BrokerAuthorization
	Attributes    config.File  // the file with the attributes of users
	None          bool         // --no-login
}

// Bind adds the flags to fs.
func (f *Login) Bind(fs *pflag.FlagSet) {
	fs.Var(&f.Users, "users", "`FILE` of the users who may connect: lines of NAME:PASSWORD, the password plain or a bcrypt hash")
	fs.StringArrayVar(&f.Allow, "allow", nil, "`USER:METHOD:KEYS`, what a user may do; may be repeated")
	fs.Var(&f.Policy, "policy", "`FILE` with a BrokerAuthorization, which says what clients may do; read again when it changes; may be repeated")
	fs.Var(&f.Attributes, "attributes", "`FILE` with the attributes of users for --policy: SUBJECT: {NAME: VALUE}, or annotated service accounts")
	fs.Var(&f.Tokens, "sat-tokens", "`FILE` with the service-account tokens that are accepted, one a line")
	fs.BoolVar(&f.None, "no-login", false, "allow clients without a login on an address of --listen or --ws that is not loopback")
}

// Apply sets o.Policy to the rules of --allow, and sets o.CheckLogin and o.CheckToken from the files. tokens is
// true if users may also log in with tokens of other flags.
func (f Login) Apply(o *emulator.Options, tokens bool) error {
	if len(f.Allow) > 0 {
		var err error
		o.Policy, err = emulator.ParseRules(f.Allow...)
		if rule, ok := errors.AsType[*emulator.RuleError](err); ok {
			return fault.Usagef("--allow %.64q: %w", rule.Rule, rule.Err)
		}
	}
	if f.Users != "" {
		users, err := ReadUsers(string(f.Users))
		if err != nil {
			return &fault.UsageError{Err: fmt.Errorf("--users: %w", err)}
		}
		o.CheckLogin = users.Check
		if !tokens && f.Tokens == "" {
			if err := users.checkRules(f.Allow); err != nil {
				return err
			}
		}
	}
	if f.Tokens != "" {
		var err error
		if o.CheckToken, err = readTokens(string(f.Tokens)); err != nil {
			return fault.Usagef("--sat-tokens: %w", err)
		}
	}
	return nil
}

// checkRules returns a usage error if a rule of --allow is for a user who cannot log in.
func (u Users) checkRules(rules []string) error {
	for _, text := range rules {
		r, err := policy.ParseShort(text)
		if _, known := u[r.User]; err == nil && r.User != "*" && !known {
			return RuleError(&emulator.RuleError{Rule: text, Err: fmt.Errorf("user %q can never log in: not in the list of users", r.User)})
		}
	}
	return nil
}

// CheckListeners returns a usage error if other machines could use a port without a login, unless
// --no-login allows this. login is true if clients must log in; --no-login is then an error.
func (f Login) CheckListeners(login bool, listen, ws config.Text) error {
	if f.None && login {
		return fault.Usagef("--no-login together with a login: use one or the other")
	}
	for _, l := range []struct {
		flag    string
		address config.Text
	}{{"--listen", listen}, {"--ws", ws}} {
		loopback, err := config.IsLoopback(string(l.address))
		if loopback || err != nil || login || f.None { // opening the listener will report an address that is not HOST:PORT
			continue
		}
		return Exposed(l.flag, string(l.address), "anybody who reaches that address could use the store",
			"`--users FILE`, or `--no-login` to let anybody in")
	}
	return nil
}

// RuleError returns the usage error for a rule that names a user who cannot log in.
func RuleError(e *emulator.RuleError) error {
	hint := suggest.Try("`--users FILE` with a line for that user")
	if rule, err := policy.ParseShort(e.Rule); err == nil && strings.Contains(rule.User, ":") {
		hint = suggest.Try("`--sat-audience` for service-account tokens")
	}
	return &fault.UsageError{Err: fmt.Errorf("--allow %q: %w", e.Rule, e.Err), Hint: hint}
}

// readTokens reads a file that has one token per line; a token may be any text. It returns a
// function that refuses a token that the file does not have. A file without tokens is an error.
func readTokens(name string) (check func(token []byte, now time.Time) (emulator.Login, error), err error) {
	text, err := files.ReadText(name)
	if err != nil {
		return nil, err
	}
	var t [][]byte
	for line := range bytes.Lines(text) {
		if token := bytes.TrimSpace(line); len(token) > 0 {
			t = append(t, token)
		}
	}
	if len(t) == 0 {
		return nil, fmt.Errorf("%s holds no token", name)
	}
	return func(token []byte, _ time.Time) (emulator.Login, error) {
		if !slices.ContainsFunc(t, func(known []byte) bool { return subtle.ConstantTimeCompare(known, token) == 1 }) {
			return emulator.Login{}, errors.New("the token is not known")
		}
		return emulator.Login{}, nil
	}, nil
}
