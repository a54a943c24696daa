package policy

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// What the package assumes, because the documentation does not say.
const (
	AssumeNobody   = "a rule without principals, or with an empty set of attributes, is for nobody"
	AssumeLiteral  = "wildcards in usernames and in the clientIds of principals are literal"
	AssumeMissing  = "a token whose value the client lacks matches nothing"
	AssumePlace    = "a token that is not a whole level of a topic matches nothing"
	AssumeNarrow   = "clientIds with Publish and Subscribe are a further condition"
	AssumeIDGlob   = "the clientIds of brokerResources are patterns like those of keys"
	AssumeCovers   = "a filter is allowed if one listed filter matches all its topics"
	AssumeDialect  = "patterns have the syntax of SCAN: [!a], ** and an unclosed [ beside *, ? and [a-z]; ^ and a backslash have no meaning"
	AssumeHidden   = "a wildcard at the beginning of a topic does not stand for a level that begins with $"
	AssumeBytes    = "a key that is not UTF-8 matches only the pattern * and Binary keys"
	AssumeSpelling = "methods and key types may be written in lower case"
	AssumeSlash    = "a value with a slash is not a level of a topic"
	AssumeReply    = "a response topic needs Publish as well, unless it is the client's own"
	AssumeUnion    = "the rules of several resources add up, although a port has one authorization"
)

// A Decision is the answer of a policy, and its reason.
type Decision struct {
	Allowed bool
	Entry   *Entry // allows the action or, if Lacks is set, comes nearest to it; nil = none does
	Rule    *Rule  // the rule of Entry, or the nearest rule if it has no such entry; nil = none
	Lacks   string // why the action is denied; "" if it is allowed
	Assumes []string
}

// Decide answers whether a principal may do something, and why. It takes longer than [Client.Allowed].
func (p *Policy) Decide(who Principal, a Action) Decision {
	client := p.For(who)
	d := Decision{Entry: client.Allowed(a)}
	if d.Entry != nil {
		d.Allowed, d.Rule = true, d.Entry.Rule
		d.assume(d.Entry.assumed(&who, a)...)
		if a.Method == Subscribe && !strings.ContainsAny(a.On, "+#") && !client.MayReplyTo(a.On) {
			d.assume(AssumeReply)
		}
	} else {
		p.nearest(&d, &who, a)
	}
	if len(p.Resources) > 1 {
		d.assume(AssumeUnion)
	}
	return d
}

func (d *Decision) assume(all ...string) {
	for _, text := range all {
		if text != "" && !slices.Contains(d.Assumes, text) {
			d.Assumes = append(d.Assumes, text)
		}
	}
}

// assumed returns what the answer of an entry that allows an action depends on.
func (e *Entry) assumed(who *Principal, a Action) (all []string) {
	if len(e.ClientIDs) > 0 && a.Method != Connect {
		all = append(all, AssumeNarrow)
	}
	for _, id := range e.ClientIDs {
		if strings.ContainsAny(strings.TrimSuffix(id, "*"), "*?[") {
			all = append(all, AssumeIDGlob)
		}
	}
	if e.misspelt {
		all = append(all, AssumeSpelling)
	}
	switch {
	case a.Method == Subscribe && strings.ContainsAny(a.On, "+#"):
		if b, ok := e.bind(who); ok && strings.Join(b.levels, "/") != a.On {
			all = append(all, AssumeCovers)
		}
	case e.Type == Pattern:
		if strings.Contains(e.Text, "[!") || strings.Contains(e.Text, "**") || e.reads(who, a.On, false) {
			all = append(all, AssumeDialect)
		}
		if !utf8.ValidString(a.On) {
			all = append(all, AssumeBytes)
		}
	}
	return all
}

