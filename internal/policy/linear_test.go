package policy_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/sscli/sscli/internal/policy"
	"github.com/sscli/sscli/internal/testkit/policies"
)

// shapes are policies of n parts, each of another kind.
func shapes(n int) map[string]string {
	list := func(format string) string {
		var all []string
		for i := range n {
			all = append(all, fmt.Sprintf(format, i))
		}
		return strings.Join(all, ", ")
	}
	rule := func(principals, brokers, stores string) string {
		return resource("      - {principals: {" + principals + "}, brokerResources: [{method: Connect}, " + brokers + "], stateStoreResources: [" + stores + "]}\n")
	}
	lines := func(format string) string {
		return "[\n        " + strings.ReplaceAll(list(format), ", ", ",\n        ") + "]"
	}
	const publish, key = `{method: Publish, topics: ["statestore/#"]}`, "{method: Read, keys: [k]}"
	all := map[string]string{
		"users":                  rule("usernames: ["+list("user%d")+"]", publish, key),
		"users in lines":         rule("usernames: "+lines("user%d"), publish, ""),
		"client ids":             rule("clientIds: ["+list("c%d")+"]", `{method: Subscribe, topics: ["clients/{principal.clientId}/#"]}`, key),
		"client ids and topics":  rule("clientIds: ["+list("c%d")+"]", `{method: Subscribe, topics: [`+list(`"clients/c%d/#"`)+`]}`, key),
		"attribute sets":         rule(`attributes: [`+list(`{site: "1", room: "%d"}`)+`]`, publish, key),
		"attributes":             rule(`attributes: [`+list(`{a%d: "1"}`)+`]`, publish, "{method: Read, keys: ["+list(`"{principal.attributes.a%d}/*"`)+"]}"),
		"values":                 rule(`attributes: [`+list(`{site: "x%d"}`)+`]`, publish, `{method: Read, keys: ["{principal.attributes.site}*"]}`),
		"globs":                  rule("usernames: [ann]", publish, `{method: Read, keys: [`+list(`"a%d-*"`)+`]}`),
		"globs alike":            rule("usernames: [ann]", publish, `{method: Read, keys: [`+list(`"a*%d-*"`)+`]}`),
		"keys":                   rule("usernames: [ann]", publish, `{method: Read, keyType: String, keys: [`+list(`"a/%d"`)+`]}`),
		"keys of users":          rule("usernames: [ann]", publish, `{method: Read, keys: [`+list(`"{principal.username}%d*"`)+`]}`),
		"keys in another syntax": rule("usernames: ["+list("user%d")+"]", publish, `{method: Read, keys: [`+list(`"a%d/#"`)+`]}`),
		"locks":                  rule("usernames: ["+list("user%d")+"]", publish, `{method: Write, keys: [locks]}`),
		"topics":                 rule("usernames: [ann]", `{method: Subscribe, topics: [`+list(`"clients/a%d/+"`)+`]}`, key),
		"topics for replies":     rule("usernames: [ann]", publish+`, {method: Subscribe, topics: [`+list(`"replies/a%d"`)+`]}`, key),
		"topics of attributes":   rule("usernames: [ann]", `{method: Publish, topics: [`+list(`"t/{principal.attributes.a%d}"`)+`]}`, key),
		"connects":               rule("usernames: [ann]", `{method: Connect, clientIds: [`+list(`"{principal.username}-%d*"`)+`]}`, key),
		"connects with findings": rule("usernames: [ann]", `{method: Connect, clientIds: [`+list(`"{principal.username}*%d"`)+`]}`, key),
		"connects and topics":    rule("usernames: [ann]", `{method: Publish, clientIds: [`+list(`"a%d"`)+`], topics: [`+list(`"t/%d"`)+`]}`, key),
	}
	without := strings.NewReplacer("{method: Connect}, ", "")
	all["users who cannot connect"], all["client ids that cannot connect"] = without.Replace(all["users in lines"]), without.Replace(all["client ids"])
	var rules, tokens, twice strings.Builder
	for i := range n {
		rules.WriteString(policies.Line(fmt.Sprintf("usernames: [u%d]", i), policies.Store, fmt.Sprintf(`{method: ReadWrite, keys: ["k%d/*"]}`, i)))
		fmt.Fprintf(&tokens, "      - {principals: {clientIds: [c%d]}, brokerResources: [{method: Connect, clientIds: [\"{principal.username}*\"]}], stateStoreResources: [{method: Read, keys: [\"{principal.attributes.a%d}/*\"]}]}\n", i, i%10)
		fmt.Fprintf(&twice, "      - {principals: {usernames: [user%d, ann]}, brokerResources: [{method: Publish, topics: [a]}]}\n", i/2)
	}
	all["rules"], all["rules with tokens"], all["rules twice"] = resource(rules.String()), resource(tokens.String()), resource(twice.String())
	return all
}

