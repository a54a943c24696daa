package policy

import (
	"slices"
	"strings"
	"unicode/utf8"
	"unsafe"

	"github.com/sscli/sscli/internal/glob"
)

// A bound is an entry with its tokens replaced.
type bound struct {
	entry  *Entry
	levels []string      // of a topic, with wildcards as "+" and "#" in wild
	wild   []bool        // levels that are wildcards
	glob   *glob.Pattern // nil = exact
	all    bool          // every key, also keys that are not UTF-8
	prefix string        // with simple, the pattern is this text and a star
	simple bool
}

// bind replaces the tokens of an entry. ok is false if the entry matches nothing for this principal.
func (e *Entry) bind(who *Principal) (b *bound, ok bool) {
	switch {
	case e.never != "" || !e.fits(who):
		return nil, false
	case e.shared != nil:
		return e.shared, true
	}
	return e.replace(who)
}

// share binds the entries without tokens once, for all principals: to compile a pattern takes long, and the result takes
// far more memory than its text.
func (p *Policy) share() {
	for _, r := range p.Rules {
		for _, e := range r.Entries {
			if e.never == "" && !slices.ContainsFunc(append(slices.Concat(e.levels...), e.key...), part.varies) {
				e.shared, _ = e.replace(&Principal{})
			}
		}
	}
}

// replace is bind without the conditions of an entry.
func (e *Entry) replace(who *Principal) (b *bound, ok bool) {
	b = &bound{entry: e}
	switch {
	case e.allow != nil:
		return b, true
	case e.Type == Pattern:
		b.all = strings.Trim(e.Text, "*") == ""
		b.glob = compile(e.key, who)
		if text, star := strings.CutSuffix(e.Text, "*"); star && !strings.ContainsAny(text, "*?[{") {
			b.prefix, b.simple = text, true
		}
		return b, b.glob != nil
	case e.levels == nil:
		return b, true
	}
	for _, parts := range e.levels {
		p := parts[0]
		text, wild := p.text, p.token == tokenWild || p.token == tokenApp
		if p.varies() {
			if text, ok = who.value(p.token); !ok || strings.Contains(text, "/") {
				return b, false
			}
		}
		b.levels, b.wild = append(b.levels, text), append(b.wild, wild)
	}
	return b, true
}

// fits reports whether an entry is for the client's id.
func (e *Entry) fits(who *Principal) bool { return len(e.ClientIDs) == 0 || e.ids.find(who) != nil }

// matches reports whether an entry covers what an action of a principal is on.
func (b *bound) matches(who *Principal, a Action) bool {
	switch {
	case a.Method == Connect:
		return true
	case b.entry.allow != nil:
		return b.entry.allow(*who, a)
	case a.Method == Publish || a.Method == Subscribe:
		on, filter := a.topic(), a.Method == Subscribe
		if b.entry.own {
			return OwnsTopic(who.ClientID, on)
		}
		return b.covers(on, filter)
	case b.all:
		return true
	case b.simple:
		return strings.HasPrefix(a.On, b.prefix) && utf8.ValidString(a.On)
	case b.glob != nil:
		return b.glob.Match([]byte(a.On))
	}
	return b.entry.exact == a.On
}

// covers reports whether the levels match a topic or, with filter, every topic that a filter matches.
func (b *bound) covers(on string, filter bool) bool {
	rest, more := on, true
	for i, want := range b.levels {
		hidden := i == 0 && strings.HasPrefix(on, "$") // wildcards do not match these (MQTT 5, 4.7.2)
		if b.wild[i] && want == wildAll {
			return !hidden
		}
		if !more {
			return false
		}
		var level string
		level, rest, more = strings.Cut(rest, "/")
		switch {
		case !b.wild[i]:
			if level != want || filter && (level == wildOne || level == wildAll) {
				return false
			}
		case want == "": // a first level of applications
			if level == "clients" || level == "statestore" || filter && (level == wildOne || level == wildAll) {
				return false
			}
		case filter && level == wildAll: // + and # together match what # matches
			return i == 0 && len(b.levels) == 2 && b.levels[1] == wildAll && b.wild[1]
		case hidden:
			return false
		}
	}
	return !more
}

func (r *Rule) names(who *Principal) bool {
	return r.everybody || who.Username != "" && slices.Contains(r.Usernames, who.Username) ||
		who.ClientID != "" && slices.Contains(r.ClientIDs, who.ClientID) ||
		slices.ContainsFunc(r.Attributes, func(set map[string]string) bool { return len(set) > 0 && within(set, who.Attributes) })
}

// An index finds the rules for a principal. The numbers are those of rules.
type index struct {
	everybody  []int
	users, ids map[string][]int
	pairs      map[[2]string][]indexedSet // by the attribute of each set that the fewest other sets have
}

type indexedSet struct {
	set  map[string]string
	rule int
}

// minIndexed is the number of rules and principals from which an index is faster than asking each rule.
const minIndexed = 16

// link prepares a policy whose rules are complete.
func (p *Policy) link() {
	for _, r := range p.Rules {
		for _, e := range r.Entries {
			e.Rule = r
		}
	}
	p.share()
	for _, r := range p.Rules {
		r.summarize()
	}
	p.indexRules()
}

