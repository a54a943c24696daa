package policy

import (
	"fmt"
	"slices"
	"strings"
)

// Lookups answers many questions about many clients. It is for one goroutine.
type Lookups struct {
	policy *Policy
	alike  map[string]*indexed // by the rules of a client
	known  map[string]*Lookup  // by the name of a principal
}

// maxKept is the number of answers that are kept for other clients, or for other questions.
const maxKept = 64

// Lookups returns an empty Lookups.
func (p *Policy) Lookups() *Lookups {
	return &Lookups{p, make(map[string]*indexed), make(map[string]*Lookup)}
}

// A Lookup answers many questions about what a client may do.
type Lookup struct {
	who     Principal
	connect *Entry
	alike   *indexed // what all clients with these rules have
	own     *indexed // what depends on the client
}

// An indexed is a number of entries, without those for Connect.
type indexed struct {
	topics, keys finder[*bound]
	have         map[string]bool // the entries, by grantName; without those that do not say what they allow
	levels       int             // of the longest topic
	xs           int             // of the longest level that has only x
}

// Of returns the answers for a principal. It takes longer than [Policy.For], and its answers take less.
func (l *Lookups) Of(who Principal) *Lookup {
	id := who.name()
	if x := l.known[id]; x != nil {
		return x
	}
	rules := l.policy.rulesFor(&who)
	var name strings.Builder
	for _, r := range rules {
		fmt.Fprintf(&name, "%p", r)
	}
	x := &Lookup{who: who, connect: connect(&who, rules), alike: l.alike[name.String()], own: &indexed{have: make(map[string]bool)}}
	if len(l.known) > maxKept {
		clear(l.known)
	}
	l.known[id] = x
	known := x.alike != nil
	if !known {
		if len(l.alike) > maxKept {
			clear(l.alike)
		}
		x.alike = &indexed{have: make(map[string]bool)}
		l.alike[name.String()] = x.alike
	}
	for _, r := range rules {
		for _, e := range r.varying {
			x.own.add(e, &who)
		}
		if known {
			continue
		}
		for _, e := range r.Entries {
			if e.Methods != Connect && !e.varies() {
				x.alike.add(e, &who)
			}
		}
	}
	return x
}

// varies reports whether what an entry allows depends on which of the principals of its rule the client is.
func (e *Entry) varies() bool { return e.never == "" && (e.shared == nil || len(e.ClientIDs) > 0) }

func (x *indexed) add(e *Entry, who *Principal) {
	b, ok := e.bind(who)
	if !ok {
		return
	}
	text, anywhere := literalOf(b.pattern(who))
	if e.Type != "" {
		x.keys.add(text, anywhere, b)
	} else {
		x.topics.add(text, anywhere, b)
	}
	if e.allow == nil && !e.own {
		for _, m := range e.Methods.Each() {
			x.have[grantName(e, m)] = true
		}
	}
	x.levels = max(x.levels, len(b.levels))
	for _, level := range b.levels {
		if strings.Trim(level, "x") == "" {
			x.xs = max(x.xs, len(level))
		}
	}
}

// grantName identifies an entry and one of its methods. Whatever a client has, is the same for an equal entry.
func grantName(e *Entry, m Method) string { return m.String() + entryKey(e) }

// pattern returns a pattern that matches at least what an entry allows, also the filters.
func (b *bound) pattern(who *Principal) string {
	switch e := b.entry; {
	case b.all || e.allow != nil || e.own:
		return "*"
	case b.glob != nil:
		text, _ := replaced(e.key, who)
		return text
	case e.levels == nil:
		return QuotePattern(e.exact)
	}
	text := ""
	for i, level := range b.levels {
		switch {
		case b.wild[i] && level == wildAll: // a/# matches a
			return text + "*"
		case i > 0:
			text += "/"
		}
		if b.wild[i] {
			text += "*"
		} else {
			text += QuotePattern(level)
		}
	}
	return text
}

// find returns what allows an action, or nil. match is called for what may allow it, until it returns true.
func (x *Lookup) find(a Action, match func(*bound) bool) *bound {
	for _, part := range []*indexed{x.alike, x.own} {
		f, on := &part.topics, a.topic()
		if a.Method&(Read|Write) != 0 {
			f, on = &part.keys, a.On
		}
		if b, found := f.find(on, func(b *bound) bool { return b.entry.Methods&a.Method != 0 && b.matches(&x.who, a) && match(b) }); found {
			return b
		}
	}
	return nil
}

func first(*bound) bool { return true }

// Allowed is [Client.Allowed], though with another one of several entries.
func (x *Lookup) Allowed(a Action) *Entry {
	if a.Method == Connect {
		return x.connect
	} else if b := x.find(a, first); b != nil {
		return b.entry
	}
	return nil
}

// A finder finds the patterns that may match a text, by a literal text that each of them needs.
type finder[T any] struct {
	all     []T
	runs    [2]map[string][]T // by the text with which a match begins, and by one that is anywhere in it
	lengths [2][]int          // of the keys of runs, sorted
}

// add adds a pattern that needs a literal text: at the beginning or, with 1, anywhere.
func (f *finder[T]) add(literal string, anywhere int, item T) {
	if f.runs[anywhere] == nil {
		f.runs[anywhere] = make(map[string][]T)
	}
	f.runs[anywhere][literal] = append(f.runs[anywhere][literal], item)
	if i, found := slices.BinarySearch(f.lengths[anywhere], len(literal)); !found {
		f.lengths[anywhere] = slices.Insert(f.lengths[anywhere], i, len(literal))
	}
	f.all = append(f.all, item)
}

// find returns a pattern that may match a text, and for which match is true.
func (f *finder[T]) find(text string, match func(T) bool) (item T, found bool) {
	if len(f.lengths[0])+len(f.lengths[1])*len(text) >= len(f.all) {
		if i := slices.IndexFunc(f.all, match); i >= 0 {
			return f.all[i], true
		}
		return item, false
	}
	for anywhere, lengths := range f.lengths {
		for _, n := range lengths {
			for at := 0; at+n <= len(text) && at*(1-anywhere) == 0; at++ {
				items := f.runs[anywhere][text[at:at+n]]
				if i := slices.IndexFunc(items, match); i >= 0 {
					return items[i], true
				}
			}
		}
	}
	return item, false
}

// literalOf returns the longest literal text in a pattern, and 1 if a match need not begin with it.
func literalOf(pattern string) (text string, anywhere int) {
	run, first := "", true
	end := func() {
		if len(run) > len(text) {
			text, anywhere = run, 1
			if first {
				anywhere = 0
			}
		}
		run, first = "", false
	}
	for pattern != "" {
		i := strings.IndexAny(pattern, "*?[")
		if i < 0 {
			i = len(pattern)
		}
		run += pattern[:i]
		switch pattern = pattern[i:]; {
		case pattern == "":
		case strings.HasPrefix(pattern, "**"): // stands for the slash after it, too
			end()
			pattern = strings.TrimPrefix(strings.TrimLeft(pattern, "*"), "/")
		case pattern[0] != '[':
			end()
			pattern = pattern[1:]
		case len(pattern) > 2 && pattern[2] == ']' && pattern[1] != '!': // as QuotePattern writes it
			run += pattern[1:2]
			pattern = pattern[3:]
		default:
			end()
			from := min(2, len(pattern))
			if strings.HasPrefix(pattern, "[!") {
				from = min(3, len(pattern))
			}
			_, pattern, _ = strings.Cut(pattern[from:], "]")
		}
	}
	end()
	return text, anywhere
}