// tasks are what the commands do with a policy of n parts, of which another one differs in each.
func tasks(t testing.TB, text string, n int) map[string]func() {
	ctx := t.Context()
	p := parse(t, text)
	next := parse(t, strings.NewReplacer("*\"", "[!x]*\"", "k]", "j]", "topics: [", "topics: [x, ").Replace(text))
	who := policy.Principal{Username: "ann", ClientID: "ann-1"}
	var deeds []policy.Deed
	for i := range n {
		d := policy.Deed{Principal: who, Action: policy.Action{Method: policy.Read, On: fmt.Sprint("a/", i)}}
		deeds = append(deeds, d, policy.Deed{Principal: who, Action: policy.Action{Method: policy.Subscribe, On: fmt.Sprint("t/", i)}},
			policy.Deed{Principal: policy.Principal{Username: fmt.Sprint("user", i), ClientID: fmt.Sprint("c-", i)}, Action: d.Action})
	}
	return map[string]func(){
		"parse":   func() { parse(t, text) },
		"check":   func() { p.Check(ctx, policy.Warning) },
		"infos":   func() { p.Check(ctx, policy.Info) },
		"compare": func() { policy.Compare(ctx, p, next, deeds) },
		"who": func() {
			p.Who(ctx, policy.Action{Method: policy.Read, On: "a1-7"})
			p.Who(ctx, policy.Action{Method: policy.Subscribe, On: "t/x"})
		},
		"decide":   func() { p.Decide(who, policy.Action{Method: policy.Write, On: "none"}) },
		"unused":   func() { p.Unused(ctx, deeds) },
		"examples": func() { p.Examples(ctx) },
		"suggest": func() {
			rules, err := policy.Suggest(ctx, deeds)
			if err != nil {
				t.Fatal(err)
			}
			policy.Generalise(ctx, deeds, rules)
			policy.ResourceOf(ctx, "a", rules)
		},
	}
}

// BenchmarkShapes does what the commands do with large policies of each shape.
func BenchmarkShapes(b *testing.B) {
	for _, size := range []int{1000, 10_000} {
		for name, text := range shapes(size) {
			for task, do := range tasks(b, text, size) {
				b.Run(fmt.Sprint(name, "/", size, "/", task), func(b *testing.B) {
					for b.Loop() {
						do()
					}
				})
			}
		}
	}
}

// A countedContext ends after Err was asked for left times.
type countedContext struct {
	context.Context
	left *int
}

func (c countedContext) Err() error {
	if *c.left--; *c.left < 0 {
		return context.Canceled
	}
	return nil
}

// TestEnds: what takes long asks often whether its context has ended, and ends with it in the middle.
func TestEnds(t *testing.T) {
	const rules, most = 200, 20
	text := manyRules(rules)
	p, next := parse(t, string(text)), parse(t, strings.ReplaceAll(string(text), "ReadWrite", "Read"))
	for name, do := range map[string]func(context.Context){
		"parse": func(ctx context.Context) {
			if _, err := policy.ParseUntil(ctx, "f", text); err == nil {
				t.Error("a parser that was ended has no error")
			}
		},
		"check":   func(ctx context.Context) { p.Check(ctx, policy.Info) },
		"compare": func(ctx context.Context) { policy.Compare(ctx, p, next, nil) },
		"who":     func(ctx context.Context) { p.Who(ctx, policy.Action{Method: policy.Publish, On: "statestore/v1/x"}) },
	} {
		left := rules / 2
		do(countedContext{t.Context(), &left})
		if left >= 0 || left < -most {
			t.Errorf("%s: asked %d times after the end", name, -left)
		}
	}
}
