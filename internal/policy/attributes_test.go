package policy_test

import (
	"testing"

	"github.com/sscli/sscli/internal/policy"
)

// TestAttributesOf: a user name has the attributes of exactly this name, and a subject those of the same parts.
func TestAttributesOf(t *testing.T) {
	const text = `ann: {x: ann}
"team=a": {x: team}
"CN = fan, OU = b": {x: fan}
---
kind: BrokerAuthentication
spec: {authenticationMethods: [{x509Settings: {authorizationAttributes: {root: {subject: "CN = root", attributes: {x: root}}}}}]}
---
{kind: ServiceAccount, metadata: {name: sa, annotations: {aio-broker-auth/x: sa}}}
`
	all, err := policy.ParseAttributes("f", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ user, subject, want string }{
		{"ann", "", "ann"}, {"", "ann", ""}, {"bob", "", ""}, {"", "", ""},
		{"team=a", "", "team"}, {"TEAM=a", "", ""}, {"team = a", "", ""}, {"", "TEAM=a", "team"},
		{"", "OU=b,CN=fan", "fan"}, {"CN = fan, OU = b", "", "fan"}, {"CN=fan,OU=b", "", ""}, {"OU=b,CN=fan", "", ""},
		{"", "CN=root", "root"}, {"CN=root", "", ""}, {"CN = root", "", ""},
		{"system:serviceaccount:default:sa", "", "sa"}, {"", "system:serviceaccount:default:sa", ""},
		{"ann", "CN=root", "ann"}, {"", "CN=unknown", ""},
	} {
		var subjects []string
		if c.subject != "" {
			subjects = []string{c.subject}
		}
		if got := all.Of(c.user, subjects)["x"]; got != c.want {
			t.Errorf("user %q, subject %q: %q, want %q", c.user, c.subject, got, c.want)
		}
	}
}
