package policy

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/sscli/sscli/internal/glob"
)

// An idList is the clientIds of a resource, without those that match nothing.
type idList struct {
	all    []idPattern
	groups []idGroup
	wild   bool   // a pattern has a wildcard
	text   string // identifies the list
}

// An idGroup has the patterns that begin with the same literal text and the same token.
type idGroup struct {
	before, token string
	rest          finder[*idPattern] // by what follows the token
}

// An idPattern is a pattern of client ids.
type idPattern struct {
	parts  []part
	shared *glob.Pattern // nil = it has tokens
	simple bool          // no wildcard but a star at the end
}

func (l *idList) patterns() []idPattern {
	if l == nil {
		return nil
	}
	return l.all
}

// idPatterns returns the patterns of client ids in a rule. The entries of a resource share theirs.
func (r *Rule) idPatterns() (all []idPattern) {
	var last *idList
	for _, e := range r.narrow {
		if e.ids != last {
			last = e.ids
			all = append(all, e.ids.patterns()...)
		}
	}
	return all
}

// find returns a pattern that matches the client's id, or nil.
func (l *idList) find(who *Principal) *idPattern {
	if l == nil {
		return nil
	}
	for i := range l.groups {
		g := &l.groups[i]
		rest, ok := strings.CutPrefix(who.ClientID, g.before)
		if ok && g.token != "" {
			value, known := who.value(g.token)
			rest, ok = strings.CutPrefix(rest, value)
			ok = ok && known
		}
		if !ok {
			continue
		}
		if p, found := g.rest.find(rest, func(p *idPattern) bool { return p.matches(who) }); found {
			return p
		}
	}
	return nil
}

func (p *idPattern) matches(who *Principal) bool {
	if p.simple {
		return p.begins(who)
	}
	g := p.compiled(who)
	return g != nil && g.Match([]byte(who.ClientID))
}

// compiled returns the pattern for a principal, or nil.
func (p *idPattern) compiled(who *Principal) *glob.Pattern {
	if p.shared != nil {
		return p.shared
	}
	return compile(p.parts, who)
}

// begins is what a simple pattern means: it is faster than to compile it.
func (p *idPattern) begins(who *Principal) bool {
	rest, n := who.ClientID, 0
	if !utf8.ValidString(rest) {
		return false
	}
	for i, part := range p.parts {
		text, ok := part.text, true
		if part.token != "" {
			if text, ok = who.value(part.token); !ok || !utf8.ValidString(text) {
				return false
			}
			n += len(text)
		}
		prefix, star := strings.CutSuffix(text, "*")
		if star && i == len(p.parts)-1 && part.token == "" {
			return n <= maxValues && strings.HasPrefix(rest, prefix)
		}
		if rest, ok = strings.CutPrefix(rest, text); !ok {
			return false
		}
	}
	return rest == "" && n <= maxValues
}

// newIDs parses the clientIds of a resource.
func newIDs(texts []string) *idList {
	if len(texts) == 0 {
		return nil
	}
	l := &idList{text: fmt.Sprintf("%q", texts)}
	if len(l.text) > 256 {
		l.text = fmt.Sprintf("%x", sha256.Sum256([]byte(l.text)))
	}
	for _, text := range texts {
		l.wild = l.wild || strings.ContainsAny(text, "*?[")
		parts, why := parseParts(text)
		if why != "" || !parses(parts) {
			continue
		}
		p := idPattern{parts: parts, simple: true}
		for i, part := range parts {
			text := part.text
			if i == len(parts)-1 {
				text = strings.TrimSuffix(text, "*")
			}
			p.simple = p.simple && !strings.ContainsAny(text, `*?[`)
		}
		if !slices.ContainsFunc(parts, part.varies) {
			p.shared = compile(parts, &Principal{})
		}
		l.all = append(l.all, p)
	}
	groups := make(map[[2]string]int)
	for i := range l.all {
		id, parts := [2]string{}, l.all[i].parts
		if len(parts) > 1 && parts[0].token == "" && !strings.ContainsAny(parts[0].text, "*?[") {
			id[0], parts = parts[0].text, parts[1:]
		}
		if len(parts) > 0 && parts[0].token != "" {
			id[1], parts = parts[0].token, parts[1:]
		}
		begin := ""
		if len(parts) > 0 {
			begin = parts[0].text
			if end := strings.IndexAny(begin, "*?["); end >= 0 {
				begin = begin[:end]
			}
		}
		at, known := groups[id]
		if !known {
			at = len(l.groups)
			groups[id] = at
			l.groups = append(l.groups, idGroup{before: id[0], token: id[1]})
		}
		l.groups[at].rest.add(begin, 0, &l.all[i])
	}
	return l
}
