package emulator

import (
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/sscli/sscli/client/wire"
	"github.com/sscli/sscli/emulator/store"
)

// A Rule allows users to use keys (protocol.md 7.6). What no rule allows is refused.
type Rule struct {
	User        string // the name of a user, or `*` for everybody
	Read, Write bool   // GET, KEYNOTIFY, SCAN; SET, DEL, VDEL
	// Keys is a pattern: `*` is any bytes, `?` one, `[0-9]` and `[abc]` one of those.
	// {principal.clientId} and {principal.username} stand for the client's id and user name,
	// literally.
	Keys string
}

// The methods of a rule, as the broker's configuration calls them.
const (
	methodRead      = "Read"
	methodWrite     = "Write"
	methodReadWrite = "ReadWrite"
)

// anybody as the User of a rule matches every user.
const anybody = "*"

const (
	principalClient = "{principal.clientId}"
	principalUser   = "{principal.username}"
)

// ParseRule reads USER:METHOD:KEYS, where METHOD is Read, Write or ReadWrite. USER
// may have colons in it, as names of service accounts do, and KEYS too.
func ParseRule(text string) (Rule, error) {
	var r Rule
	at, method := len(text), ""
	for _, m := range []string{methodRead, methodWrite, methodReadWrite} {
		if i := strings.Index(text, ":"+m+":"); i >= 0 && i < at {
			at, method = i, m
		}
	}
	if method == "" {
		return r, errors.New("want USER:Read:KEYS, USER:Write:KEYS or USER:ReadWrite:KEYS, as in ann:ReadWrite:colors/*")
	}
	r = Rule{User: text[:at], Read: method != methodWrite, Write: method != methodRead, Keys: text[at+len(method)+2:]}
	return r, r.check()
}

func (r Rule) check() error {
	switch {
	case r.User == "":
		return errors.New("no user: want a name, or * for everybody")
	case !r.Read && !r.Write:
		return errors.New("no method: want Read, Write or ReadWrite")
	case r.Keys == "":
		return errors.New("no keys: want a pattern such as colors/*, or * for all")
	}
	if rest := principals(r.Keys, "", ""); strings.ContainsAny(rest, "{}") {
		return fmt.Errorf("keys %.64q: braces are for %s and %s", r.Keys, principalClient, principalUser)
	}
	return nil
}

// String returns the rule in the form that [ParseRule] reads.
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

// allows reports whether the rule allows a client to read or write a key.
func (r Rule) allows(clientID, username, key string, write bool) bool {
	if !r.isFor(username) || write && !r.Write || !write && !r.Read {
		return false
	}
	return store.MatchGlob([]byte(principals(r.Keys, quoteGlob(clientID), quoteGlob(username))), []byte(key))
}

func principals(keys, clientID, username string) string {
	return strings.NewReplacer(principalClient, clientID, principalUser, username).Replace(keys)
}

// quoteGlob returns the pattern that matches only text.
func quoteGlob(text string) string {
	return strings.NewReplacer("*", "[*]", "?", "[?]", "[", "[[]").Replace(text)
}

// rules are all rules of a server; with none everything is allowed.
type rules []Rule

func (rs rules) allowKey(clientID, username, key string, write bool) bool {
	return len(rs) == 0 || slices.ContainsFunc(rs, func(r Rule) bool { return r.allows(clientID, username, key, write) })
}

// allowTopic reports whether a client may publish to a topic (write), or subscribe to a filter. A
// client for which there is a rule may use the request topic, and the topics of its own client
// id. Nobody may use another client's topics. Rules say nothing about an application's own
// topics (assumed).
func (rs rules) allowTopic(clientID, username, topic string, write bool) bool {
	if len(rs) == 0 {
		return true
	}
	if rest, shared := strings.CutPrefix(topic, "$share/"); shared && !write {
		_, topic, _ = strings.Cut(rest, "/")
	}
	known := slices.ContainsFunc(rs, func(r Rule) bool { return r.isFor(username) })
	first, rest, _ := strings.Cut(topic, "/")
	switch {
	case write && topic == wire.RequestTopic:
		return known
	case write:
		return !strings.HasPrefix(topic+"/", notifyTopics)
	case first == "statestore", first == "+", first == "#":
		return false // requests, and replies and notifications to others
	case first != "clients":
		return true
	}
	if own, found := strings.CutPrefix(topic, notifyTopics); found {
		return known && strings.HasPrefix(own+"/", hexID(clientID)+"/")
	}
	plain := !strings.ContainsAny(clientID, "+#") && strings.HasPrefix(rest, clientID+"/")
	return known && (plain || strings.HasPrefix(rest, hexID(clientID)+"/"))
}

// notifyTopics is the common prefix of all notification topics (protocol.md 1.1).
const notifyTopics = "clients/statestore/v1/FA9AE35F-2F64-47CD-9BFF-08E2B32A0FE8/"

func hexID(clientID string) string { return strings.ToUpper(hex.EncodeToString([]byte(clientID))) }
