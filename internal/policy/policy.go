// Package policy decides what a client of the broker may do, by the rules of a BrokerAuthorization
// (protocol.md 7.6).
//
//	p, err := policy.Parse("authz.yaml", text)
//	…
//	d := p.Decide(policy.Principal{ClientID: "c", Username: "ann"}, policy.Action{Method: policy.Read, On: "colors/red"})
//	fmt.Println(d.Allowed, d.Entry, d.Lacks, d.Assumes)
//
// A server asks [Policy.For] once for each login and [Client.Allowed] for each request, which costs
// little. [Policy.Check] finds mistakes in the rules, [Compare] what two policies decide differently, and
// [Suggest] writes the rules for what a client does.
//
// Rules only allow; what no rule allows is denied. Where the documentation is silent, the package
// assumes what the constants whose names begin with Assume say, and a [Decision] that depends on an
// assumption names it.
package policy

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// A Principal is a client, as its login describes it.
type Principal struct {
	ClientID   string            // as CONNECT has it; a claim, because clients choose it
	Username   string            // "" = none
	Attributes map[string]string // of the user or the certificate
}

// A Method is a set of kinds of actions.
type Method uint8

// The methods of rules. A resource calls Read|Write ReadWrite.
const (
	Connect Method = 1 << iota
	Publish
	Subscribe
	Read
	Write
)

var methodNames = []string{"Connect", "Publish", "Subscribe", "Read", "Write", "ReadWrite"}
var methodBits = []Method{Connect, Publish, Subscribe, Read, Write, Read | Write}

// String returns the name that resources use.
func (m Method) String() string {
	if i := slices.Index(methodBits, m); i >= 0 {
		return methodNames[i]
	}
	return "no method"
}

// Each returns the single methods of m.
func (m Method) Each() (all []Method) {
	for _, one := range methodBits[:5] {
		if m&one != 0 {
			all = append(all, one)
		}
	}
	return all
}

// ParseMethod parses a name such as publish, in any case.
func ParseMethod(name string) (m Method, ok bool) {
	i := slices.IndexFunc(methodNames, func(n string) bool { return strings.EqualFold(n, name) })
	if i < 0 {
		return 0, false
	}
	return methodBits[i], true
}

// An Action is something that a client does: it publishes to the topic On, subscribes to the filter On,
// or reads or writes the key On. Connect has no On.
type Action struct {
	Method Method // exactly one
	On     string
}

// OnKey returns the action of reading a key or, if write is set, of writing it.
func OnKey(key string, write bool) Action {
	if write {
		return Action{Write, key}
	}
	return Action{Read, key}
}

// A Policy is the rules of one or more resources, of [FromShort] or of [FromFunc].
type Policy struct {
	Rules      []*Rule
	Resources  []Resource
	Findings   []Finding  // mistakes in the form of the resources; Check finds the others
	Attributes Attributes // of the clients, for servers

	index   *index             // nil = there are few rules
	ignored map[string]ignores // by file
}

// FromResources reports whether the policy comes from a BrokerAuthorization.
func (p *Policy) FromResources() bool { return len(p.Resources) > 0 }

// A Resource is a BrokerAuthorization in a file.
type Resource struct {
	File, Name string // Name is empty if the resource has none
	Line       int
}

// A Rule allows its principals what its entries list.
type Rule struct {
	Resource   int // index in Policy.Resources; -1 = the short form, or a function
	Line       int
	Name       string // such as rules[2], or the text of the short form
	Usernames  []string
	ClientIDs  []string
	Attributes []map[string]string
	Entries    []*Entry
	everybody  bool           // never in a resource
	lines      map[string]int // of the principals, by the keys of alternatives
	listed     []alternative  // the principals, in the order of the file; nil = not from a file

	// The rest is what summarize finds in Entries.
	connects, topics []*Entry
	narrow           []*Entry // of connects and topics, those with client ids
	varying          []*Entry // see Entry.varies; without those for Connect
	tokens           []tokenUse
	keys             Method // what the entries allow with any key
	keyLine          int    // the line of the first of them
}

// A tokenUse is a token that depends on the principal, and the first entry that has it.
type tokenUse struct {
	token string
	entry *Entry
}

