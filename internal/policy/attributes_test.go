package policy_test

import (
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

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
		{"team=a", "", "team"}, {"TEAM=a", "", ""}, {"team = a", "", ""},
		{"", "OU=b,CN=fan", "fan"}, {"CN = fan, OU = b", "", "fan"}, {"CN=fan,OU=b", "", ""}, {"OU=b,CN=fan", "", ""},
		{"", "CN=root", "root"}, {"CN=root", "", ""}, {"CN = root", "", ""},
		{"system:serviceaccount:default:sa", "", "sa"}, {"", "system:serviceaccount:default:sa", ""},
		{"ann", "CN=root", "ann"}, {"", "CN=unknown", ""},
	} {
		var subjects []string
		if c.subject != "" {
			var name pkix.Name
			for part := range strings.SplitSeq(c.subject, ",") {
				value, common := strings.CutPrefix(part, "CN=")
				id := asn1.ObjectIdentifier{2, 5, 4, 3}
				if !common {
					id, value = asn1.ObjectIdentifier{2, 5, 4, 11}, strings.TrimPrefix(part, "OU=")
				}
				name.Names = append(name.Names, pkix.AttributeTypeAndValue{Type: id, Value: value})
			}
			subjects = []string{policy.Subject(name)}
		}
		if got := all.Of(c.user, subjects)["x"]; got != c.want {
			t.Errorf("user %q, subject %q: %q, want %q", c.user, c.subject, got, c.want)
		}
	}
}

// The types of subjects in tests, by a name of each.
var subjectTypes = map[string]asn1.ObjectIdentifier{
	"CN": {2, 5, 4, 3}, "serialNumber": {2, 5, 4, 5}, "C": {2, 5, 4, 6}, "O": {2, 5, 4, 10}, "OU": {2, 5, 4, 11}, "1.2.3.4": {1, 2, 3, 4},
	"UID": {0, 9, 2342, 19200300, 100, 1, 1}, "DC": {0, 9, 2342, 19200300, 100, 1, 25}, "emailAddress": {1, 2, 840, 113549, 1, 9, 1},
}

// subject returns a parsed subject. words are pairs of types and values.
func subject(words ...string) (name pkix.Name) {
	for pair := range slices.Chunk(words, 2) {
		name.Names = append(name.Names, pkix.AttributeTypeAndValue{Type: subjectTypes[pair[0]], Value: pair[1]})
	}
	return name
}

// attributesOf returns the attributes of a subject, if a text, as the subject of a BrokerAuthentication, has some.
func attributesOf(t *testing.T, text string, of pkix.Name) (map[string]string, error) {
	t.Helper()
	source, err := json.Marshal(map[string]any{"kind": "BrokerAuthentication", "spec": map[string]any{"authenticationMethods": []any{map[string]any{
		"x509Settings": map[string]any{"authorizationAttributes": map[string]any{"one": map[string]any{"subject": text, "attributes": map[string]any{"x": "y"}}}},
	}}}})
	if err != nil {
		t.Fatal(err)
	}
	all, err := policy.ParseAttributes("f", source)
	return all.Of("", []string{policy.Subject(of)}), err
}

