package emulator

import (
	"crypto/tls"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/sscli/sscli/internal/store"
	"github.com/sscli/sscli/internal/wire"
)

// A Rule allows users to read or write keys (protocol.md 7.6). If a server has rules, it refuses
// access to a key unless a rule allows it.
type Rule struct {
	User        string // the name of a user, or `*` for every user
	Read, Write bool   // Read: GET, KEYNOTIFY, SCAN; Write: SET, DEL, VDEL

	// Keys is a pattern in the syntax of [store.MatchGlob]: `*` matches any number of bytes, `?`
	// one byte, `[0-9]` and `[abc]` one byte of a range or list.
	// {principal.clientId} and {principal.username} match the client's id and user name
	// literally. A rule with either placeholder does not apply to clients without a user name. A rule with
	// {principal.clientId} applies only to clients whose id equals their user name, because a login proves
	// only the user name.
	Keys string
}

// A RuleError reports a rule that is invalid or can never apply.
type RuleError struct {
	Rule Rule
	Err  error
}

func (e *RuleError) Error() string { return fmt.Sprintf("rule %q: %v", e.Rule, e.Err) }
func (e *RuleError) Unwrap() error { return e.Err }

// The methods of a rule, with the names from the broker's configuration.
const (
	methodRead      = "Read"
	methodWrite     = "Write"
	methodReadWrite = "ReadWrite"
)

// anybody is the Rule.User that matches every user.
const anybody = "*"

const (
	principalClient = "{principal.clientId}"
	principalUser   = "{principal.username}"
)

// ParseRule parses USER:METHOD:KEYS, where METHOD is Read, Write or ReadWrite. USER may contain
// colons, as the names of service accounts do, and so may KEYS.
func ParseRule(text string) (Rule, error) {
	var r Rule
	at, method := len(text), ""
	for _, m := range []string{methodRead, methodWrite, methodReadWrite} {
		if i := strings.Index(text, ":"+m+":"); i >= 0 && i < at {
			at, method = i, m
		}
	}
	if method == "" {
		return r, errors.New("expected USER:Read:KEYS, USER:Write:KEYS or USER:ReadWrite:KEYS, as in ann:ReadWrite:colors/*")
	}
	r = Rule{User: text[:at], Read: method != methodWrite, Write: method != methodRead, Keys: text[at+len(method)+2:]}
	return r, r.check()
}

func (r Rule) check() error {
	switch {
	case r.User == "":
		return errors.New("no user: expected a name, or * for everybody")
	case !r.Read && !r.Write:
		return errors.New("no method: expected Read, Write or ReadWrite")
	case r.Keys == "":
		return errors.New("no keys: expected a pattern such as colors/*, or * for all")
	}
	if rest := principals(r.Keys, "", ""); strings.ContainsAny(rest, "{}") {
		return fmt.Errorf("keys %.64q: braces are for %s and %s", r.Keys, principalClient, principalUser)
	}
	return nil
}

// checkProvable returns an error if a rule can never apply, because no client can log in with the user
// name that the rule requires.
func (o *Options) checkProvable(r Rule) error {
	certificates := o.TLS != nil && o.TLS.ClientAuth >= tls.VerifyClientCertIfGiven
	_, known := o.Users[r.User]
	switch {
	case o.VerifyToken != nil, r.User == anybody && !strings.Contains(r.Keys, "{"):
		return nil
	case o.Users != nil: // then a certificate alone is not enough to log in
		if r.User != anybody && !known {
			return fmt.Errorf("user %q can never log in: not in the list of users", r.User)
		}
		return nil
	case certificates, o.CheckLogin != nil:
		return nil
	case r.User == anybody:
		return errors.New("the braces need a user name, and no login with user names is configured")
	}
	return fmt.Errorf("user %q can never log in: no login with user names is configured", r.User)
}

// String returns the rule in the form that [ParseRule] parses.
func (r Rule) String() string {
	method := methodRead
	switch {
	case r.Read && r.Write:
		method = methodReadWrite
	case r.Write:
		method = methodWrite
	}
	return r.User + ":" + method + ":" + r.Keys
}

func (r Rule) isFor(username string) bool { return r.User == anybody || r.User == username }

// allows reports whether the rule allows a client to read a key or, if write is set, to write it.
func (r Rule) allows(clientID, username, key string, write bool) bool {
	switch {
	case !r.isFor(username), write && !r.Write, !write && !r.Read,
		username == "" && strings.Contains(r.Keys, principalUser),
		(username == "" || clientID != username) && strings.Contains(r.Keys, principalClient):
		return false
	}
	return store.MatchGlob([]byte(principals(r.Keys, quoteGlob(clientID), quoteGlob(username))), []byte(key))
}

func principals(keys, clientID, username string) string {
	return strings.NewReplacer(principalClient, clientID, principalUser, username).Replace(keys)
}

// quoteGlob returns a pattern that matches only the given text.
func quoteGlob(text string) string {
	return strings.NewReplacer("*", "[*]", "?", "[?]", "[", "[[]").Replace(text)
}

// rules holds all rules of a server. If there are none, everything is allowed.
type rules []Rule

func (rs rules) allowKey(clientID, username, key string, write bool) bool {
	return len(rs) == 0 || slices.ContainsFunc(rs, func(r Rule) bool { return r.allows(clientID, username, key, write) })
}

// allowAll reports whether a user may read and write all keys.
func (rs rules) allowAll(username string) bool {
	return len(rs) == 0 || slices.ContainsFunc(rs, func(r Rule) bool {
		return r.isFor(username) && r.Read && r.Write && strings.Trim(r.Keys, "*") == ""
	})
}

// allowTopic reports whether a client may publish to a topic or, if write is false, subscribe to a filter.
// If a rule applies to the client's user name, the client may publish requests and subscribe to the
// topics of its own client id, see ownsTopic. Only the store may publish below clients/: otherwise a client could
// leave a retained message there, which the next client with the same id would receive. Rules do not
// restrict topics outside clients/ and statestore/, but no filter may begin with a wildcard (assumed).
func (rs rules) allowTopic(clientID, username, topic string, write bool) bool {
	if len(rs) == 0 {
		return true
	}
	if rest, shared := strings.CutPrefix(topic, "$share/"); shared && !write {
		_, topic, _ = strings.Cut(rest, "/")
	}
	known := slices.ContainsFunc(rs, func(r Rule) bool { return r.isFor(username) })
	first, _, _ := strings.Cut(topic, "/")
	switch {
	case write && topic == wire.RequestTopic:
		return known
	case write:
		return first != "clients"
	case first == "statestore", first == "+", first == "#":
		return false // could match requests, or other clients' replies and notifications
	case first != "clients":
		return true
	}
	return known && ownsTopic(clientID, topic)
}
