package policy

import (
	"errors"
	"fmt"
	"strings"

	"github.com/sscli/sscli/internal/wire"
)

// A Short is a rule in the short form USER:METHOD:KEYS, which `serve --allow` takes. Its user may
// read or write the keys, send requests to the store, and subscribe to the store's topics of its own client
// id. Everybody may connect, and use the topics of applications: those outside clients/ and statestore/.
type Short struct {
	User        string // the name of a user, or `*` for every client, even without a name
	Read, Write bool

	// Keys is a Pattern. {principal.clientId} stands only for a client id that is the user name, because
	// a login proves only the user name.
	Keys string
}

// Anybody is the Short.User that means every client.
const Anybody = "*"

// ParseShort parses USER:METHOD:KEYS, where METHOD is Read, Write or ReadWrite. USER may contain
// colons, as the names of service accounts do, and so may KEYS.
func ParseShort(text string) (Short, error) {
	var s Short
	at, method := len(text), Method(0)
	for _, m := range []Method{Read, Write, Read | Write} {
		if i := strings.Index(text, ":"+m.String()+":"); i >= 0 && i < at {
			at, method = i, m
		}
	}
	if method == 0 {
		return s, errors.New("expected USER:Read:KEYS, USER:Write:KEYS or USER:ReadWrite:KEYS, as in ann:ReadWrite:colors/*")
	}
	s = Short{User: text[:at], Read: method&Read != 0, Write: method&Write != 0, Keys: text[at+len(method.String())+2:]}
	return s, s.check()
}

func (s Short) method() (m Method) {
	if s.Read {
		m = Read
	}
	if s.Write {
		m |= Write
	}
	return m
}

// String returns the form that [ParseShort] parses.
func (s Short) String() string { return s.User + ":" + s.method().String() + ":" + s.Keys }

// check returns an error if the rule has no meaning.
func (s Short) check() error {
	switch {
	case s.User == "":
		return errors.New("no user: expected a name, or * for everybody")
	case s.Keys == "":
		return errors.New("no keys: expected a pattern such as colors/*, or * for all")
	}
	e := s.key()
	switch {
	case e.never == "" && !strings.Contains(s.Keys, tokenStart+tokenAttribute):
		return nil
	case strings.ContainsAny(s.Keys, "{}"):
		return fmt.Errorf("keys %.64q: braces are for {principal.clientId} and {principal.username}", s.Keys)
	}
	return fmt.Errorf("keys %.64q: %s", s.Keys, e.never)
}

func (s Short) key() *Entry {
	e := &Entry{Methods: s.method(), Type: Pattern, Text: s.Keys}
	e.setKey()
	for i, p := range e.key {
		if p.token == tokenClient {
			e.key[i].token = tokenProven
		}
	}
	return e
}

// FromShort returns the policy of rules in the short form.
func FromShort(all []Short) *Policy {
	topic := func(m Method, levels ...part) *Entry {
		e := &Entry{Methods: m}
		for _, l := range levels {
			for text := range strings.SplitSeq(l.text, "/") {
				e.levels = append(e.levels, []part{{text, l.token}})
			}
		}
		return e
	}
	rest := part{wildAll, tokenWild}
	p := &Policy{Rules: []*Rule{{Resource: -1, Name: "topics of applications", everybody: true, Entries: []*Entry{
		{Methods: Connect}, topic(Publish|Subscribe, part{"", tokenApp}, rest),
	}}}}
	for _, s := range all {
		r := &Rule{Resource: -1, Name: s.String(), everybody: s.User == Anybody, Entries: []*Entry{
			s.key(),
			topic(Publish, part{text: wire.RequestTopic}),
			{Methods: Subscribe, own: true},
		}}
		if !r.everybody {
			r.Usernames = []string{s.User}
		}
		p.Rules = append(p.Rules, r)
	}
	p.link()
	return p
}

// FromFunc returns a policy by which everybody may connect, and a function decides about all else.
func FromFunc(allow func(Principal, Action) bool) *Policy {
	p := &Policy{Rules: []*Rule{{Resource: -1, Name: "a function", everybody: true, Entries: []*Entry{
		{Methods: Connect}, {Methods: Publish | Subscribe, allow: allow}, {Methods: Read | Write, Type: Pattern, allow: allow},
	}}}}
	p.link()
	return p
}
