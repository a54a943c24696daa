package policy

import (
	"slices"
	"strings"
)

// identities reports rights by a client id that another client can take.
func (c *checker) identities() {
	var anyID *actor // may connect with any client id
	for _, a := range c.actors {
		stranger := a.full.who
		stranger.ClientID = "victim" + c.unused
		if anyID == nil && a.id == "" && c.policy.connect(stranger) != nil {
			anyID = a
		}
	}
	for _, r := range c.policy.Rules {
		if len(r.ClientIDs) > 0 && len(r.Entries) > 0 {
			c.claimed(r, anyID)
		}
		c.shared(r)
	}
}

func (c *checker) ask(who Principal) *Client { return bindRules(who, c.policy.rulesFor(&who), false) }

// claimed reports a rule for client ids that somebody else can take.
func (c *checker) claimed(r *Rule, anyID *actor) {
	for _, id := range r.ClientIDs {
		who := ""
		if c.policy.connect(Principal{ClientID: id}) != nil {
			who = "this port"
		} else if anyID != nil {
			who = anyID.key()
		} else {
			for _, other := range c.claims[id] {
				if other.id == "" && (other.set != nil || len(c.claims[id]) > 1) {
					who = other.key()
				}
			}
		}
		if who != "" {
			c.find(idClaimed, r.lineOf(alternative{id: id}), Warning, nil, "usernames or attributes in principals: a client id proves nothing",
				"%s is for the client id %s, which any client of %s can take", r.Name, listed(r.ClientIDs, len(r.ClientIDs)), who)
			return
		}
	}
}

// shared reports the first entry of a rule that grants by the client id to clients that can take the id of another.
func (c *checker) shared(r *Rule) {
	var entry *Entry
	for _, e := range r.Entries {
		if slices.ContainsFunc(slices.Concat(append(slices.Clone(e.levels), e.key)...), func(p part) bool { return p.token == tokenClient }) && e.never == "" {
			entry = e
			break
		}
	}
	if entry == nil {
		return
	}
	for _, a := range c.first[r][:min(len(c.first[r]), 64)] {
		if a.id != "" || len(a.full.clients) == 0 {
			continue
		}
		who := a.full.who
		who.ClientID = "victim" + c.unused
		from := c.policy.connect(who)
		whose := "any other client"
		if from == nil {
			for _, client := range a.full.clients {
				others := c.claims[client.ClientID]
				at := slices.IndexFunc(others, func(o *actor) bool { return o != a && o.id == "" })
				if now := c.policy.connect(client.Principal); now != nil && at >= 0 && !proven(now) {
					who, from, whose = client.Principal, now, others[at].key()
					break
				}
			}
			if a.set != nil {
				for _, client := range a.full.clients {
					if now := c.policy.connect(client.Principal); now != nil && !proven(now) && strings.ContainsAny(strings.Join(now.ClientIDs, ""), "*?[") {
						who, from, whose = client.Principal, now, "another client with "+a.key()
						break
					}
				}
			}
		}
		if from == nil {
			continue
		}
		if _, ok := entry.bind(&who); !ok {
			continue
		}
		mend := from.by(from.connecting("{principal.username}"))
		hint := "Connect with clientIds: [\"{principal.username}\"], and no other Connect for them"
		if next := (&Policy{Rules: a.near}).With(mend).Rules; connect(&who, next) != nil {
			mend, hint = nil, "Connect only with client ids that contain a name that the login proves, in each rule"
		}
		c.find(idShared, entry.Line, Warning, mend, hint, "{principal.clientId}: any client of %s can take the id of %s, such as %s, and with it what %s allows", a.key(), whose, who.ClientID, r.Name)
		c.prove(allowing(who, Action{Method: Connect}))
		return
	}
}

// proven reports whether each client id that a Connect allows contains a name that the login proves.
func proven(e *Entry) bool {
	return len(e.ClientIDs) > 0 && !slices.ContainsFunc(e.ClientIDs, func(id string) bool {
		return !strings.Contains(id, tokenStart+tokenUser) && !strings.Contains(id, tokenStart+tokenAttribute)
	})
}

// maxCovered is the number of rights that are compared to find rules that add nothing.
const maxCovered = 1 << 20

