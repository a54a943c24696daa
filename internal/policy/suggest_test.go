package policy_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/sscli/sscli/internal/policy"
)

// FuzzSuggest: the suggestion for a log allows the log, and denies each action removed from the log, unless a
// remaining action includes it.
func FuzzSuggest(f *testing.F) {
	for i := range uint64(200) {
		f.Add(i, "key")
	}
	f.Fuzz(func(t *testing.T, seed uint64, key string) {
		w := world{rand.New(rand.NewPCG(seed, 2))}
		var log []policy.Deed
		for range 1 + w.IntN(8) {
			d := policy.Deed{Principal: policy.Principal{ClientID: w.name()}, Action: w.action()}
			if w.IntN(2) == 0 { // each client id belongs to one user, and each user to one client id
				d.Username, d.ClientID = "user "+d.ClientID, "of "+d.ClientID
			}
			if d.Method >= policy.Read && w.IntN(3) == 0 {
				d.On = key
			}
			if d.On != "" || d.Method == policy.Connect {
				log = append(log, d)
			}
		}
		suggest := func(log []policy.Deed) *policy.Policy {
			rules, err := policy.Suggest(t.Context(), log)
			if err != nil {
				t.Skip()
			}
			p := parse(t, policy.ResourceOf(t.Context(), "a", rules))
			for _, finding := range p.Findings {
				if len(log) > 0 && finding.Severity == policy.Error {
					t.Fatalf("%+v\n%s", finding, policy.ResourceOf(t.Context(), "a", rules))
				}
			}
			return p
		}
		p := suggest(log)
		for _, d := range log {
			if got := p.Decide(d.Principal, d.Action); !got.Allowed {
				t.Fatalf("%+v is denied: %+v", d, got)
			}
		}
		for i, out := range log {
			rest := slices.DeleteFunc(slices.Clone(log), func(d policy.Deed) bool {
				return d.ClientID == out.ClientID && d.Action == out.Action
			})
			less := suggest(rest)
			if e := less.For(out.Principal).Allowed(out.Action); e != nil && (out.Method != policy.Subscribe && out.Method != policy.Publish || !strings.ContainsAny(e.Text, "+#")) {
				t.Fatalf("%d: %+v is allowed by %v", i, out, e)
			}
			if d := less.Decide(out.Principal, out.Action); !d.Allowed { // with the suggested rule, the action is allowed
				rules, err := policy.Suggest(t.Context(), []policy.Deed{out})
				if err != nil {
					t.Fatal(err)
				}
				asked := parse(t, rules[0].Flow())
				if !asked.Decide(out.Principal, out.Action).Allowed {
					t.Fatalf("%+v is denied by %s", out, rules[0].Flow())
				}
			}
		}
	})
}

// FuzzGeneralise: a generalised suggestion allows all that was seen.
func FuzzGeneralise(f *testing.F) {
	for i := range uint64(200) {
		f.Add(i)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		w := world{rand.New(rand.NewPCG(seed, 4))}
		name := func() string { return pick(w, "", "a", "b", "a-1", "a-2", "a*", "+", "$x") }
		var log []policy.Deed
		for range 1 + w.IntN(8) {
			d := policy.Deed{Principal: policy.Principal{ClientID: name(), Username: name()}, Action: w.action()}
			if d.Username == "" && d.ClientID == "" {
				d.Attributes = map[string]string{"x": w.name()}
			}
			if d.Method == policy.Publish || d.Method == policy.Subscribe {
				d.On = strings.NewReplacer("b", pick(w, "a-1", "a-2", "b", "612D31")).Replace(d.On)
			}
			if d.On != "" || d.Method == policy.Connect {
				log = append(log, d)
			}
		}
		rules, err := policy.Suggest(t.Context(), log)
		if err != nil {
			t.Skip()
		}
		policy.Generalise(t.Context(), log, rules)
		p := parse(t, policy.ResourceOf(t.Context(), "a", rules))
		for _, d := range log {
			if got := p.Decide(d.Principal, d.Action); !got.Allowed {
				t.Fatalf("%+v is denied: %+v\n%s", d, got, policy.ResourceOf(t.Context(), "a", rules))
			}
		}
	})
}

