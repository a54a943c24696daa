package policy

import (
	"fmt"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"github.com/sscli/sscli/internal/testkit/memtest"
)

// patternsFor returns a policy with 400 topics and 400 patterns of keys for ann. token is a part of each.
func patternsFor(t *testing.T, token string) *Policy {
	t.Helper()
	var topics, keys strings.Builder
	for i := range 400 {
		fmt.Fprintf(&topics, "\"site-%d/%s/+\", ", i, token)
		fmt.Fprintf(&keys, "\"site-%d/%s/sensor-[0-9]*/value\", ", i, token)
	}
	p, err := Parse("p", fmt.Appendf(nil, `[{"principals": {"usernames": ["ann"]},
  "brokerResources": [{"method": "Connect", "clientIds": ["c-*"]}, {"method": "Publish", "clientIds": ["c-*"], "topics": [%s]}],
  "stateStoreResources": [{"method": "Read", "keys": [%s]}]}]`, strings.TrimSuffix(topics.String(), ", "), strings.TrimSuffix(keys.String(), ", ")))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestShared: what has no tokens is compiled once for all clients.
func TestShared(t *testing.T) {
	p := patternsFor(t, "line")
	who := Principal{ClientID: "c-1", Username: "ann"}
	c := p.For(who)
	if len(c.topics) != 400 || len(c.keys) != 400 || c.Allowed(Action{Read, "site-399/line/sensor-1/value"}) == nil {
		t.Fatal("the rules do not apply")
	}
	for _, b := range append(c.topics, c.keys...) {
		if b != b.entry.shared {
			t.Fatalf("%s was bound for one client", b.entry)
		}
	}
	if n := testing.AllocsPerRun(10, func() { p.For(who) }); n > 30 { // the lists grow
		t.Errorf("%.0f allocations for a client", n)
	}
}

// TestCosts compares Client.Memory with the memory of the answers.
func TestCosts(t *testing.T) {
	if !memtest.Alone(t) {
		return
	}
	attributes := make(map[string]string)
	for i := range 100 {
		attributes[fmt.Sprintf("a%d", i)] = "1"
	}
	for _, test := range []struct {
		name, token string
		number      int
		attributes  Attributes
	}{
		{"shared", "line", 200, nil},
		{"with tokens", "{principal.clientId}", 20, nil},
		{"with some attributes", "line", 200, Attributes{"ann": {"a": "1", "b": "2"}}},
		{"with many attributes", "{principal.attributes.a1}", 20, Attributes{"ann": attributes}},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := patternsFor(t, test.token)
			p.Attributes = test.attributes
			all, memory := make([]*Client, test.number), 0
			memtest.Compare(t, test.number, func() int { return memory }, func(i int) {
				all[i] = p.For(Principal{ClientID: fmt.Sprintf("c-%d", i), Username: "ann", Attributes: p.Attributes.Of("ann", nil)})
				memory += all[i].Memory()
			})
			runtime.KeepAlive(all)
		})
	}
}

// TestFields: Client.Memory knows all fields of variable size.
func TestFields(t *testing.T) {
	const (
		memory = "Memory; TestCosts"
		policy = "the policy's"
	)
	memtest.Fields(t, map[string]string{
		"Client.who": memory + "; the names are those of the connection", "Client.connect": policy, "Client.topics": memory, "Client.keys": memory,
		"bound.entry": policy, "bound.levels": memory, "bound.wild": memory, "bound.glob": memory, "bound.prefix": policy,
	}, reflect.TypeFor[Client](), reflect.TypeFor[bound]())
}
