package policy_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/sscli/sscli/internal/policy"
	"github.com/sscli/sscli/internal/testkit/policies"
	"github.com/sscli/sscli/internal/wire"
)

var update = flag.Bool("update", false, "rewrite the findings in testdata/ways")

// TestCheckWays: what a client of the store lacks, if its rules are for several kinds of principals. Each archive in
// testdata/ways has policies, of which only the rules are written, and the findings about lacks.
func TestCheckWays(t *testing.T) {
	archives, err := filepath.Glob("testdata/ways/*.txtar")
	if err != nil || len(archives) == 0 {
		t.Fatal(archives, err)
	}
	for _, name := range archives {
		archive, err := txtar.ParseFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for i := 0; i+1 < len(archive.Files); i += 2 {
			rules, want := archive.Files[i], &archive.Files[i+1]
			var got strings.Builder
			for _, f := range parse(t, resource(indented(rules.Data))).Check(t.Context(), policy.Info) {
				if strings.Contains(f.Message, " allow") && !strings.Contains(f.Message, "response topics of") {
					message, _, _ := strings.Cut(f.Message, ": ")
					fmt.Fprintln(&got, f.Severity, message)
				}
			}
			if *update {
				want.Data = []byte(got.String())
			} else if got.String() != string(want.Data) {
				t.Errorf("%s, %s:\n%swant:\n%s", name, rules.Name, got.String(), want.Data)
			}
		}
		if *update {
			if err := os.WriteFile(name, txtar.Format(archive), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// indented returns rules as a resource has them.
func indented(rules []byte) string {
	return "      " + strings.ReplaceAll(strings.TrimSuffix(string(rules), "\n"), "\n", "\n      ") + "\n"
}

// TestCheckRedundant: a policy without the rules that add nothing allows as much.
func TestCheckRedundant(t *testing.T) {
	for topics, want := range map[string]string{
		"# +/#":     "rules[0] adds nothing to rules[1]",
		"+/# # a":   "rules[0] adds nothing to rules[1], rules[2] adds nothing to rules[1]",
		"a a":       "rules[1] adds nothing to rules[0]",
		"a/b a/+ #": "rules[0] adds nothing to rules[1], rules[1] adds nothing to rules[2]",
		"a/+ a/b":   "rules[1] adds nothing to rules[0]",
		"a b":       "",
	} {
		text := ""
		for topic := range strings.FieldsSeq(topics) {
			text += fmt.Sprintf("      - {principals: {usernames: [u]}, brokerResources: [{method: Subscribe, topics: [%q]}]}\n", topic)
		}
		var got []string
		for _, f := range parse(t, resource(text)).Check(t.Context(), policy.Info) {
			if strings.Contains(f.Message, "adds nothing") {
				got = append(got, f.Message)
			}
		}
		if text := strings.Join(got, ", "); text != want {
			t.Errorf("%s: %s, want %s", topics, text, want)
		}
	}
	for _, f := range parse(t, resource("      - {principals: {attributes: [{a: \"1 b=2\"}]}, brokerResources: [{method: Connect}]}\n      - {principals: {attributes: [{a: \"1\", b: \"2\"}]}, brokerResources: [{method: Connect}]}\n")).Check(t.Context(), policy.Info) {
		t.Errorf("other attributes with the same text: %+v", f)
	}
}

// TestSuggestAttributes: attributes that look alike as text are not the same client.
func TestSuggestAttributes(t *testing.T) {
	one := policy.Deed{Principal: policy.Principal{Attributes: map[string]string{"a": "1 b=2"}}, Action: policy.Action{Method: policy.Read, On: "k"}}
	two := policy.Deed{Principal: policy.Principal{Attributes: map[string]string{"a": "1", "b": "2"}}, Action: policy.Action{Method: policy.Read, On: "j"}}
	rules, err := policy.Suggest(t.Context(), []policy.Deed{one, two})
	if err != nil {
		t.Fatal(err)
	}
	p := parse(t, policy.ResourceOf(t.Context(), "a", rules))
	for _, d := range []policy.Deed{one, two} {
		if !p.Decide(d.Principal, d.Action).Allowed {
			t.Errorf("%+v is denied", d)
		}
	}
	if one.Action = two.Action; p.Decide(one.Principal, one.Action).Allowed {
		t.Errorf("%+v is allowed", one)
	}
}

// FuzzCheck: the rules decide as each finding says, and so does the judge. With a mend the finding is gone, and nobody may do
// more but the principals that the mend names. Without a rule that adds nothing, the policy is the same.
func FuzzCheck(f *testing.F) {
	for i := range uint64(150) {
		f.Add(i)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		w := world{rand.New(rand.NewPCG(seed, 5))}
		rules, text := w.rules()
		if w.IntN(2) == 0 { // with parts of a way to the store
			rules, text = nil, ""
			for range 1 + w.IntN(3) {
				r := w.rule()
				for _, b := range []broker{
					{Method: "Connect", ClientIDs: w.some(1, func() string {
						return pick(w, "{principal.username}", "{principal.username}*", "{principal.username}-*", "a", "*", "{principal.attributes.x}*")
					})},
					{Method: "Publish", Topics: []string{pick(w, wire.RequestTopic, "statestore/#", "statestore/v1/FA9AE35F-2F64-47CD-9BFF-08E2B32A0FE8/command/invok", "#")}},
					{Method: "Subscribe", Topics: []string{pick(w, "clients/{principal.clientId}/#", "clients/+/statestore/v1/FA9AE35F-2F64-47CD-9BFF-08E2B32A0FE8/command/invoke/response", "clients/a/#", "clients/#")}},
					{Method: "Subscribe", Topics: []string{pick(w, wire.NotifyTopics+"+/command/notify/+", wire.NotifyFilter("a"), wire.NotifyFilter("b"))}},
					{Method: "Publish", Topics: []string{pick(w, "clients/+/statestore/v1/FA9AE35F-2F64-47CD-9BFF-08E2B32A0FE8/command/invoke/response", "clients/#", "clients/a/#", "replies/a")}},
					{Method: "Subscribe", Topics: []string{pick(w, "replies/a", "replies/{principal.clientId}", "x/#")}},
				} {
					if w.IntN(4) > 0 {
						r.Broker = append(r.Broker, b)
					}
				}
				if w.IntN(2) == 0 {
					keys := pick(w, "{principal.username}*", "{principal.clientId}*", "{principal.attributes.x}*", "{principal.username}{principal.attributes.x}", "locks/*", "a.*", "*")
					r.Store = append(r.Store, broker{Method: pick(w, "Read", "Write", "ReadWrite"), KeyType: "Pattern", Topics: []string{keys}})
				}
				rules, text = append(rules, r), text+r.String()
			}
			text = resource(text)
		}
		p := parse(t, text)
		findings := p.Check(t.Context(), policy.Info)
		for _, finding := range findings {
			if finding.ID == "" || finding.Line < 1 || finding.Message == "" {
				t.Errorf("%+v", finding)
			}
			for _, proof := range finding.Proofs {
				if d := p.Decide(proof.Principal, proof.Action); d.Allowed != proof.Allowed || judge(rules, proof.Principal, proof.Action) != proof.Allowed {
					t.Fatalf("%s %s: %+v: %+v\n%s", finding.ID, finding.Message, proof, d, text)
				}
			}
			m := finding.Mend
			if m == nil {
				continue
			}
			next := p.With(m)
			named := func(who policy.Principal) bool {
				return m.Add != nil && (&policy.Policy{Rules: []*policy.Rule{m.Add}}).Names(who) || m.Old != nil && (&policy.Policy{Rules: []*policy.Rule{m.Old.Rule}}).Names(who)
			}
			for _, c := range policy.Compare(t.Context(), p, next, nil) {
				if !c.Lost && !named(c.Principal) || m.Remove != nil {
					t.Fatalf("%s %s: %s: %+v\n%s", finding.ID, finding.Message, finding.Hint, c, text)
				}
			}
			for range 30 {
				who, a := w.principal(), w.action()
				if !named(who) && next.Decide(who, a).Allowed && !p.Decide(who, a).Allowed {
					t.Fatalf("%s %s: %s: %+v may %s %q\n%s", finding.ID, finding.Message, finding.Hint, who, a.Method, a.On, text)
				}
			}
			twin := func(e *policy.Entry) bool { return e != m.Old && e.String() == m.Old.String() }
			if m.Old != nil && slices.ContainsFunc(m.Old.Rule.Entries, twin) {
				continue // the finding is about both
			}
			for _, other := range next.Check(t.Context(), policy.Info) {
				if other.ID == finding.ID && other.Line == finding.Line && other.Message == finding.Message {
					t.Fatalf("%s %s: not with: %s\n%s", finding.ID, finding.Message, finding.Hint, text)
				}
			}
		}
	})
}

// TestNeeds: what a request needs of the response topic, if the rules name another one than the client's own.
func TestNeeds(t *testing.T) {
	who := policy.Principal{Username: "ann", ClientID: "ann"}
	for topics, want := range map[string]string{
		`{method: Subscribe, topics: ["clients/ann/#"]}`:                                                       "",
		`{method: Subscribe, topics: [replies/ann]}, {method: Publish, topics: ["replies/#"]}`:                 "at replies/ann",
		`{method: Subscribe, topics: [replies/ann]}`:                                                           "lacks Subscribe",
		`{method: Subscribe, topics: ["replies/{principal.username}", "clients/+/services/#"]}`:                "",
		`{method: Subscribe, topics: ["replies/+"]}, {method: Publish, topics: ["replies/+"], clientIds: [x]}`: "lacks Subscribe",
	} {
		p := parse(t, resource(policies.Line("usernames: [ann]", policies.Connect+", "+policies.Request+", "+topics, "{method: Read, keys: [k]}")))
		step, reply, denied := p.For(who).Needs()
		got := ""
		if reply != "" {
			got = "at " + reply
		} else if denied {
			got = "lacks " + step.Method.String()
		}
		if got != want {
			t.Errorf("%s: %q, want %q", topics, got, want)
		}
	}
}

// TestUntried: clients that check does not try, because there are too many, are not passed in silence.
func TestUntried(t *testing.T) {
	t.Parallel()
	for topics, want := range map[int]string{1: "SS016", 700: "SS028"} {
		var users, names []string
		for i := range 1000 {
			users = append(users, fmt.Sprint("u", i))
		}
		users[950] = "u/950" // is no level of a topic
		for i := range topics {
			names = append(names, fmt.Sprint("t", i))
		}
		rule := policies.Line("usernames: ["+strings.Join(users, ", ")+"]", policies.Store+", {method: Publish, topics: ["+strings.Join(names, ", ")+"]}", `{method: Read, keys: [k]}`)
		var ids []string
		for _, f := range parse(t, resource(rule)).Check(t.Context(), policy.Warning) {
			ids = append(ids, f.ID)
		}
		if strings.Join(ids, " ") != want {
			t.Errorf("%d topics: findings %q, want %s", topics, ids, want)
		}
	}
}