// TestGeneralise: a level becomes {principal.clientId} only if it is the id of each client that used the topic.
func TestGeneralise(t *testing.T) {
	deed := func(user, id, topic string) policy.Deed {
		return policy.Deed{Principal: policy.Principal{Username: user, ClientID: id}, Action: policy.Action{Method: policy.Publish, On: topic}}
	}
	for _, c := range []struct {
		deeds []policy.Deed
		want  string
	}{
		{[]policy.Deed{deed("ann", "a-1", "d/a-1/x")}, "d/{principal.clientId}/x"},
		{[]policy.Deed{deed("bob", "b-1", "d/a-1/x"), deed("ann", "a-1", "d/b-1/y")}, "d/a-1/x d/b-1/y"},
		{[]policy.Deed{deed("ann", "a-1", "d/a-1/x"), deed("ann", "a-2", "d/a-1/x")}, "d/a-1/x"},
		{[]policy.Deed{deed("ann", "a-1", "d/a-1/x"), deed("ann", "a-2", "d/a-2/x")}, "d/{principal.clientId}/x"},
		{[]policy.Deed{deed("ann", "a-1", "d/a-1/x"), deed("bob", "b-1", "d/a-1/x")}, "d/a-1/x"},
		{[]policy.Deed{deed("ann", "a-1", "d/612D31/x")}, "d/612D31/x"},
		{[]policy.Deed{deed("bob", "b-1", "d/612D31/x"), deed("ann", "a-1", "y")}, "d/612D31/x y"},
	} {
		rules, err := policy.Suggest(t.Context(), c.deeds)
		if err != nil {
			t.Fatal(err)
		}
		policy.Generalise(t.Context(), c.deeds, rules)
		got := make(map[string]bool)
		for _, r := range rules {
			for _, e := range r.Entries {
				got[e.Text] = true
			}
		}
		if text := strings.Join(slices.Sorted(maps.Keys(got)), " "); text != c.want {
			t.Errorf("%+v: %s, want %s", c.deeds, text, c.want)
		}
	}
}

// TestSuggestRefuses: what no rule can express is an error, and not a rule that allows something else.
func TestSuggestRefuses(t *testing.T) {
	for _, d := range []policy.Deed{
		{Principal: policy.Principal{Username: "ann", ClientID: "a{b}"}, Action: policy.Action{Method: policy.Connect}},
		{Principal: policy.Principal{Username: "ann", ClientID: "c"}, Action: policy.Action{Method: policy.Publish, On: "a/{principal.clientId}"}},
		{Action: policy.Action{Method: policy.Read, On: "k"}},
	} {
		if rules, err := policy.Suggest(t.Context(), []policy.Deed{d}); err == nil {
			t.Errorf("%+v: %s", d, rules[0].Flow())
		}
	}
	braces := policy.Deed{Principal: policy.Principal{ClientID: "a{b}"}, Action: policy.Action{Method: policy.Connect}}
	rules, err := policy.Suggest(t.Context(), []policy.Deed{braces})
	if err != nil || !parse(t, rules[0].Flow()).Decide(braces.Principal, braces.Action).Allowed {
		t.Errorf("the client id as a principal: %v, %v", rules, err)
	}
}

// TestSuggestPassesCheck: what Suggest and Generalise write for clients that log in has no finding above info.
func TestSuggestPassesCheck(t *testing.T) {
	for seed := range uint64(200) {
		w := world{rand.New(rand.NewPCG(seed, 6))}
		var log []policy.Deed
		do := func(who policy.Principal, journey string, key string) {
			all, _ := policy.Journey(journey, pick(w, policy.Clients...), who.ClientID, key)
			for _, a := range all {
				log = append(log, policy.Deed{Principal: who, Action: a})
			}
		}
		for i := range 1 + w.IntN(4) {
			user := pick(w, "ann", "bob", "system:serviceaccount:apps:reader", "line 1", "hmi")
			for range 1 + w.IntN(4) {
				who := policy.Principal{Username: pick(w, user, user, user, ""), ClientID: strings.ReplaceAll(user, " ", "-") + pick(w, "", "-1", "-2", "-app-3", "-x4")}
				for range 1 + w.IntN(3) {
					key := pick(w, "k", "colors/red", "colors/blue", "colors/green", "sp/*", "recipe[current]", "a{b}", "\xff\x00", "locks/a", "50%", "line1.temp", "a.*", "^x$", "c#", "x/+/y", "ключ", " padded ", "n[0-9]")
					do(who, pick(w, "get", "set", "del", "vdel", "watch", "lock"), key)
				}
				if w.IntN(2) == 0 {
					topic := pick(w, "news/today", "devices/"+who.ClientID+"/state", "a/b?c", fmt.Sprint("line/", i, "/x"), "x y", "what*ever", "a/{b}/c")
					log = append(log, policy.Deed{Principal: who, Action: policy.Action{Method: policy.Publish, On: topic}}, policy.Deed{Principal: who, Action: policy.Action{Method: policy.Connect}})
				}
			}
		}
		for _, general := range []bool{false, true} {
			rules, err := policy.Suggest(t.Context(), log)
			if err != nil {
				t.Fatal(err)
			}
			if general {
				policy.Generalise(t.Context(), log, rules)
			}
			text := policy.ResourceOf(t.Context(), "a", rules)
			p := parse(t, text)
			for _, f := range p.Check(t.Context(), policy.Warning) {
				t.Errorf("%d, generalised %t: %s %s; %s\n%s", seed, general, f.ID, f.Message, f.Hint, strings.Split(text, "\n")[f.Line-1])
			}
			for _, d := range log {
				if got := p.Decide(d.Principal, d.Action); !got.Allowed {
					t.Errorf("%d: %+v is denied: %+v", seed, d, got)
				}
			}
		}
	}
}
