package policy_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/sscli/sscli/internal/policy"
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
	const publish, key = `{method: Publish, topics: ["statestore/#"]}`, "{method: Read, keys: [k]}"
	all := map[string]string{
		"rules":          string(manyRules(n)),
		"users":          rule("usernames: ["+list("user%d")+"]", publish, key),
		"client ids":     rule("clientIds: ["+list("c%d")+"]", `{method: Subscribe, topics: ["clients/{principal.clientId}/#"]}`, key),
		"attribute sets": rule(`attributes: [`+list(`{site: "1", room: "%d"}`)+`]`, publish, key),
		"globs":          rule("usernames: [ann]", publish, `{method: Read, keys: [`+list(`"a%d-*"`)+`]}`),
		"globs alike":    rule("usernames: [ann]", publish, `{method: Read, keys: [`+list(`"a*%d-*"`)+`]}`),
		"topics":         rule("usernames: [ann]", `{method: Subscribe, topics: [`+list(`"clients/a%d/+"`)+`]}`, key),
		"connects":       rule("usernames: [ann]", `{method: Connect, clientIds: [`+list(`"{principal.username}-%d*"`)+`]}`, key),
	}
	var tokens strings.Builder
	for i := range n {
		fmt.Fprintf(&tokens, "      - {principals: {clientIds: [c%d]}, brokerResources: [{method: Connect, clientIds: [\"{principal.username}*\"]}], stateStoreResources: [{method: Read, keys: [\"{principal.attributes.a%d}/*\"]}]}\n", i, i%10)
	}
	all["rules with tokens"] = resource(tokens.String())
	return all
}

// BenchmarkShapes checks and compares large policies of each shape.
func BenchmarkShapes(b *testing.B) {
	for name, text := range shapes(5000) {
		p := parse(b, text)
		next := parse(b, strings.ReplaceAll(strings.ReplaceAll(text, "-*\"", "-[!x]*\""), "k]", "j]"))
		b.Run("check "+name, func(b *testing.B) {
			for b.Loop() {
				p.Check(b.Context(), policy.Info)
			}
		})
		b.Run("compare "+name, func(b *testing.B) {
			for b.Loop() {
				policy.Compare(b.Context(), p, next, nil)
			}
		})
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