// summarize finds what is often asked of the entries.
func (r *Rule) summarize() {
	r.connects, r.topics, r.narrow, r.varying, r.tokens, r.keys, r.keyLine = nil, nil, nil, nil, nil, 0, 0
	seen, ids := make(map[string]bool), (*idList)(nil)
	for _, e := range r.Entries {
		note := func(parts []part) {
			for _, p := range parts {
				if p.varies() && !seen[p.token] {
					seen[p.token] = true
					r.tokens = append(r.tokens, tokenUse{p.token, e})
				}
			}
		}
		switch {
		case e.Methods == Connect:
			r.connects = append(r.connects, e)
		case e.Type == "":
			r.topics = append(r.topics, e)
		case e.never == "":
			r.keys |= e.Methods
			r.keyLine = cmp.Or(r.keyLine, e.Line)
		}
		if e.Type == "" && len(e.ClientIDs) > 0 {
			r.narrow = append(r.narrow, e)
		}
		if e.never != "" {
			continue
		}
		if e.Methods != Connect && e.varies() {
			r.varying = append(r.varying, e)
		}
		for _, l := range e.levels {
			note(l)
		}
		note(e.key)
		if e.ids != ids { // the entries of a resource share them
			ids = e.ids
			for _, p := range ids.patterns() {
				note(p.parts)
			}
		}
	}
}

// A KeyType says how the text of an entry names keys.
type KeyType string

// The key types.
const (
	Pattern KeyType = "Pattern"
	String  KeyType = "String"
	Binary  KeyType = "Binary"
)

// An Entry is one topic, one key, or the Connect of a rule.
type Entry struct {
	Rule      *Rule
	Line      int
	Path      string   // such as brokerResources[1]
	Methods   Method   // what it allows
	ClientIDs []string // patterns of the client ids that it is for; empty = every id
	Type      KeyType  // "" for topics and Connect
	Text      string   // as written: topic, key or, for Binary, base64
	never     string   // why it matches nothing; "" = it may match
	misspelt  bool     // see AssumeSpelling
	own       bool     // the store's topics of the client's id; only in the short form

	allow func(Principal, Action) bool // decides instead of the fields below; only in FromFunc

	levels [][]part // of a topic
	key    []part   // of a Pattern
	exact  string   // of String and Binary
	ids    *idList  // ClientIDs, parsed; nil = none
	idAt   []int    // the lines of ClientIDs
	shared *bound   // for every principal; nil = the entry has tokens, or never matches
}

const (
	wildOne = "+"
	wildAll = "#"
)

// What the tokens of a resource begin with, and what only the short form has.
const (
	tokenStart     = "{principal."
	tokenUser      = "username"
	tokenClient    = "clientId"
	tokenAttribute = "attributes."

	tokenWild   = "wild"   // a level that is a wildcard
	tokenProven = "proven" // the client id, if it is the user name
	tokenApp    = "app"    // a first level that belongs to applications, not to the store
)

// Check returns why no client can do an action, or nil.
func (a Action) Check() error {
	if a.Method == Connect {
		return nil
	}
	topic := a.topic()
	group, shared := strings.CutPrefix(a.On, "$share/")
	group, _, _ = strings.Cut(group, "/")
	switch {
	case topic == "":
		return fmt.Errorf("%s %q: the topic or key is empty", a.Method, a.On)
	case a.Method == Publish && strings.ContainsAny(topic, "+#"):
		return fmt.Errorf("%s %.64q: a topic has no wildcards", a.Method, a.On)
	case a.Method == Subscribe:
		if shared && (group == "" || strings.ContainsAny(group, "+#")) {
			return fmt.Errorf("%s %.64q: expected $share/GROUP/FILTER", a.Method, a.On)
		}
		levels := strings.Split(topic, "/")
		for i := range levels {
			if _, why := wildcard(levels, i); why != "" {
				return fmt.Errorf("%s %.64q: %s", a.Method, a.On, why)
			}
		}
	}
	return nil
}