// readings returns other readings of a pattern: a class that begins with ^ is negated, one that begins with ! is not, and
// a backslash takes the next character literally.
func readings(pattern string) (all []string) {
	if strings.Contains(pattern, "[^") {
		all = append(all, strings.ReplaceAll(pattern, "[^", "[!"))
	}
	if strings.Contains(pattern, "[!") {
		all = append(all, regexp.MustCompile(`\[!([^]]+)\]`).ReplaceAllString(pattern, "[$1!]"))
	}
	if strings.Contains(pattern, `\`) {
		all = append(all, strings.NewReplacer(`\*`, "[*]", `\?`, "[?]", `\[`, "[[]", `\\`, `\`).Replace(pattern))
	}
	return all
}

// reads reports whether, by another reading of its pattern, an entry matches a key or, if match is false, does not.
func (e *Entry) reads(who *Principal, key string, match bool) bool {
	return slices.ContainsFunc(readings(e.Text), func(text string) bool {
		other := &Entry{Type: Pattern, Text: text}
		if text == e.Text {
			return false
		} else if other.setKey(); other.never != "" {
			return false
		}
		b, ok := other.replace(who)
		return ok && (b.all || b.glob.Match([]byte(key))) == match
	})
}

// nearest finds the rule that comes nearest to allowing an action, and what it lacks.
func (p *Policy) nearest(d *Decision, who *Principal, a Action) {
	best := 0
	consider := func(score int, r *Rule, e *Entry, lacks string) {
		if score > best {
			best, d.Rule, d.Entry, d.Lacks = score, r, e, lacks
		}
	}
	const ( // from the nearest to the farthest
		whole     = 1 << 20 // longer than any key
		anyone    = whole
		other     = 2 * whole
		condition = 3 * whole
		method    = 4 * whole
	)
	store := a.Method&(Read|Write) != 0
	for _, r := range p.Rules {
		named := r.names(who)
		loosely := r.loosely(who)
		if named {
			consider(1, r, nil, "it has no "+a.Method.String())
		}
		for _, e := range r.Entries {
			b, bound := e.bind(who)
			does := e.Methods&a.Method != 0
			covers := bound && does && b.matches(who, a)
			if !covers && (named || loosely != "") && does {
				if assumption := e.loosely(who, a); assumption != "" {
					d.assume(loosely, assumption)
				}
			}
			if covers {
				d.assume(loosely)
			}
			switch {
			case covers && best >= other:
			case covers:
				consider(other, r, e, "it is for "+strings.Join(r.Principals(), ", "))
			case named && does && !e.fits(who) && best >= condition:
			case named && does && !e.fits(who):
				consider(condition, r, e, fmt.Sprintf("its clientIds are %s", strings.Join(e.ClientIDs, ", ")))
			case named && does && e.Methods == Connect:
			case named && does && e.never != "":
				consider(anyone+1+common(e.Text, a.On), r, e, fmt.Sprintf("%s matches nothing: %s", e.Text, e.never))
			case named && does && valuesOf(e.key, who) > maxValues:
				consider(anyone+1+common(e.Text, a.On), r, e, fmt.Sprintf("%s: the client's names are longer than %d bytes", e.Text, maxValues))
			case named && does && !bound:
				lacks := "a value of the client has a slash"
				if slices.ContainsFunc(slices.Concat(append(slices.Clone(e.levels), e.key)...), who.lacks) {
					lacks = "the client has no such value"
				}
				consider(anyone+1+common(e.Text, a.On), r, e, fmt.Sprintf("%s: %s", e.Text, lacks))
			case named && does:
				consider(anyone+1+common(e.Text, a.On), r, e, fmt.Sprintf("it allows %s only on %s", a.Method, e.on()))
			case named && bound && store && e.Type != "" && b.matches(who, a):
				consider(method, r, e, fmt.Sprintf("it allows %s, not %s", e.Methods, a.Method))
			}
		}
	}
	if d.Rule == nil {
		d.Lacks = "no rule names this client"
		if len(p.Rules) == 0 {
			d.Lacks = "there are no rules"
		}
	}
}

// loosely returns the assumption without which a rule would be for a principal; "" = none.
func (r *Rule) loosely(who *Principal) string {
	if r.everybody || r.names(who) {
		return ""
	}
	if empty := func(set map[string]string) bool { return len(set) == 0 }; len(r.Usernames)+len(r.ClientIDs)+len(r.Attributes) == 0 || slices.ContainsFunc(r.Attributes, empty) {
		return AssumeNobody
	}
	for _, pair := range []struct {
		names []string
		name  string
	}{{r.Usernames, who.Username}, {r.ClientIDs, who.ClientID}} {
		for _, text := range pair.names {
			if strings.ContainsAny(text, "*?[{") {
				if parts, why := parseParts(text); why == "" && parses(parts) {
					if g := compile(parts, who); g != nil && g.Match([]byte(pair.name)) {
						return AssumeLiteral
					}
				}
			}
		}
	}
	return ""
}

// freed returns an entry like e for all client ids, with wildcards in place of some tokens.
func (e *Entry) freed(some func(part) bool) *Entry {
	free := *e
	free.ClientIDs, free.never, free.shared = nil, "", nil
	free.levels, free.key = slices.Clone(e.levels), slices.Clone(e.key)
	for i, l := range e.levels {
		if slices.ContainsFunc(l, some) {
			free.levels[i] = []part{{wildOne, tokenWild}}
		}
	}
	for i, p := range e.key {
		if some(p) {
			free.key[i] = part{text: "*"}
		}
	}
	return &free
}

// loosely returns the assumption without which an entry would allow an action; "" = none.
func (e *Entry) loosely(who *Principal, a Action) string {
	allows := func(e *Entry, a Action) bool {
		b, ok := e.bind(who)
		return ok && b.matches(who, a)
	}
	plain, free := e.freed(func(part) bool { return false }), e.freed(who.lacks)
	if e.never == "" && a.Method != Connect && allows(plain, a) {
		return AssumeNarrow
	}
	if parts, missing := e.missingID(who); missing && compile(parts, who) != nil && compile(parts, who).Match([]byte(who.ClientID)) {
		return AssumeMissing
	}
	if e.Type != "" {
		shown := Action{a.Method, strings.ToValidUTF8(a.On, "\uFFFD")}
		switch {
		case e.Type == Pattern && (e.never == "" && e.reads(who, a.On, true) || e.never != "" && strings.ContainsAny(e.Text, "[*")):
			return AssumeDialect
		case e.Type == Pattern && shown != a && allows(plain, shown):
			return AssumeBytes
		case e.Type == Pattern && len(e.key) > 0 && allows(free, shown):
			return AssumeMissing
		}
		return ""
	}
	assumption, levels := "", [][]part(nil)
	for i, parts := range e.levels {
		text := joinedFor(parts, who)
		switch {
		case slices.ContainsFunc(parts, who.lacks):
			assumption = AssumeMissing
		case len(parts) > 1:
			assumption, free.levels[i] = AssumePlace, []part{{text: text}}
		case parts[0].varies() && strings.Contains(text, "/"):
			assumption = AssumeSlash
			for level := range strings.SplitSeq(text, "/") {
				levels = append(levels, []part{{text: level}})
			}
			continue
		}
		levels = append(levels, free.levels[i])
	}
	free.levels = levels
	if len(levels) > 0 && strings.HasPrefix(a.topic(), "$") && assumption == "" {
		shown := Action{a.Method, "x" + strings.TrimPrefix(a.topic(), "$")}
		if first := levels[0][0]; first.token == tokenWild && allows(free, shown) {
			return AssumeHidden
		}
	}
	if assumption != "" && allows(free, a) {
		return assumption
	}
	return ""
}

// joinedFor returns parts as text, with the values of tokens.
func joinedFor(parts []part, who *Principal) (text string) {
	for _, p := range parts {
		if value, ok := who.value(p.token); ok && p.varies() {
			text += value
		} else {
			text += p.text
		}
	}
	return text
}

// missingID returns the first of ClientIDs with a token whose value a principal lacks, with a star in its place.
func (e *Entry) missingID(who *Principal) (parts []part, missing bool) {
	for _, p := range e.ids.patterns() {
		parts = slices.Clone(p.parts)
		for i, part := range parts {
			if _, ok := who.value(part.token); part.token != "" && !ok {
				parts[i].token, parts[i].text, missing = "", "*", true
			}
		}
		if missing {
			return parts, true
		}
	}
	return nil, false
}

// common returns the length of what two texts begin with.
func common(a, b string) int {
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return n
}
