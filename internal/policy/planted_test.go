package policy_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sscli/sscli/internal/policy"
	"github.com/sscli/sscli/internal/testkit/policies"
)

// TestPlanted: a mistake in a policy is found in its line, and with the mend it is gone. Nobody else gets more by the mend, and
// nothing is found in the rule beside it.
func TestPlanted(t *testing.T) {
	// What a mistake has as its consequence, or what the policy has besides.
	also := map[string][]string{
		"a rule for a client id": {"SS016"}, "a misspelt token": {"SS016"}, "# in a client id": {"SS016"}, "null": {"SS007"},
		"a user with a slip": {"SS015", "SS016", "SS018"}, "an old topic of requests": {"SS015"}, "a Binary key that is text": {"SS018"},
		"two tokens with a separator that names contain": {"SS022"}, "two tokens without a separator": {"SS022"},
	}
	for _, c := range policies.Planted() {
		p, err := policy.Parse("a.yaml", []byte(policies.Resource(c.Rules)))
		if err != nil {
			t.Errorf("%s: %v", c.Name, err)
			continue
		}
		found := false
		for _, f := range p.Check(t.Context(), policy.Info) {
			if f.Severity >= policy.Warning && f.Line == 7 && strings.Contains(c.Rules, "bob") {
				t.Errorf("%s: about bob: %s %s", c.Name, f.ID, f.Message)
			}
			if f.ID != c.ID || f.Line != c.Line || f.Severity < policy.Warning {
				if f.Severity >= policy.Warning && !slices.Contains(also[c.Name], f.ID) {
					t.Errorf("%s: also %s in line %d: %s; %s", c.Name, f.ID, f.Line, f.Message, f.Hint)
				}
				continue
			}
			found = true
			if !strings.Contains(f.Hint, c.Mend) || (c.Mend != "") != (f.Mend != nil) {
				t.Errorf("%s: %s; %s, mend %v", c.Name, f.Message, f.Hint, f.Mend)
			}
			if f.Mend == nil {
				continue
			}
			for _, after := range p.With(f.Mend).Check(t.Context(), policy.Info) {
				if after.ID == f.ID && after.Line == f.Line && after.Severity >= policy.Warning {
					t.Errorf("%s: with %s: %s", c.Name, f.Hint, after.Message)
				}
			}
			for _, change := range policy.Compare(t.Context(), p, p.With(f.Mend), nil) {
				if !change.Lost && change.Username == "bob" && f.Line != 7 {
					t.Errorf("%s: with %s: %+v", c.Name, f.Hint, change)
				}
			}
		}
		if !found {
			t.Errorf("%s: not found: %+v", c.Name, p.Check(t.Context(), policy.Info))
		}
	}
}

// TestMendTakesNothing: a mend of what one principal lacks takes nothing of that kind from another one of the rule.
func TestMendTakesNothing(t *testing.T) {
	watch := func(hex string) string {
		return `, {method: Subscribe, topics: ["clients/statestore/v1/` + policies.UUID + "/" + hex + `/command/notify/+"]}`
	}
	for _, brokers := range []string{
		policies.Store + watch("616E6E"),
		policies.Connect + ", " + policies.Request + `, {method: Subscribe, topics: ["clients/ann/#"]}` + watch("616E6E"),
	} {
		p := parse(t, resource(policies.Line("usernames: [ann, anm]", brokers, `{method: Read, keys: ["*"]}`)))
		for _, f := range p.Check(t.Context(), policy.Info) {
			if f.ID > "SS017" || f.Mend == nil {
				continue
			}
			for _, change := range policy.Compare(t.Context(), p, p.With(f.Mend), nil) {
				if change.Lost && change.Username == "ann" {
					t.Errorf("%s %s; %s: %+v", f.ID, f.Message, f.Hint, change)
				}
			}
		}
	}
}

// TestRight: a policy without a mistake has no finding but infos.
func TestRight(t *testing.T) {
	for name, rules := range policies.Right() {
		p, err := policy.Parse("a.yaml", []byte(policies.Resource(rules)))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for _, f := range p.Check(t.Context(), policy.Info) {
			if f.Severity > policy.Info {
				t.Errorf("%s: %d %s %s: %s; %s", name, f.Line, f.ID, f.Severity, f.Message, f.Hint)
			}
		}
	}
}

// TestIgnores: comments silence findings of their line, of the next one, or of the file.
func TestIgnores(t *testing.T) {
	text := policies.Resource(policies.Line("usernames: [ann]", `{method: Connect}, {method: Subscribe, topics: ["#"]}`, ""))
	rule := strings.Index(text, "      - {principals")
	for with, want := range map[string]int{
		text: 1,
		strings.TrimSuffix(text, "\n") + " # sscli:ignore SS021: an archive\n": 0,
		text[:rule] + "      # sscli:ignore SS001, SS021\n" + text[rule:]:      0,
		"# sscli:ignore SS021\n" + text:                                        0,
		text[:rule] + "      # sscli:ignore SS001\n" + text[rule:]:             1,
	} {
		if got := parse(t, with).Check(t.Context(), policy.Info); len(got) != want {
			t.Errorf("%+v, want %d findings\n%s", got, want, with)
		}
	}
}

// TestExampleFindings: what the documentation of the broker shows is judged as it works.
func TestExampleFindings(t *testing.T) {
	for name, want := range map[string]string{
		"buildings": "", "usernames": "", "state-store": "SS009 SS022 SS021 SS013 SS009", "client-ids": "SS002 SS023", "rpc": "SS022",
	} {
		text, err := os.ReadFile(filepath.Join("testdata/examples", name+".yaml"))
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, f := range parse(t, string(text)).Check(t.Context(), policy.Info) {
			if f.Severity > policy.Info {
				got = append(got, f.ID)
			}
		}
		if text := strings.Join(got, " "); text != want {
			t.Errorf("%s: %s, want %s", name, text, want)
		}
	}
}
