package policy_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/sscli/sscli/internal/policy"
	"github.com/sscli/sscli/internal/testkit/policies"
	"github.com/sscli/sscli/internal/wire"
)

// TestCheckWays: what a client of the store lacks, if its rules are for several kinds of principals.
func TestCheckWays(t *testing.T) {
	const (
		connect = "{method: Connect}"
		publish = "{method: Publish, topics: [statestore/v1/FA9AE35F-2F64-47CD-9BFF-08E2B32A0FE8/command/invoke]}"
		replies = `{method: Subscribe, topics: ["clients/{principal.clientId}/#", "clients/+/statestore/v1/FA9AE35F-2F64-47CD-9BFF-08E2B32A0FE8/command/invoke/response", "clients/statestore/v1/FA9AE35F-2F64-47CD-9BFF-08E2B32A0FE8/+/command/notify/+"]}`
		keys    = "stateStoreResources: [{method: ReadWrite, keys: [k]}]"
		site    = `attributes: [{site: "1"}]`
		ann     = "usernames: [ann]"
	)
	const lacks = "no rule allows Subscribe on a response topic for user "
	as := func(ids ...string) string { return "{method: Connect, clientIds: [" + quote(ids) + "]}" }
	own := func(id string) string {
		return `{method: Subscribe, topics: ["clients/` + id + `/#", "clients/statestore/#"]}`
	}
	for _, c := range []struct {
		rules []string // of each, the principals and the resources
		want  string   // the findings about lacks: severity, and what
	}{
		{[]string{ann, "brokerResources: [" + as("{principal.username}*") + "]"}, ""},
		{[]string{ann, "brokerResources: [" + as("{principal.attributes.room}*") + "]"}, "warning Connect is allowed to user ann only with the attribute room, which no rule asks of it"},
		{[]string{site, "brokerResources: [" + as("{principal.username}*") + "]"}, ""},
		{[]string{"clientIds: [c-1]", "brokerResources: [" + as("{principal.username}*") + "]"}, ""},
		{[]string{"clientIds: [c-1]", "brokerResources: [" + as("{principal.attributes.device}") + "]"}, ""},
		{[]string{"clientIds: [c-1]", "brokerResources: [" + as("{principal.username}-[0-9]") + "]"}, ""},
		{[]string{"clientIds: [c-1]", "brokerResources: [" + as("{principal.username}-{principal.attributes.device}") + "]"}, ""},
		{[]string{"clientIds: [c-1]", "brokerResources: [" + as("d-{principal.username}") + "]"}, "error no rule allows Connect for client id c-1"},
		{[]string{"clientIds: [c-1]", "brokerResources: [" + as("{principal.username}-{principal.username}") + "]"}, "error no rule allows Connect for client id c-1"},
		{[]string{"clientIds: [c-1]", "brokerResources: [" + as("{principal.username}*") + "," + publish + "," + replies + "], " + keys}, ""},
		{[]string{"clientIds: [c-1]", "brokerResources: [" + as("{principal.username}") + "," + publish + "," + own("{principal.username}") + "], " + keys}, ""},
		{[]string{site, "brokerResources: [" + as("{principal.username}-*") + "]", "clientIds: [c-1]", "brokerResources: [" + publish + "]"}, "info only rules for others, such as attributes site=1, allow Connect for client id c-1"},
		{[]string{ann, "brokerResources: [" + connect + "," + publish + "," + own("app-1") + "], " + keys}, "info " + lacks + "ann as other clients, such as client-1"},
		{[]string{ann, "brokerResources: [" + publish + "," + own("app-1") + "], " + keys}, "error no rule allows Connect for user ann\ninfo " + lacks + "ann as other clients, such as client-1"},
		{[]string{ann, "brokerResources: [" + connect + "," + publish + "," + own("6170702D31") + "], " + keys}, "info " + lacks + "ann as other clients, such as client-1"},
		{[]string{ann, "brokerResources: [" + as("ann-*") + "," + publish + "," + own("ann-app") + "], " + keys}, "info " + lacks + "ann as other clients, such as ann-1"},
		{[]string{ann, "brokerResources: [" + as("{principal.username}*") + "," + publish + "," + own("{principal.username}") + "], " + keys}, "info " + lacks + "ann as other clients, such as ann1"},
		{[]string{ann, "brokerResources: [" + as("app-1", "app-2") + "," + publish + "," + own("app-1") + "], " + keys}, "warning " + lacks + "ann as app-2"},
		{[]string{ann, "brokerResources: [" + as("app-2", "app-1") + "," + publish + "," + own("app-1") + "], " + keys}, "warning " + lacks + "ann as app-2"},
		{[]string{ann, "brokerResources: [" + as("app-2", "app-3", "app-1") + "," + publish + "," + own("app-1") + "], " + keys}, "warning " + lacks + "ann as app-2 and 1 more"},
		{[]string{ann, "brokerResources: [" + as("app-2", "app-3") + "," + publish + "," + own("app-1") + "], " + keys}, "error " + lacks + "ann"},
		{[]string{site, "brokerResources: [" + as("{principal.username}*") + "," + publish + "," + replies + "], " + keys}, ""},
		{[]string{site, "brokerResources: [" + as("{principal.username}*") + "," + publish + "," + replies + "]", ann, keys},
			"info only rules for others, such as attributes site=1, allow Connect for user ann\ninfo only rules for others, such as attributes site=1, allow Publish on the topic of requests for user ann\n" +
				"info only rules for others, such as attributes site=1, allow Subscribe on a response topic for user ann\ninfo only rules for others, such as attributes site=1, allow Subscribe on notifications for user ann"},
		{[]string{"usernames: [bob]", "brokerResources: [" + connect + "]", ann, "brokerResources: [" + publish + "]"}, "error no rule allows Connect for user ann"},
		{[]string{`attributes: [{site: "2"}]`, "brokerResources: [" + connect + "]", site, "brokerResources: [" + publish + "]"}, "error no rule allows Connect for attributes site=1"},
		{[]string{`attributes: [{room: "100%s"}]`, "brokerResources: [" + connect + "]", site, "brokerResources: [" + publish + "]"}, "info only rules for others, such as attributes room=100%s, allow Connect for attributes site=1"},
		{[]string{ann, "brokerResources: [" + as("ann-*") + "]", "clientIds: [c]", "brokerResources: [" + publish + "]"}, "error no rule allows Connect for client id c"},
		{[]string{ann, "brokerResources: [" + connect + "]", "clientIds: [c]", "brokerResources: [" + publish + "]"}, "info only rules for others, such as user ann, allow Connect for client id c"},
		{[]string{"clientIds: [d]", "brokerResources: [" + connect + "]", "clientIds: [c]", "brokerResources: [" + publish + "]"}, "error no rule allows Connect for client id c"},
		{[]string{`attributes: [{a: "1 b=2"}]`, "brokerResources: [" + connect + "]", `attributes: [{a: "1", b: "2"}]`, "brokerResources: [" + publish + "]"}, `error no rule allows Connect for attributes a=1 b=2`},
	} {
		text := ""
		for pair := range slices.Chunk(c.rules, 2) {
			text += "      - {principals: {" + pair[0] + "}, " + pair[1] + "}\n"
		}
		var got []string
		for _, f := range parse(t, resource(text)).Check(t.Context(), policy.Info) {
			if strings.Contains(f.Message, " allow") && !strings.Contains(f.Message, "response topics of") {
				message, _, _ := strings.Cut(f.Message, ": ")
				got = append(got, f.Severity.String()+" "+message)
			}
		}
		if text := strings.Join(got, "\n"); text != c.want {
			t.Errorf("%q:\n%s\nwant:\n%s", c.rules, text, c.want)
		}
	}
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
			if finding.ID == "" || finding.Line < 1 || finding.Message == "" || strings.Contains(finding.Message, "\x00") {
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