// redundant reports rules of which every entry is allowed by other rules to all its principals.
func (c *checker) redundant() {
	type right struct {
		actor  *actor
		method Method
		entry  string // entryKey; "" = any
	}
	const most = 32                                             // wildcards that are compared with an entry
	named, last := make(map[*actor]int), make(map[*actor]*Rule) // by how many rules, and by which
	for _, r := range c.policy.Rules {
		for _, a := range c.first[r] {
			if last[a] != r {
				last[a] = r
				named[a]++
			}
		}
	}
	idle := make(map[*Rule]bool) // rules that add nothing
	exact := make(map[right]*Rule)
	wild := make(map[right][]*Entry)
	work := 0
	for _, r := range c.policy.Rules {
		several := slices.DeleteFunc(slices.Clone(c.first[r]), func(a *actor) bool { return named[a] < 2 })
		for _, e := range r.Entries {
			key := entryKey(e)
			wildcards := e.levels != nil && strings.ContainsAny(e.Text, "+#") || e.Type == Pattern && strings.Contains(e.Text, "*")
			for _, a := range several {
				if e.never != "" || work > maxCovered {
					break
				}
				work++
				for _, m := range e.Methods.Each() {
					at := right{a, m, key}
					if exact[at] == nil {
						exact[at] = r
					}
					if at.entry = ""; wildcards && len(wild[at]) < most {
						wild[at] = append(wild[at], e)
					}
				}
			}
		}
	}
	// covered returns another rule that allows what an entry allows to an actor, or nil. A rule that adds nothing itself does
	// not count, so that all that do may be removed.
	covered := func(r *Rule, e *Entry, m Method, a *actor) *Rule {
		free := *e
		free.ids = nil
		for _, same := range []*Entry{e, &free} {
			if first := exact[right{a, m, entryKey(same)}]; first != nil && first != r && !idle[first] {
				return first
			}
		}
		for _, other := range wild[right{a, m, ""}] {
			if other.Rule != r && !idle[other.Rule] && other.includes(e) {
				return other.Rule
			}
		}
		return nil
	}
	for _, r := range c.policy.Rules {
		alone := func(a *actor) bool { return named[a] < 2 }
		if slices.ContainsFunc(c.first[r], alone) {
			continue
		}
		if others := r.coveredBy(c.first[r], covered); len(others) > 0 {
			idle[r] = true
			c.find(idRedundant, r.Line, Warning, &Mend{Remove: r}, "remove it", "%s adds nothing to %s", r.Name, strings.Join(others, ", "))
		}
	}
}

// coveredBy returns the names of the rules that allow all that a rule allows, or nil.
func (r *Rule) coveredBy(all []*actor, covered func(*Rule, *Entry, Method, *actor) *Rule) (others []string) {
	for _, e := range r.Entries {
		for _, m := range e.Methods.Each() {
			for _, a := range all {
				other := (*Rule)(nil)
				if e.never == "" {
					other = covered(r, e, m, a)
				}
				if other == nil {
					return nil
				}
				if !slices.Contains(others, other.Name) {
					others = append(others, other.Name)
				}
			}
		}
	}
	return others
}

// entryKey identifies what an entry is for.
func entryKey(e *Entry) string {
	ids := ""
	if e.ids != nil {
		ids = e.ids.text
	}
	return string(e.Type) + " " + ids + " " + e.Text
}

// includes reports whether an entry allows everything that another one of the same method allows. It may
// say no although it does.
func (e *Entry) includes(other *Entry) bool {
	if len(e.ClientIDs) > 0 || e.Type != Pattern && e.Type != other.Type || e.Text == other.Text {
		return false // an equal entry is found otherwise
	}
	if e.Type == Pattern {
		prefix, star := strings.CutSuffix(e.Text, "*")
		return star && !strings.ContainsAny(prefix, "*?[{") && (prefix == "" || other.Type != Binary && strings.HasPrefix(other.Text, prefix))
	}
	var b bound
	for _, l := range e.levels {
		b.levels, b.wild = append(b.levels, l[0].name()), append(b.wild, l[0].token == tokenWild)
	}
	return b.covers(other.Text, true)
}