// indexRules builds the index. Without one, the policy asks each rule.
func (p *Policy) indexRules() {
	x := &index{users: make(map[string][]int), ids: make(map[string][]int), pairs: make(map[[2]string][]indexedSet)}
	n, count := 0, make(map[[2]string]int)
	for _, r := range p.Rules {
		n += 1 + len(r.Usernames) + len(r.ClientIDs) + len(r.Attributes)
		for _, set := range r.Attributes {
			for name, value := range set {
				count[[2]string{name, value}]++
			}
		}
	}
	if n < minIndexed {
		return
	}
	for i, r := range p.Rules {
		if r.everybody {
			x.everybody = append(x.everybody, i)
		}
		for _, name := range r.Usernames {
			x.users[name] = append(x.users[name], i)
		}
		for _, id := range r.ClientIDs {
			x.ids[id] = append(x.ids[id], i)
		}
		for _, set := range r.Attributes {
			var rarest [2]string
			for name, value := range set {
				if pair := [2]string{name, value}; rarest[0] == "" || count[pair] < count[rarest] {
					rarest = pair
				}
			}
			x.pairs[rarest] = append(x.pairs[rarest], indexedSet{set, i})
		}
	}
	p.index = x
}

func (p *Policy) rulesFor(who *Principal) (rules []*Rule) {
	x := p.index
	if x == nil {
		for _, r := range p.Rules {
			if r.names(who) {
				rules = append(rules, r)
			}
		}
		return rules
	}
	all := slices.Clone(x.everybody)
	if who.Username != "" {
		all = append(all, x.users[who.Username]...)
	}
	if who.ClientID != "" {
		all = append(all, x.ids[who.ClientID]...)
	}
	for name, value := range who.Attributes {
		for _, s := range x.pairs[[2]string{name, value}] {
			if within(s.set, who.Attributes) {
				all = append(all, s.rule)
			}
		}
	}
	slices.Sort(all)
	for _, i := range slices.Compact(all) {
		rules = append(rules, p.Rules[i])
	}
	return rules
}

// Names reports whether a rule is for a principal.
func (p *Policy) Names(who Principal) bool { return len(p.rulesFor(&who)) > 0 }

func within(set, all map[string]string) bool {
	for name, value := range set {
		if got, ok := all[name]; !ok || got != value {
			return false
		}
	}
	return true
}

// A Client answers what a principal may do. It is safe for concurrent use.
type Client struct {
	who          Principal
	connect      *Entry
	topics, keys []*bound
}

// For returns the answers for a principal.
func (p *Policy) For(who Principal) *Client { return bindRules(who, p.rulesFor(&who), true) }

// connect returns the entry by which a principal may connect, or nil.
func (p *Policy) connect(who Principal) *Entry { return connect(&who, p.rulesFor(&who)) }

// bindRules is For by the rules that name a principal, with keys or without.
func bindRules(who Principal, rules []*Rule, keys bool) *Client {
	c := &Client{who: who, connect: connect(&who, rules)}
	for _, r := range rules {
		all := r.topics
		if keys {
			all = r.Entries
		}
		for _, e := range all {
			switch b, ok := e.bind(&c.who); {
			case !ok || e.Methods == Connect:
			case e.Type != "":
				c.keys = append(c.keys, b)
			default:
				c.topics = append(c.topics, b)
			}
		}
	}
	return c
}

// connect returns the entry by which rules that name a principal let it connect, or nil.
func connect(who *Principal, rules []*Rule) (entry *Entry) {
	for _, r := range rules {
		for _, e := range r.connects {
			if e.fits(who) {
				entry = e
			}
		}
	}
	return entry
}

// Memory returns the estimated memory of the answers, in bytes, without what all clients share.
func (c *Client) Memory() int {
	const place = int(unsafe.Sizeof(c.keys[0]))
	n := int(unsafe.Sizeof(*c)) + place*(cap(c.topics)+cap(c.keys))
	if attributes := len(c.who.Attributes); attributes > 0 {
		n += mapCost + attributeCost*attributes
	}
	for _, list := range [][]*bound{c.topics, c.keys} {
		for _, b := range list {
			if b == b.entry.shared {
				continue
			}
			n += int(unsafe.Sizeof(*b)) + int(unsafe.Sizeof(""))*cap(b.levels) + cap(b.wild)
			if b.glob != nil {
				n += int(unsafe.Sizeof(*b.glob)) + b.glob.Memory()
			}
		}
	}
	return n
}

// The estimated memory of Principal.Attributes, whose texts are those of Policy.Attributes.
const (
	pointer       = int(unsafe.Sizeof(uintptr(0)))
	mapCost       = 44 * pointer
	attributeCost = 8 * pointer
)

// Allowed returns the entry that allows an action, or nil if none does.
func (c *Client) Allowed(a Action) *Entry {
	list := c.topics
	switch {
	case a.Method == Connect:
		return c.connect
	case a.Method&(Read|Write) != 0:
		list = c.keys
	}
	for _, b := range list {
		if b.entry.Methods&a.Method != 0 && b.matches(&c.who, a) {
			return b.entry
		}
	}
	return nil
}

// AllowsKey reports whether a client may read a key or, if write is set, may write it. It takes longer than
// [Client.Allowed]. A nil policy allows everything.
func (p *Policy) AllowsKey(clientID, username, key string, write bool) bool {
	if p == nil {
		return true
	}
	who := Principal{ClientID: clientID, Username: username, Attributes: p.Attributes.Of(username, nil)}
	return p.For(who).Allowed(OnKey(key, write)) != nil
}

// AllowsAll reports whether the client may read and write every key.
func (c *Client) AllowsAll() bool {
	all := Method(0)
	for _, b := range c.keys {
		if b.all {
			all |= b.entry.Methods
		}
	}
	return all == Read|Write
}
