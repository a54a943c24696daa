package policy

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/sscli/sscli/internal/glob"
)

// The search for a text that one pattern matches and others do not is bounded by searchLimit states, and takes into account
// at most searchTries others.
const (
	searchLimit = 1 << 10
	searchTries = 32
)

// suffix returns an ending that no name and no value in the rules has, so that values with it are nobody's.
func suffix(rules []*Rule) string {
	taken := make(map[string]bool)
	for _, r := range rules {
		names := slices.Concat(r.Usernames, r.ClientIDs)
		for _, set := range r.Attributes {
			names = slices.AppendSeq(names, maps.Values(set))
		}
		for _, name := range names {
			if i := strings.LastIndexByte(name, '-'); i >= 0 {
				taken[name[i:]] = true
			}
		}
	}
	for n := 1; ; n++ {
		if text := fmt.Sprint("-", n); !taken[text] {
			return text
		}
	}
}

// example returns a principal that fits an alternative, with made-up values of what else the tokens of rules
// name. They have the suffix.
func (a alternative) example(suffix string, rules ...*Rule) Principal {
	who := Principal{ClientID: cmp.Or(a.id, "client"+suffix), Username: a.user, Attributes: maps.Clone(a.set)}
	for _, r := range rules {
		for _, t := range r.tokens {
			name := strings.TrimPrefix(t.token, tokenAttribute)
			if t.token == tokenUser {
				name = "user"
			}
			if _, known := who.value(t.token); !known {
				who.set(t.token, name+suffix)
			}
		}
	}
	return who
}

// valuesFor returns a principal that fits the alternative, who, with values for which a pattern of client ids matches its
// client id. Only tokens that the alternative does not fix get other values than who has.
func (a alternative) valuesFor(who Principal, pattern string) (fits Principal, ok bool) {
	a.id = who.ClientID
	return a.solve(who, pattern, who.ClientID)
}

// solve is valuesFor for a text other than the client id.
func (a alternative) solve(who Principal, pattern, on string) (fits Principal, ok bool) {
	parts, why := parseParts(pattern)
	var tokens []string
	expression := ""
	for _, p := range parts {
		name, attribute := strings.CutPrefix(p.token, tokenAttribute)
		_, fixed := a.set[name]
		switch {
		case p.token == "":
			expression += loose(p.text)
		case p.token == tokenUser && a.user == "", p.token == tokenClient && a.id == "", attribute && !fixed:
			tokens = append(tokens, p.token)
			expression += "(.+)"
		default:
			value, _ := who.value(p.token)
			expression += regexp.QuoteMeta(value)
		}
	}
	re, err := regexp.Compile("(?s)^" + expression + "$")
	if why != "" || err != nil || !parses(parts) {
		return who, false
	}
	values := re.FindStringSubmatch(on)
	if values == nil {
		return who, false
	}
	who.Attributes = maps.Clone(who.Attributes)
	for i, token := range tokens {
		who.set(token, values[i+1])
	}
	p := compile(parts, &who)
	return who, p != nil && p.Match([]byte(on))
}

// loose returns a regular expression that matches at least what a pattern matches.
func loose(pattern string) string {
	text := ""
	for i := 0; i < len(pattern); i++ {
		switch end := strings.IndexByte(pattern[i:], ']'); {
		case pattern[i] == '*':
			text += ".*"
		case pattern[i] == '?', pattern[i] == '[' && end > 0:
			text += "."
			if pattern[i] == '[' {
				i += end
			}
		default:
			text += regexp.QuoteMeta(pattern[i : i+1])
		}
	}
	return text
}

func anyID() *glob.Pattern {
	p, _ := glob.Parse("*")
	return p
}

// lacks returns a key that an entry allows to a principal, and that the client, which has the same principal, may not
// use.
func (x *Lookup) lacks(e *Entry, who *Principal, m Method) (key string, found bool) {
	b, ok := e.bind(who)
	if !ok || b.glob == nil {
		return "", false
	}
	key, found = without(b.glob, func(key string) *glob.Pattern {
		o := x.find(Action{m, key}, first)
		switch {
		case o == nil:
			return nil
		case o.all || o.entry.Text == e.Text && o.entry.Type == e.Type:
			return b.glob
		case o.glob == nil:
			p, _ := glob.Parse(QuotePattern(o.entry.exact))
			return p
		}
		return o.glob
	})
	if !found && b.all && x.find(Action{m, "\xff"}, first) == nil {
		return "\xff", true // only * matches it
	}
	return key, found
}

// without returns a text that a pattern matches, and for which match returns nil. Otherwise match returns a pattern that
// matches the text.
func without(p *glob.Pattern, match func(text string) *glob.Pattern) (text string, found bool) {
	var others []*glob.Pattern
	for range searchTries {
		if text, found = p.Without(others, searchLimit); !found {
			return "", false
		}
		other := match(text)
		if other == nil {
			return text, true
		}
		others = append(others, other)
	}
	return "", false
}

func fitting(pattern string, who *Principal) string {
	parts, _ := parseParts(pattern)
	text, _ := replaced(parts, who)
	return sample(text)
}

func sample(pattern string) string {
	var b strings.Builder
	for i := 0; i < len(pattern); i++ {
		switch c := pattern[i]; c {
		case '*', '?':
			if c == '?' || b.Len() == 0 || i == len(pattern)-1 {
				b.WriteByte('1')
			}
		case '[':
			end := strings.IndexByte(pattern[i:], ']')
			if end < 2 || pattern[i+1] == '!' {
				b.WriteByte('1')
			} else {
				b.WriteByte(pattern[i+1])
			}
			i += max(end, 0)
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}
