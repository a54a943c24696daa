package policy_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/sscli/sscli/internal/policy"
)

// TestCompareNarrower: what a rule no longer allows is lost, though an example of the old pattern is still allowed.
func TestCompareNarrower(t *testing.T) {
	const connect = "{method: Connect}"
	keys := func(patterns ...string) string {
		return "[" + connect + "], stateStoreResources: [{method: Read, keys: [" + quote(patterns) + "]}]"
	}
	as := func(ids ...string) string { return "[{method: Connect, clientIds: [" + quote(ids) + "]}]" }
	topics := func(texts ...string) string {
		return "[" + connect + ", {method: Publish, topics: [" + quote(texts) + "]}]"
	}
	filters := func(texts ...string) string {
		return "[" + connect + ", {method: Subscribe, topics: [" + quote(texts) + "]}]"
	}
	const user, site = "usernames: [ann]", `attributes: [{site: "1"}]`
	for _, c := range []struct{ who, old, next, lost string }{
		{user, keys("k"), keys("k"), ""},
		{user, as("sensor-*"), as("sensor-1"), "ann as sensor-x Connect"},
		{user, as("sensor-*"), as("sensor-1*", "sensor-x*"), "ann as sensor- Connect"},
		{user, as("sensor-1"), as("sensor-*"), ""},
		{user, "[" + connect + "]", as("client-*"), "ann as x Connect"},
		{user, as("a-*", "b-*"), as("a-*"), "ann as b-1 Connect"},
		{user, as("s-*"), as("s-[0-9]", "s-[!0-9]*"), "ann as s- Connect"},
		{site, as("{principal.username}*"), as("{principal.username}-*"), "site=1 user-1 as user-11 Connect"},
		{site, as("{principal.username}*"), as("user*"), ""},
		{site, topics("users/{principal.username}/state"), "[" + connect + "]", "site=1 user-1 as client-1 Publish users/user-1/state"},
		{user, keys("{principal.attributes.room}/*"), "[" + connect + "]", "room=room-1 ann as client-1 Read room-1/1"},
		{user, keys("{principal.attributes.room}/*"), keys("*"), ""},
		{user, keys("number[0-9]"), keys("number0"), "ann as client-1 Read number1"},
		{user, keys("number[0-9]"), keys("number[0-8]"), "ann as client-1 Read number9"},
		{user, keys("[!0-9]"), keys("[!0-9x]"), "ann as client-1 Read x"},
		{user, keys("[!0-9]"), keys("x"), "ann as client-1 Read a"},
		{user, keys("k?"), keys("k1", "kx"), "ann as client-1 Read ka"},
		{user, keys("k*"), keys("k", "k?", "k??"), "ann as client-1 Read kxxx"},
		{user, keys("a/**"), keys("a/*"), ""},
		{user, keys("*"), keys("[!a]*", "a*"), `ann as client-1 Read \xff`},
		{user, "[" + connect + "], stateStoreResources: [{method: Read, keyType: String, keys: [\"a*\"]}, {method: Read, keys: [\"a*\"]}]", "[" + connect + "]",
			"ann as client-1 Read a*\nann as client-1 Read a1"},
		{user, topics("a/+"), topics("a/x"), "ann as client-1 Publish a/xx"},
		{user, topics("a/#"), topics("a", "a/+", "a/+/+"), "ann as client-1 Publish a/x/x/x"},
		{user, topics("a/#"), topics("a/+/#"), "ann as client-1 Publish a"},
		{user, topics("a/+/b"), topics("+/x/b", "a/y/+"), "ann as client-1 Publish a/xx/b"},
		{user, filters("a/#"), filters("a", "a/+/#"), "ann as client-1 Subscribe a/#"},
		{user, filters("a/+"), filters("a/#"), ""},
		{"clientIds: [c-1]", as("{principal.username}*"), "[]", "c-1 as c-1 Connect"},
		{"clientIds: [c-1]", as("{principal.username}-*"), as("{principal.username}"), "c as c-1 Connect"},
		{"clientIds: [c]", keys("{principal.username}/*"), "[" + connect + "]", "user-1 as c Read user-1/1"},
	} {
		rules := func(resources string) *policy.Policy {
			return parse(t, resource("      - {principals: {"+c.who+"}, brokerResources: "+resources+"}\n"))
		}
		var lost []string
		for _, change := range policy.Compare(t.Context(), rules(c.old), rules(c.next), nil) {
			if change.Lost {
				who := ""
				for _, name := range []string{"room", "site"} {
					if value := change.Attributes[name]; value != "" {
						who += name + "=" + value + " "
					}
				}
				if change.Username != "" {
					who += change.Username + " "
				}
				lost = append(lost, strings.Trim(fmt.Sprintf("%q", strings.TrimSpace(fmt.Sprintf("%sas %s %s %s", who, change.ClientID, change.Method, change.On))), `"`))
			}
		}
		if want := strings.FieldsFunc(c.lost, func(c rune) bool { return c == '\n' }); !slices.Equal(lost, want) {
			t.Errorf("%s: %s → %s: %q, want %q", c.who, c.old, c.next, lost, want)
		}
	}
}

