package policy

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/sscli/sscli/internal/wire"
)

// texts checks how a rule is written: whom it is for, and what another dialect would mean.
func (c *checker) texts(r *Rule) {
	all := r.alternatives()
	if len(all) == 0 && r.Attributes == nil {
		c.find(idEmpty, r.Line, Warning, nil, "principals: with usernames, clientIds or attributes", "%s names no principals: it is for nobody (assumed)", r.Name)
	}
	if len(r.Entries) == 0 {
		c.find(idEmpty, r.Line, Warning, nil, "", "%s allows nothing", r.Name)
	}
	for _, a := range all {
		for _, text := range append(slices.Sorted(maps.Values(a.set)), cmp.Or(a.user, a.id)) {
			if strings.ContainsAny(text, "*?[{") {
				c.find(idDialect, r.lineOf(a), Warning, nil, "attributes, or clientIds with Connect", "%q in the principals of %s is taken literally (assumed): only names without wildcards are documented", text, r.Name)
			}
			c.blank(r.lineOf(a), text, nil)
		}
		if likeSubject(a.user) {
			c.find(idDialect, r.lineOf(a), Warning, nil, "write the common name alone, or attributes that belong to the subject", "%q: the user name of a certificate is the common name of its subject", a.user)
		}
		for _, name := range slices.Sorted(maps.Keys(a.set)) {
			for _, asked := range []string{name, name + "=" + a.set[name]} {
				if other := c.nearly(asked); other != "" {
					c.find(idAttribute, r.lineOf(a), Warning, nil, "write the same everywhere", "only this rule asks for the attribute %s, others ask for %s", asked, other)
				}
			}
		}
	}
	for i, e := range r.Entries {
		if i == 0 || e.ids != r.Entries[i-1].ids { // the entries of a resource share them
			c.idTexts(e)
		}
		c.text(e)
	}
	for _, t := range r.tokens {
		name, attribute := strings.CutPrefix(t.token, tokenAttribute)
		if attribute && c.valuesOf(r, t.token).number == 0 {
			c.attribute(r, t.entry, name)
		}
	}
}

// attribute reports a token in an entry for an attribute that no principal of the rule must have.
func (c *checker) attribute(r *Rule, e *Entry, name string) {
	var known []string
	users := len(r.Usernames)+len(r.ClientIDs) > 0
	if len(c.values[r]) < maxNames {
		for _, token := range slices.Sorted(maps.Keys(c.values[r])) {
			if other, attribute := strings.CutPrefix(token, tokenAttribute); attribute && c.values[r][token].number > 0 {
				known = append(known, other)
			}
		}
	}
	if i := slices.IndexFunc(known, func(other string) bool { return near(name, other, true) }); i >= 0 {
		right := strings.NewReplacer(tokenStart+tokenAttribute+name+"}", tokenStart+tokenAttribute+known[i]+"}")
		text := right.Replace(e.Text)
		mend := &Mend{Old: e, New: func() *Entry { return e.changed(text) }}
		if at := slices.IndexFunc(e.ClientIDs, func(id string) bool { return right.Replace(id) != id }); at >= 0 && e.Methods == Connect {
			text = right.Replace(e.ClientIDs[at])
			mend.New = func() *Entry {
				ids := slices.Clone(e.ClientIDs)
				for i, id := range ids {
					ids[i] = right.Replace(id)
				}
				return e.connecting(ids...)
			}
		}
		c.find(idAttribute, e.Line, Warning, mend, fmt.Sprintf("write %q, for %s", text, r.someone()), "{principal.attributes.%s}: %s asks for the attribute %s", name, r.Name, known[i])
		return
	}
	if e.Methods == Connect && users {
		return // see journeys
	}
	severity := Info // clients with attributes may have more
	if users {
		severity = Warning
	}
	c.find(idAttribute, e.Line, severity, nil, "give them the attribute where they log in, or write {principal.username}",
		"{principal.attributes.%s}: no principal of %s must have the attribute %s; for clients without it, the entry matches nothing", name, r.Name, name)
}

// asks says which rules ask for an attribute.
type asks struct {
	count int // rules
	first int // index of the first rule
	set   int // number of the first set of attributes, counted over all rules
}

