package policy_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sscli/sscli/internal/policy"
)

const (
	plantedRequest = "{method: Publish, topics: [statestore/v1/FA9AE35F-2F64-47CD-9BFF-08E2B32A0FE8/command/invoke]}"
	plantedOwn     = `{method: Subscribe, topics: ["clients/{principal.clientId}/#"]}`
	plantedConnect = `{method: Connect, clientIds: ["{principal.username}"]}`
	plantedStore   = plantedConnect + ", " + plantedRequest + ", " + plantedOwn
)

// line returns a rule in one line: the first is line 7 of a resource.
func line(principals, brokers, stores string) string {
	return "      - {principals: {" + principals + "}, brokerResources: [" + brokers + "], stateStoreResources: [" + stores + "]}\n"
}

// TestPlanted: a mistake in a policy is found in its line, and with the mend it is gone.
func TestPlanted(t *testing.T) {
	const base = "usernames: [bob]"
	bob := line(base, plantedStore, `{method: Read, keys: ["colors/*"]}`)
	ann := func(brokers, stores string) string { return bob + line("usernames: [ann]", brokers, stores) }
	const keys = `{method: Read, keys: ["k/*"]}`
	for _, c := range []struct {
		name, rules, id string
		line            int
		mend            string // a part of the hint; "" = none is tried
	}{
		{"a prefix of a name", ann(strings.Replace(plantedStore, "username}", "username}*", 1), keys), "SS024", 8, `"{principal.username}"`},
		{"replies of everybody", ann(plantedStore+`, {method: Subscribe, topics: ["clients/+/statestore/v1/FA9AE35F-2F64-47CD-9BFF-08E2B32A0FE8/command/invoke/response"]}`, keys), "SS021", 8, "clients/{principal.clientId}/#"},
		{"notifications of everybody", ann(plantedStore+`, {method: Subscribe, topics: ["clients/statestore/v1/FA9AE35F-2F64-47CD-9BFF-08E2B32A0FE8/+/command/notify/+"]}`, keys), "SS021", 8, "/616E6E/command/notify/+"},
		{"all topics", ann(plantedStore+`, {method: Subscribe, topics: ["#"]}`, keys), "SS021", 8, ""},
		{"replies of another one", ann(plantedStore+`, {method: Subscribe, topics: ["clients/bob/#"]}`, keys), "SS021", 8, "clients/{principal.clientId}/#"},
		{"a free Connect", ann("{method: Connect}, "+plantedRequest+", "+plantedOwn, keys), "SS022", 8, `["{principal.username}"]`},
		{"a rule for a client id", bob + line("clientIds: [sensor]", "{method: Connect}, "+plantedRequest, `{method: Read, keys: [a]}`), "SS023", 8, ""},
		{"no Subscribe, though others have it", bob + line(`attributes: [{role: dashboard}]`, `{method: Connect, clientIds: ["{principal.attributes.role}-*"]}, `+plantedRequest+", "+plantedOwn, keys) + line("usernames: [gateway]", plantedConnect+", "+plantedRequest, `{method: Write, keys: [g]}`), "SS016", 9, "clients/{principal.clientId}/#"},
		{"no Publish", ann(plantedConnect+", "+plantedOwn, keys), "SS015", 8, "command/invoke"},
		{"no Connect", ann(plantedRequest+", "+plantedOwn, keys), "SS014", 8, "{principal.username}"},
		{"a misspelt request topic", ann(plantedConnect+", {method: Publish, topics: [statestore/v1/FA9AE35F-2F64-47CD-9BFF-08E2B32A0FE8/command/invok]}, "+plantedOwn, keys), "SS015", 8, "command/invoke"},
		{"an attribute that users lack", bob + line("usernames: [ann], attributes: [{building: b1}]", `{method: Connect, clientIds: ["{principal.attributes.building}-*"]}, `+plantedRequest+", "+plantedOwn, keys), "SS020", 8, "{principal.username}"},
		{"a misspelt token", ann(strings.Replace(plantedStore, "{principal.clientId}", "{principal.clientID}", 1), keys), "SS008", 8, "{principal.clientId}"},
		{"a token in a part of a level", ann(plantedStore+`, {method: Publish, topics: ["d-{principal.clientId}/x"]}`, keys), "SS008", 8, "d/{principal.clientId}/x"},
		{"a star in a topic", ann(plantedStore+`, {method: Publish, topics: ["sensors/*"]}`, keys), "SS009", 8, "sensors/#"},
		{"a topic's wildcard in a key", ann(plantedStore, `{method: Read, keys: ["line1/#"]}`), "SS009", 8, "line1/*"},
		{"a topic's + in a key", ann(plantedStore, `{method: Read, keys: ["line1/+/x"]}`), "SS009", 8, "line1/*/x"},
		{"a regular expression", ann(plantedStore, `{method: Read, keys: ["a.*"]}`), "SS009", 8, "a*"},
		{"a word as a class", ann(plantedStore, `{method: Read, keys: ["recipe[current]"]}`), "SS009", 8, ""},
		{"a pattern as String", ann(plantedStore, `{method: Read, keyType: String, keys: ["sp/*"]}`), "SS009", 8, "keyType: Pattern"},
		{"# in a client id", ann(strings.Replace(plantedStore, "{principal.username}", "ann-#", 1), keys), "SS009", 8, "ann-*"},
		{"a blank", bob + line(`usernames: ["ann "]`, plantedStore, keys), "SS010", 8, ""},
		{"a boolean", bob + line("attributes: [{country: no}]", `{method: Connect, clientIds: ["{principal.attributes.country}-*"]}`, ""), "SS005", 8, ""},
		{"an obsolete topic", ann(plantedStore+`, {method: Publish, topics: ["$services/statestore/_any_/command/invoke/request"]}`, keys), "SS011", 8, "statestore/v1"},
		{"a rule twice", ann(plantedStore, keys) + line("usernames: [ann]", "", keys), "SS026", 9, "remove"},
		{"no keys", ann(plantedStore, ""), "SS018", 8, ""},
	} {
		p := parse(t, resource(c.rules))
		found := false
		for _, f := range p.Check(t.Context()) {
			if f.ID != c.id || f.Line != c.line || f.Severity < policy.Warning {
				continue
			}
			found = true
			if !strings.Contains(f.Hint, c.mend) || (c.mend != "") != (f.Mend != nil) {
				t.Errorf("%s: %s, mend %v", c.name, f.Hint, f.Mend)
			}
			if f.Mend == nil {
				break
			}
			for _, after := range p.With(f.Mend).Check(t.Context()) {
				if after.ID == f.ID && after.Line == f.Line && after.Severity >= policy.Warning {
					t.Errorf("%s: with %s: %s", c.name, f.Hint, after.Message)
				}
			}
			break
		}
		if !found {
			t.Errorf("%s: not found: %+v", c.name, p.Check(t.Context()))
		}
	}
}

