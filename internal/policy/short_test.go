package policy_test

import (
	"strings"
	"testing"

	"github.com/sscli/sscli/internal/policy"
)

func TestParseShort(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]policy.Short{
		"ann:Read:colors/*":                 {User: "ann", Read: true, Keys: "colors/*"},
		"*:Write:a:b":                       {User: "*", Write: true, Keys: "a:b"},
		"ann:ReadWrite:*":                   {User: "ann", Read: true, Write: true, Keys: "*"},
		"ann:Read:x:Write:y":                {User: "ann", Read: true, Keys: "x:Write:y"},
		"ann:Read:\xff\x00":                 {User: "ann", Read: true, Keys: "\xff\x00"},
		"a:Read:[{]x":                       {},
		"":                                  {},
		"ann":                               {},
		"ann:read:*":                        {},
		"ann:Read:":                         {},
		":Read:x":                           {},
		"ann:Read:{principal}":              {},
		"ann:Read:{":                        {},
		"ann:ReadWrite":                     {},
		"ann:Read:{principal.clientId}/*":   {User: "ann", Read: true, Keys: "{principal.clientId}/*"},
		"ann:Read:{principal.attributes.x}": {},
		"system:serviceaccount:ns:sa:Write:{principal.username}": {User: "system:serviceaccount:ns:sa", Write: true, Keys: "{principal.username}"},
	} {
		got, err := policy.ParseShort(text)
		if want == (policy.Short{}) {
			if err == nil || strings.Contains(err.Error(), "\n") {
				t.Errorf("%q: %+v, %v, want an error", text, got, err)
			}
			continue
		}
		if err != nil || got != want {
			t.Errorf("%q: %+v, %v, want %+v", text, got, err, want)
		}
	}
}

// FuzzParseShort: a rule that parses is formatted as its source and parses again to the same rule.
func FuzzParseShort(f *testing.F) {
	f.Add("ann:Read:colors/*", "colors/red", "c")
	f.Add("*:ReadWrite:{principal.clientId}[0-9]", "*1", "*")
	f.Add("a:b:Write:[", "[", "]")
	f.Fuzz(func(t *testing.T, text, key, clientID string) {
		r, err := policy.ParseShort(text)
		if err != nil {
			if strings.ContainsAny(err.Error(), "\n\r\x1b") {
				t.Errorf("%q: the error is not one line: %q", text, err)
			}
			return
		}
		if got := r.String(); got != text {
			t.Errorf("%q is written %q", text, got)
		}
		again, err := policy.ParseShort(r.String())
		if err != nil || again != r {
			t.Errorf("%q: read again: %+v, %v", text, again, err)
		}
		if strings.ContainsAny(r.Keys, "*?[{") {
			return
		}
		// A pattern without special characters matches only itself.
		if policy.FromShort([]policy.Short{r}).AllowsKey(clientID, r.User, key, !r.Read) != (key == r.Keys) {
			t.Errorf("%q with the key %q", text, key)
		}
	})
}