// nearly returns an attribute of rules that is spelt almost like one which only one rule has, or "" if there is none. An
// attribute is a name, or a name and a value. The values in one rule may be alike.
func (c *checker) nearly(attribute string) (found string) {
	if c.asked == nil {
		c.asked = make(map[string]asks)
		sets := 0
		for i, r := range c.policy.Rules {
			own := make(map[string]int)
			for _, set := range r.Attributes {
				sets++
				for name, value := range set {
					own[name], own[name+"="+value] = cmp.Or(own[name], sets), cmp.Or(own[name+"="+value], sets)
				}
			}
			for text, set := range own {
				n, known := c.asked[text]
				if !known {
					n.first, n.set = i, set
				}
				n.count++
				c.asked[text] = n
			}
		}
	}
	mine := c.asked[attribute]
	known, is := c.near[attribute]
	if mine.count > 1 || len(c.asked) > maxNames || is {
		return known
	}
	defer func() { c.near[attribute] = found }()
	name, value, valued := strings.Cut(attribute, "=")
	for _, text := range slices.Sorted(maps.Keys(c.asked)) {
		n := c.asked[text]
		otherName, other, is := strings.Cut(text, "=")
		if n.count == 1 && n.set >= mine.set || is != valued || valued && (name != otherName || n.count == 1 && n.first == mine.first) {
			continue
		}
		if valued && near(value, other, false) || !valued && near(name, otherName, false) {
			return text
		}
	}
	return ""
}

// blank reports a text with a blank at its begin or end, which a mend removes.
func (c *checker) blank(line int, text string, mend *Mend) {
	if trimmed := strings.TrimSpace(text); trimmed != text {
		c.find(idBlank, line, Warning, mend, fmt.Sprintf("write %q", trimmed), "%q begins or ends with a blank, which is a part of it", text)
	}
}

// idTexts checks how the client ids of an entry are written.
func (c *checker) idTexts(e *Entry) {
	for i, id := range e.ClientIDs {
		if better := dialect(id, false); better != id {
			c.find(idDialect, e.idLine(i), Warning, e.withID(i, better), fmt.Sprintf("write %q, for %s", better, e.Rule.someone()), "client id %q: only *, ? and [a-z] are wildcards", id)
		}
		c.blank(e.idLine(i), id, e.withID(i, strings.TrimSpace(id)))
	}
}

func (c *checker) text(e *Entry) {
	if e.Type != Binary {
		c.blank(e.Line, e.Text, &Mend{Old: e, New: func() *Entry { return e.changed(strings.TrimSpace(e.Text)) }})
	}
	if e.never != "" {
		return
	}
	// wider reports an entry that seems to mean more than it does.
	wider := func(better *Entry, message string, args ...any) {
		var mend *Mend
		hint := ""
		if better != nil && better.never == "" {
			mend = e.by(better)
			hint = "write " + better.Text
			if better.Type != e.Type {
				hint = "keyType: Pattern"
			}
			hint += ", for " + e.Rule.someone()
		}
		c.find(idDialect, e.Line, Warning, mend, hint, message, args...)
	}
	switch {
	case e.Type == String:
		if strings.ContainsAny(e.Text, "*?") || strings.Contains(e.Text, tokenStart) || classAt(e.Text) >= 0 {
			pattern := *e
			pattern.Type = Pattern
			wider((&pattern).changed(e.Text), "String key %q is the one key of this name: patterns and tokens need keyType Pattern", e.Text)
		}
	case e.Type == Pattern:
		if grouped(e.Text) {
			wider(nil, "key %q: only *, ? and [a-z] are wildcards: list each key", e.Text)
		} else if better := dialect(e.Text, true); better != e.Text && !(c.dotted && better == strings.ReplaceAll(e.Text, ".*", "*")) {
			wider(e.changed(better), "key %q: in keys, only *, ? and [a-z] are wildcards, and * includes slashes", e.Text)
		}
		if class := word(e.Text); class != "" {
			c.find(idDialect, e.Line, Warning, nil, "keyType: String for the one key of this name; a ? or * for other keys", "key %q: %s stands for one character of those between the brackets", e.Text, class)
		}
	case e.levels != nil:
		for _, old := range obsolete {
			if strings.HasPrefix(e.Text, old) {
				better := e.changed(wire.RequestTopic)
				c.find(idObsolete, e.Line, Error, e.by(better), "write "+wire.RequestTopic, "%s: an obsolete topic of the state store, which has no effect", e.Text)
			}
		}
		switch {
		case strings.ContainsAny(e.Text, "*?") || classAt(e.Text) >= 0:
			levels := strings.Split(e.Text, "/")
			wild := ""
			for i, l := range levels {
				at, end := strings.IndexAny(l, "*?"), 1
				if at < 0 {
					at, end = classAt(l), len("[a-z]")
				}
				if at >= 0 {
					wild = cmp.Or(wild, l[at:at+end])
					levels[i] = wildOne
					if i == len(levels)-1 && strings.TrimPrefix(l, ".") == "*" && i > 0 {
						levels[i] = wildAll
					}
				}
			}
			wider(e.changed(strings.Join(levels, "/")), "topic %q: %s is not a wildcard in topics", e.Text, wild)
		case strings.ContainsAny(e.Text, "{}") && !strings.Contains(e.Text, tokenStart):
			var better *Entry
			if fixed := fixTokens(e.Text); fixed != e.Text {
				better = e.changed(fixed)
			}
			wider(better, "topic %q: the braces are literal: a token is {principal.clientId}, {principal.username} or {principal.attributes.NAME}", e.Text)
		}
	}
}
