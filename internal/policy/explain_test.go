package policy_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/sscli/sscli/internal/policy"
	"github.com/sscli/sscli/internal/testkit/policies"
)

// FuzzExplain: whatever a text says, each question has an answer, and the answer has a reason. It is the same that a server
// gives, and Check and Compare end.
func FuzzExplain(f *testing.F) {
	for _, text := range []string{
		"clients/{principal.clientID}/x", "{principal.x}", "{principal.", "a/{principal.clientId", "{principal.}/#", "{}", "}", "{", "[", "a**b", "#/a", "$share/g/a", "",
		"{principal.attributes.}", "{principal.attributes.x}", "{principal.username}{principal.username}", "x-{principal.username}", "\\*", "[^b]", "[!a]",
	} {
		f.Add(text, "clients/c/x")
		f.Add(text, text)
	}
	f.Fuzz(func(t *testing.T, text, on string) {
		rule := fmt.Sprintf("{method: Connect, clientIds: [%q]}, {method: Publish, topics: [%q]}, {method: Subscribe, topics: [%q], clientIds: [%q]}", text, text, text, text)
		keys := fmt.Sprintf("{method: ReadWrite, keys: [%q]}, {method: Read, keyType: String, keys: [%q]}, {method: Read, keyType: Binary, keys: [%q]}", text, text, text)
		source := resource(fmt.Sprintf("      - {principals: {usernames: [u]}, brokerResources: [%s], stateStoreResources: [%s]}\n"+
			"      - {principals: {usernames: [%q], clientIds: [%q], attributes: [{x: %q}]}, brokerResources: [%s], stateStoreResources: [%s]}\n", rule, keys, text, text, text, rule, keys))
		p, err := policy.Parse("f", []byte(source))
		if err != nil {
			t.Skip() // not YAML
		}
		for _, who := range []policy.Principal{{ClientID: "c", Username: "u"}, {ClientID: "c"}, {ClientID: on, Username: text, Attributes: map[string]string{"x": on}}} {
			for m := policy.Connect; m <= policy.Write; m <<= 1 {
				a := policy.Action{Method: m, On: on}
				d := p.Decide(who, a)
				if d.Allowed != (p.For(who).Allowed(a) != nil) || d.Allowed != (d.Lacks == "") {
					t.Errorf("%+v %s %q: %+v\n%s", who, m, on, d, source)
				}
			}
		}
		p.Check(t.Context(), policy.Info)
		policy.Compare(t.Context(), p, &policy.Policy{}, nil)
	})
}

// TestAssumes: a denial names the assumption without which the rules would allow the action, and no other.
func TestAssumes(t *testing.T) {
	p := parse(t, resource(policies.Line("usernames: [ann]", `{method: Subscribe, topics: ["a/dev-{principal.clientId}/#", "b/{principal.attributes.x}/c", "d/{principal.attributes.y}/c", "+/e"]}, {method: Publish, topics: [f], clientIds: [x]}`,
		`{method: Read, keys: ["{principal.attributes.y}/*", "n[^0]", "q*"]}`)))
	who := policy.Principal{Username: "ann", ClientID: "ann", Attributes: map[string]string{"x": "s/t"}}
	for _, tt := range []struct{ method, on, assumes, lacks string }{
		{"subscribe", "a/dev-ann/x", policy.AssumePlace, "a token must be a whole level"},
		{"subscribe", "a/dev-bob/x", "", "a token must be a whole level"},
		{"subscribe", "b/s/t/c", policy.AssumeSlash, "a value of the client has a slash"},
		{"subscribe", "b/q/c", "", "a value of the client has a slash"},
		{"subscribe", "d/q/c", policy.AssumeMissing, "no such value"},
		{"subscribe", "d/q/x", "", "no such value"},
		{"subscribe", "$x/e", policy.AssumeHidden, ""},
		{"publish", "f", policy.AssumeNarrow, "its clientIds are x"},
		{"publish", "g", "", "its clientIds are x"},
		{"read", "q/1", "", ""},
		{"read", "z/1", policy.AssumeMissing, ""},
		{"read", "n1", policy.AssumeDialect, ""},
		{"read", "q\xff", policy.AssumeBytes, ""},
	} {
		m, _ := policy.ParseMethod(tt.method)
		d := p.Decide(who, policy.Action{Method: m, On: tt.on})
		if strings.Join(d.Assumes, "; ") != tt.assumes || !strings.Contains(d.Lacks, tt.lacks) || d.Allowed != (tt.on == "q/1") {
			t.Errorf("%s %q: %t, %s, assumes %q, want %q", tt.method, tt.on, d.Allowed, d.Lacks, d.Assumes, tt.assumes)
		}
	}
}
