package policy_test

import (
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