// TestRight: a policy without a mistake has no finding but infos.
func TestRight(t *testing.T) {
	const keys = `{method: ReadWrite, keys: ["k/*"]}`
	watch := func(hex string) string {
		return `, {method: Subscribe, topics: ["clients/statestore/v1/FA9AE35F-2F64-47CD-9BFF-08E2B32A0FE8/` + hex + `/command/notify/+"]}`
	}
	for name, rules := range map[string]string{
		"users":                       line("usernames: [ann, bob]", plantedStore, keys),
		"a separator":                 line("usernames: [ann, bob]", strings.Replace(plantedStore, "username}", "username}-*", 1), keys),
		"with a watch":                line("usernames: [ann]", plantedStore+watch("616E6E"), keys),
		"telemetry":                   line("attributes: [{role: device}]", `{method: Connect, clientIds: ["{principal.username}"]}, {method: Publish, topics: ["sensors/{principal.username}/#"]}`, ""),
		"an attribute":                line(`attributes: [{site: "7"}]`, `{method: Connect, clientIds: ["{principal.attributes.site}-*"]}, `+plantedRequest+", "+plantedOwn, `{method: Read, keys: ["sites/{principal.attributes.site}/*"]}`),
		"values that are no prefixes": line("attributes: [{building: b22}, {building: b23}]", `{method: Connect, clientIds: ["{principal.attributes.building}*"]}, {method: Publish, topics: ["t/{principal.attributes.building}"]}`, ""),
		"layers":                      line("attributes: [{group: store}]", plantedConnect+", "+plantedRequest+", "+plantedOwn, "") + line("usernames: [ann]", "", keys),
		"a dashboard beside users":    line("attributes: [{role: dashboard}]", `{method: Connect, clientIds: ["dash-{principal.username}"]}, {method: Subscribe, topics: ["sensors/#"]}`, "") + line("usernames: [ann]", plantedStore, keys),
		"a binary key, a class":       line("usernames: [ann]", plantedStore, `{method: Read, keyType: Binary, keys: [dGVzdA==]}, {method: Read, keys: ["n[0-9]", "m[abc]"]}`),
		"a free Connect without ids":  line("usernames: [ann, bob]", "{method: Connect}, {method: Publish, topics: [news]}", ""),
	} {
		for _, f := range parse(t, resource(rules)).Check(t.Context()) {
			if f.Severity > policy.Info {
				t.Errorf("%s: %s %s: %s", name, f.ID, f.Severity, f.Message)
			}
		}
	}
}

// TestIgnores: comments silence findings of their line, of the next one, or of the file.
func TestIgnores(t *testing.T) {
	text := resource(line("usernames: [ann]", `{method: Connect}, {method: Subscribe, topics: ["#"]}`, ""))
	rule := strings.Index(text, "      - {principals")
	for with, want := range map[string]int{
		text: 1,
		strings.TrimSuffix(text, "\n") + " # sscli:ignore SS021: an archive\n": 0,
		text[:rule] + "      # sscli:ignore SS001, SS021\n" + text[rule:]:      0,
		"# sscli:ignore SS021\n" + text:                                        0,
		text[:rule] + "      # sscli:ignore SS001\n" + text[rule:]:             1,
	} {
		if got := parse(t, with).Check(t.Context()); len(got) != want {
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
		for _, f := range parse(t, string(text)).Check(t.Context()) {
			if f.Severity > policy.Info {
				got = append(got, f.ID)
			}
		}
		if text := strings.Join(got, " "); text != want {
			t.Errorf("%s: %s, want %s", name, text, want)
		}
	}
}