// TestSubjects: a subject is found as openssl prints it, in any form, and as RFC 4514 writes it.
func TestSubjects(t *testing.T) {
	for _, c := range []struct {
		name  pkix.Name
		texts []string
	}{
		{subject("C", "US", "O", "Contoso", "CN", "fan1"), []string{"C = US, O = Contoso, CN = fan1", "C=US, O=Contoso, CN=fan1", "CN=fan1,O=Contoso,C=US", "cn = fan1 , o=Contoso,2.5.4.6=US\n"}},
		{subject("C", "US", "O", "Contoso, Inc.", "CN", "fan2"), []string{`C = US, O = "Contoso, Inc.", CN = fan2`, `CN=fan2,O=Contoso\, Inc.,C=US`, `CN=fan2,O=Contoso\2C Inc.,C=US`, `O="Contoso, Inc." ,CN=fan2,C=US`}},
		{subject("DC", "com", "DC", "contoso", "OU", "Devices", "CN", "fan3"), []string{"DC = com, DC = contoso, OU = Devices, CN = fan3", "CN=fan3,OU=Devices,DC=contoso,DC=com", "0.9.2342.19200300.100.1.25=com,DC=contoso,OU=Devices,CN=fan3"}},
		{subject("C", "US", "OU", "Plant", "OU", "Devices", "CN", "fan4"), []string{"C = US, OU = Plant, OU = Devices, CN = fan4", "CN=fan4,OU=Devices+OU=Plant,C=US"}},
		{subject("CN", "fan5", "emailAddress", "a@contoso.com", "UID", "u"), []string{"CN = fan5, emailAddress = a@contoso.com + UID = u", "UID=u,E=a@contoso.com,CN=fan5", "UID=#130175,1.2.840.113549.1.9.1=#160d6140636f6e746f736f2e636f6d,CN=fan5"}},
		{subject("C", "DE", "O", "Müller + Söhne", "CN", "fan6"), []string{`C = DE, O = "M\C3\BCller + S\C3\B6hne", CN = fan6`, `CN=fan6,O=M\C3\BCller \+ S\C3\B6hne,C=DE`, `C = DE, O = "Müller + Söhne", CN = fan6`}},
		{subject("C", "US", "CN", "fan7", "serialNumber", "42"), []string{"C = US, CN = fan7, serialNumber = 42", "SERIALNUMBER=42,CN=fan7,C=US"}},
		{subject("CN", ` a="b\c" `, "O", ""), []string{`CN = " a=\"b\\c\" ", O = `, `O=,CN=\ a\=\"b\\c\"\ `}},
	} {
		for _, text := range c.texts {
			if got, err := attributesOf(t, text, c.name); err != nil || got["x"] != "y" {
				t.Errorf("%s is not found as %s: %v", c.name, text, err)
			}
			more := c.name
			more.Names = append(slices.Clone(more.Names), subject("OU", "more").Names...)
			if got, _ := attributesOf(t, text, more); got["x"] != "" {
				t.Errorf("%s is found as %s", more, text)
			}
		}
	}
	for _, text := range []string{
		"", "fan", "CN = a,", "CN = a, b", `CN = "a`, `CN = "a" b`, `CN = a\`, `CN = a\b`, "CN = a;b", `CN = \FF`, "CN = #", "CN = #0201", "CN = #020101", "CN = a, FOO = b", "/C=US/CN=a", "1 = a", "1.02 = a", "subject=CN = a",
	} {
		if _, err := attributesOf(t, text, pkix.Name{}); err == nil {
			t.Errorf("%q: no error", text)
		}
	}
	for text, parses := range map[string]bool{"team=a;b": true, "a, CN=b": true, "CN = a, b": false, "/C=US/CN=a": false} { // user names or subjects
		if _, err := policy.ParseAttributes("f", fmt.Appendf(nil, "%q: {x: y}", text)); (err == nil) != parses {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// FuzzSubject: each subject is found in each of its forms, and what else parses does not fail.
func FuzzSubject(f *testing.F) {
	f.Add("CN=a", uint8(0), "Contoso, Inc.", uint8(3), " #\"\\ ")
	f.Add(`O = "a\"", UID=#0c0161 + DC = \C3\BC`, uint8(5), "ü", uint8(6), "#00")
	f.Fuzz(func(t *testing.T, text string, one uint8, a string, two uint8, b string) {
		if _, err := attributesOf(t, text, pkix.Name{}); err != nil && strings.ContainsAny(err.Error(), "\n\r\x1b") {
			t.Errorf("%q: the error is not one line: %q", text, err)
		}
		if !utf8.ValidString(a+b) || !utf8.ValidString(a) {
			return
		}
		types := slices.Sorted(maps.Keys(subjectTypes))
		words := []string{types[int(one)%len(types)], a, types[int(two)%len(types)], b}
		name := subject(words...)
		quote := func(value string) string {
			return `"` + strings.NewReplacer(`"`, `\"`, `\`, `\\`).Replace(value) + `"`
		}
		escape := func(value string) (all string) {
			for _, c := range []byte(value) {
				all += fmt.Sprintf(`\%02X`, c)
			}
			return all
		}
		other := subject(words[0], a, words[2], b+"x")
		forms := []string{words[0] + " = " + quote(a) + ", " + words[2] + " = " + quote(b), words[2] + "=" + escape(b) + "+" + words[0] + "=" + escape(a)}
		if !strings.ContainsAny(a+b, "\r\n") { // a line end at the end of the text, as a block of YAML has, is not part of it
			forms = append(forms, pkix.RDNSequence{name.Names[:1], name.Names[1:]}.String(), pkix.RDNSequence{name.Names}.String())
		}
		for _, form := range forms {
			if got, err := attributesOf(t, form, name); err != nil || got["x"] != "y" {
				t.Errorf("%q is not found as %s: %v", words, form, err)
			}
			if got, _ := attributesOf(t, form, other); got["x"] != "" {
				t.Errorf("%q is found as %s", words, form)
			}
		}
	})
}
