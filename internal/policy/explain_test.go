package policy_test

import (
	"fmt"
	"testing"

	"github.com/sscli/sscli/internal/policy"
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