func quote(texts []string) string {
	return strings.Trim(list(texts), "[]")
}

// FuzzCompareMisses: no action of a client that the rules of one user allow by the old policy alone is missed.
func FuzzCompareMisses(f *testing.F) {
	for i := range uint64(300) {
		f.Add(i)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		w := world{rand.New(rand.NewPCG(seed, 3))}
		one := func() (rule, *policy.Policy) {
			r := w.rule()
			r.Users, r.IDs, r.Sets = []string{"ann"}, nil, nil
			r.Broker = append(r.Broker, broker{Method: "Connect"})
			for i := range r.Broker {
				r.Broker[i].ClientIDs = nil // or a client that the comparison makes up may not be the one that loses
			}
			return r, parse(t, resource(r.String()))
		}
		oldRule, old := one()
		nextRule, next := one()
		lost := slices.ContainsFunc(policy.Compare(t.Context(), old, next, nil), func(c policy.Change) bool { return c.Lost })
		for range 200 {
			who, a := policy.Principal{ClientID: "c", Username: "ann", Attributes: map[string]string{"x": "y"}}, w.action()
			if judge([]rule{oldRule}, who, a) && !judge([]rule{nextRule}, who, a) && !lost && a.On != "" {
				t.Fatalf("%s %q is lost\n%s%s", a.Method, a.On, oldRule, nextRule)
			}
		}
	})
}

// BenchmarkCompare compares a thousand rules of which each has changed.
func BenchmarkCompare(b *testing.B) {
	text := string(manyRules(1000))
	old, next := parse(b, text), parse(b, strings.ReplaceAll(text, "/*\"]", "/[!x]*\"]"))
	for b.Loop() {
		if n := len(policy.Compare(b.Context(), old, next, nil)); n != 8000 {
			b.Fatal(n)
		}
	}
}

// TestCompareManyIDs: a loss of the last of many client ids is found.
func TestCompareManyIDs(t *testing.T) {
	var ids []string
	for i := range 300 {
		ids = append(ids, fmt.Sprint("c-", i))
	}
	rule := func(principals string) string {
		return "      - principals: {" + principals + "}\n        brokerResources: [{method: Connect, clientIds: [" + strings.Join(ids, ", ") + "]}]\n" +
			"        stateStoreResources: [{method: Write, keyType: Pattern, keys: [\"x/*\"]}]\n"
	}
	connect := "      - principals: {usernames: [ann]}\n        brokerResources: [{method: Connect}]\n"
	old := parse(t, resource(rule("usernames: [ann]")))
	next := parse(t, resource(connect+rule("clientIds: ["+strings.Join(ids[:299], ", ")+"]")))
	if !slices.ContainsFunc(policy.Compare(t.Context(), old, next, nil), func(c policy.Change) bool { return c.Lost && c.ClientID == "c-299" && c.Method == policy.Write }) {
		t.Error("c-299 writes x/* in the old policy only, and no such change is found")
	}
}