// setTopic parses the text of an entry for Publish or Subscribe.
func (e *Entry) setTopic() {
	levels := strings.Split(e.Text, "/")
	for i, l := range levels {
		parts, why := []part{{text: l}}, ""
		wild, bad := wildcard(levels, i)
		switch {
		case wild:
			parts = []part{{text: l, token: tokenWild}}
		case bad != "":
			why = bad
		case strings.Contains(l, tokenStart):
			if parts, why = parseParts(l); why == "" && len(parts) > 1 {
				why = fmt.Sprintf("the level %q: a token must be a whole level", l)
			} else if why != "" {
				parts = []part{{text: l}} // each level has a part
			}
		}
		if why != "" && e.never == "" {
			e.never = why
		}
		e.levels = append(e.levels, parts)
	}
	switch {
	case e.Text == "":
		e.never = "the topic is empty"
	case levels[0] == "$share":
		e.never = "shared subscriptions are judged by their filter: list it without $share and the group"
	}
}

func (e *Entry) setKey() {
	switch e.Type {
	case Pattern:
		if !utf8.ValidString(e.Text) && !strings.ContainsAny(e.Text, "*?[{}") {
			e.Type, e.exact = String, e.Text
			return
		}
		if e.key, e.never = parseParts(e.Text); e.never != "" {
			return
		}
		if !parses(e.key) {
			e.never = "not a pattern: [ without ], or ** that is not a whole level"
		}
	case Binary:
		decoded, err := base64.StdEncoding.DecodeString(e.Text)
		if err != nil {
			e.never = "not base64"
		}
		e.exact = string(decoded)
	default:
		e.exact = e.Text
	}
	if e.Text == "" {
		e.never = "the key is empty"
	}
}

// maxValues is the maximum length of the values that replace the tokens of a pattern, in bytes, because other clients
// wait while it is compiled and matched.
const maxValues = 1024

// QuotePattern returns the pattern that matches only a text.
func QuotePattern(text string) string {
	var b strings.Builder
	for _, c := range []byte(text) {
		if c == '*' || c == '?' || c == '[' {
			b.WriteString("[" + string(rune(c)) + "]")
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}

// Where returns where an entry is, such as authz.yaml:24 rules[1].brokerResources[0].
func (p *Policy) Where(e *Entry) string {
	if e.Rule.Resource < 0 {
		return e.Rule.Name
	}
	return fmt.Sprintf("%s:%d %s.%s", p.Resources[e.Rule.Resource].File, e.Line, e.Rule.Name, e.Path)
}

// WhereRule returns where a rule is, such as authz.yaml:20 rules[1].
func (p *Policy) WhereRule(r *Rule) string {
	if r.Resource < 0 {
		return r.Name
	}
	return fmt.Sprintf("%s:%d %s", p.Resources[r.Resource].File, r.Line, r.Name)
}

func (e *Entry) idLine(i int) int {
	if i < len(e.idAt) {
		return e.idAt[i]
	}
	return e.Line
}

// Never returns why an entry matches nothing, or "".
func (e *Entry) Never() string { return e.never }

// String returns an entry as text, such as Read colors/*.
func (e *Entry) String() string {
	if on := e.on(); on != "" {
		return e.Methods.String() + " " + on
	}
	return e.Methods.String()
}

// on returns what an entry is for, such as colors/red (String); "" = of Connect, or empty.
func (e *Entry) on() string {
	switch kind := "(" + string(e.Type) + ")"; {
	case e.Type != String && e.Type != Binary:
		return e.Text
	case e.Text == "":
		return kind
	default:
		return e.Text + " " + kind
	}
}

// Principals returns whom a rule is for, as text.
func (r *Rule) Principals() (who []string) {
	if r.everybody {
		return []string{"everybody"}
	}
	for _, a := range r.alternatives() {
		who = append(who, a.key())
	}
	if len(who) == 0 {
		return []string{"nobody"}
	}
	return who
}

// attributesText returns attributes as text, which is different for different ones.
func attributesText(set map[string]string) string {
	var all []string
	quote := func(text string) string { // if other attributes could have the same text
		if strings.ContainsAny(text, ` ="`) {
			return strconv.Quote(text)
		}
		return text
	}
	for _, name := range slices.Sorted(maps.Keys(set)) {
		all = append(all, quote(name)+"="+quote(set[name]))
	}
	return strings.Join(all, " ")
}
