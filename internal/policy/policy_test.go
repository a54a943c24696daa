package policy_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/sscli/sscli/internal/policy"
)

func parse(t testing.TB, text string) *policy.Policy {
	t.Helper()
	p, err := policy.Parse("a.yaml", []byte(text))
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return p
}

// resource returns a resource with rules in flow form, one per line.
func resource(rules string) string {
	return "apiVersion: mqttbroker.iotoperations.azure.com/v1\nkind: BrokerAuthorization\nmetadata: {name: a}\nspec:\n  authorizationPolicies:\n    rules:\n" + rules
}

// TestForms: the same rule in each form that a file may have.
func TestForms(t *testing.T) {
	const rule = `{"principals": {"usernames": ["ann"], "clientIds": [], "attributes": []}, "brokerResources": [{"method": "Connect", "topics": [], "clientIds": []}], "stateStoreResources": [{"method": "Read", "keyType": "Pattern", "keys": ["k*"]}]}`
	const policies = `{"authorizationPolicies": {"cache": "Enabled", "rules": [` + rule + `]}}`
	const custom = `{"apiVersion": "mqttbroker.iotoperations.azure.com/v1", "kind": "BrokerAuthorization", "metadata": {"name": "a"}, "spec": ` + policies + `}`
	for name, text := range map[string]string{
		"custom resource":     custom,
		"old version":         strings.Replace(custom, "/v1", "/v1beta1", 1),
		"kubectl get":         `{"apiVersion": "v1", "kind": "List", "metadata": {"resourceVersion": ""}, "items": [` + custom + `]}`,
		"kubectl -o yaml":     "apiVersion: v1\nkind: List\nitems:\n- " + custom,
		"az show":             `{"extendedLocation": {}, "id": "/x", "name": "a", "properties": ` + policies + `, "type": "x"}`,
		"az list":             `[{"name": "a", "properties": ` + policies + `}]`,
		"REST list":           `{"value": [{"name": "a", "properties": ` + policies + `}]}`,
		"template":            `{"resources": [{"type": "Microsoft.IoTOperations/instances/brokers/authorizations", "properties": ` + policies + `}, {"type": "other", "properties": {}}]}`,
		"portal":              "[\n\t" + rule + "]",
		"properties alone":    policies,
		"several documents":   "kind: BrokerListener\nspec: {ports: []}\n---\n" + custom + "\n---\n",
		"with a mark":         "\ufeff" + custom,
		"anchors and aliases": resource("      - &r " + rule + "\n"),
	} {
		p, err := policy.Parse("f", []byte(text))
		if err != nil || len(p.Findings) > 0 || len(p.Resources) != 1 || len(p.Rules) != 1 {
			t.Errorf("%s: %v, %+v", name, err, p)
			continue
		}
		ann := p.For(policy.Principal{ClientID: "c", Username: "ann"})
		if ann.Allowed(policy.Action{Method: policy.Connect}) == nil || ann.Allowed(policy.Action{Method: policy.Read, On: "key"}) == nil || ann.Allowed(policy.Action{Method: policy.Write, On: "key"}) != nil {
			t.Errorf("%s: the wrong rules", name)
		}
	}
	for _, text := range []string{"", "a: b", "[", "a: [", "- a", "kind: Pod", strings.Repeat("[", 200), "a: &a [*a]", "\xff", "{}", "[1]"} {
		if p, err := policy.Parse("f", []byte(text)); err == nil && len(p.Findings) == 0 {
			t.Errorf("%.20q: no error, %+v", text, p)
		} else if err != nil && strings.ContainsAny(err.Error(), "\n\x1b") {
			t.Errorf("%q: the error is not one line: %q", text, err)
		}
	}
	if p, err := policy.Parse("f", []byte("[]")); err != nil || len(p.Resources) != 1 || len(p.Findings) != 1 {
		t.Errorf("the portal's list without rules: %v, %+v", err, p)
	}
}

// TestEmptyList: a list of resources without an authorization is an error, and not an authorization without rules.
func TestEmptyList(t *testing.T) {
	for _, text := range []string{
		"{apiVersion: v1, kind: List, items: []}", `{"value": []}`, `{"resources": []}`, "[[]]", `[{"value": []}]`, "{kind: List, items: []}\n---\nkind: Pod",
	} {
		if p, err := policy.Parse("f", []byte(text)); err == nil {
			t.Errorf("%q: no error, %+v", text, p)
		}
	}
}

// TestCovers checks which topics and filters a rule's topic allows.
func TestCovers(t *testing.T) {
	for _, c := range []struct{ topic, publish, subscribe, not string }{
		{"a/b", "a/b", "a/b $share/g/a/b", "a a/b/c a/+ a/# + # $share/g/a a/B"},
		{"a/+", "a/b a/", "a/+ a/b", "a a/# a/b/c # +/b"},
		{"a/#", "a a/b a/b/c", "a a/# a/+ a/b/# a/+/c", "# + +/# b"},
		{"#", "a a/b /", "# + +/# a/#", "$SYS/a $SYS/#"},
		{"+/#", "a a/b", "# +/# a/#", "$SYS/a"},
		{"+", "a", "a +", "# a/b"},
		{"$SYS/#", "$SYS/a", "$SYS/#", "# a"},
		{"/a", "/a", "/a", "a"},
		{"{principal.clientId}/x", "a+/x", "", "a/x +/x {principal.clientId}/x"},
		{"x/{principal.attributes.slash}/y", "", "", "x/a/b/y x/+/y"},
		{"x/{principal.attributes.none}", "", "", "x/ x"},
		{"x/{principal.attributes.plus}", "", "", "x/+ x/a"},
	} {
		p := parse(t, resource(fmt.Sprintf("      - {principals: {usernames: [u]}, brokerResources: [{method: Publish, topics: [%q]}, {method: Subscribe, topics: [%q]}]}\n", c.topic, c.topic)))
		who := policy.Principal{ClientID: "a+", Username: "u", Attributes: map[string]string{"slash": "a/b", "plus": "+"}}
		ask := func(m policy.Method, on string, want bool) {
			t.Helper()
			if d := p.Decide(who, policy.Action{Method: m, On: on}); d.Allowed != want {
				t.Errorf("%s of %q with a rule for %q: %+v", m, on, c.topic, d)
			}
		}
		for on := range strings.FieldsSeq(c.publish) {
			ask(policy.Publish, on, true)
		}
		for on := range strings.FieldsSeq(c.subscribe) {
			ask(policy.Subscribe, on, true)
		}
		for on := range strings.FieldsSeq(c.not) {
			ask(policy.Subscribe, on, false)
		}
	}
}

// TestLongValues: a pattern whose tokens stand for more than 1024 bytes matches nothing, because a client chooses how long
// its id is.
func TestLongValues(t *testing.T) {
	p := parse(t, resource("      - {principals: {usernames: [u]}, stateStoreResources: [{method: Read, keyType: Pattern, keys: [\"{principal.username}/*/{principal.clientId}\"]}], "+
		"brokerResources: [{method: Connect, clientIds: [\"*\"]}, {method: Publish, clientIds: [\"{principal.clientId}\"], topics: [id]}, {method: Publish, clientIds: [\"*{principal.clientId}\"], topics: [pattern]}]}\n"))
	for _, n := range []int{1, 1023, 1024, 1025, 65_535} {
		id := strings.Repeat("ä*", n/3) + strings.Repeat("i", n%3)
		who := policy.Principal{ClientID: id, Username: "u"}
		for on, length := range map[string]int{"u/k/" + id: n + 1, "id": n, "pattern": n} {
			a := policy.Action{Method: policy.Publish, On: on}
			if length > n {
				a.Method = policy.Read
			}
			d, long := p.Decide(who, a), length > 1024
			if d.Allowed == long || a.Method == policy.Read && (strings.Contains(d.Lacks, "longer than 1024 bytes") != long || len(d.Assumes) > 0) {
				t.Errorf("%.10s, an id of %d bytes: %+v", on, n, d)
			}
			if c := p.For(who); (c.Allowed(a) == nil) != long || c.Allowed(policy.Action{Method: policy.Connect}) == nil {
				t.Errorf("%.10s, an id of %d bytes: the client and the decision differ", on, n)
			}
		}
	}
}

// TestLargeFile: a policy may have 4 MiB.
func TestLargeFile(t *testing.T) {
	text := resource("      - {principals: {usernames: [u]}, brokerResources: [{method: Connect}]}\n#")
	text += strings.Repeat("x", 4<<20-len(text))
	if p, err := policy.Parse("f", []byte(text)); err != nil || len(p.Rules) != 1 {
		t.Errorf("4 MiB: %v", err)
	}
	if _, err := policy.Parse("f", []byte(text+"x")); err == nil || !strings.Contains(err.Error(), "larger than 4 MiB") {
		t.Errorf("4 MiB and a byte: %v", err)
	}
}

// TestActionCheck checks which topics and filters a client can use.
func TestActionCheck(t *testing.T) {
	for _, c := range []struct {
		method policy.Method
		ok, no string
	}{
		{policy.Publish, "a a/b / $share/a", "a/+ # a+"},
		{policy.Subscribe, "a a/# # + +/# $share/g/a/+ $share/g//", "a/#/b a/b+ #a $share/g $share//a $share/+/a $share/g/a#"},
		{policy.Read, "a+ # a/#/b", ""},
	} {
		for on := range strings.FieldsSeq(c.ok) {
			if err := (policy.Action{Method: c.method, On: on}).Check(); err != nil {
				t.Error(err)
			}
		}
		for _, on := range append(strings.Fields(c.no), "") {
			if (policy.Action{Method: c.method, On: on}).Check() == nil {
				t.Errorf("%s %q: no error", c.method, on)
			}
		}
	}
	if err := (policy.Action{Method: policy.Connect}).Check(); err != nil {
		t.Error(err)
	}
}

// A world generates random rules, principals and actions from few words, so that they often match.
type world struct{ *rand.Rand }

func pick[T any](w world, from ...T) T { return from[w.IntN(len(from))] }

func (w world) some(most int, word func() string) []string {
	list := []string{}
	for range w.IntN(most + 1) {
		list = append(list, word())
	}
	return list
}

type broker struct {
	Method, KeyType   string
	Topics, ClientIDs []string
}

type rule struct {
	Users, IDs []string
	Sets       []map[string]string
	Broker     []broker
	Store      []broker
}

func (w world) name() string { return pick(w, "a", "b", "a*", "+", "a/b") }
func (w world) token() string {
	return pick(w, "{principal.username}", "{principal.clientId}", "{principal.attributes.x}")
}
func (w world) level() string { return pick(w, "a", "b", "+", w.token(), "a"+w.token(), "$x") }
func (w world) topic() string {
	t := w.level()
	for range w.IntN(3) {
		t += "/" + w.level()
	}
	return t + pick(w, "", "", "/#")
}

func (w world) key() string {
	t := ""
	for range 1 + w.IntN(4) {
		t += pick(w, "a", "b", "/", "*", "?", "[a-b]", w.token(), "ü")
	}
	return strings.ReplaceAll(t, "**", "*") + pick(w, "", "", "", "", "[")
}

func (w world) rule() (r rule) {
	r.Users, r.IDs = w.some(1, w.name), w.some(1, w.name)
	for range w.IntN(2) {
		r.Sets = append(r.Sets, map[string]string{pick(w, "x", "y"): w.name()})
	}
	for range w.IntN(3) {
		b := broker{Method: pick(w, "Connect", "Publish", "Subscribe"), ClientIDs: w.some(1, w.key)}
		if b.Method != "Connect" {
			b.Topics = append(w.some(2, w.topic), w.topic())
		}
		r.Broker = append(r.Broker, b)
	}
	for range w.IntN(3) {
		r.Store = append(r.Store, broker{Method: pick(w, "Read", "Write", "ReadWrite"), KeyType: pick(w, "Pattern", "String"), Topics: append(w.some(2, w.key), w.key())})
	}
	return r
}

func list(texts []string) string {
	quoted := []string{}
	for _, t := range texts {
		quoted = append(quoted, fmt.Sprintf("%q", t))
	}
	return "[" + strings.Join(quoted, ",") + "]"
}

func (r rule) String() string {
	sets, brokers, stores := []string{}, []string{}, []string{}
	for _, s := range r.Sets {
		for n, v := range s {
			sets = append(sets, fmt.Sprintf("{%s: %q}", n, v))
		}
	}
	for _, b := range r.Broker {
		brokers = append(brokers, fmt.Sprintf("{method: %s, clientIds: %s, topics: %s}", b.Method, list(b.ClientIDs), list(b.Topics)))
	}
	for _, b := range r.Store {
		stores = append(stores, fmt.Sprintf("{method: %s, keyType: %s, keys: %s}", b.Method, b.KeyType, list(b.Topics)))
	}
	return fmt.Sprintf("      - {principals: {usernames: %s, clientIds: %s, attributes: [%s]}, brokerResources: [%s], stateStoreResources: [%s]}\n",
		list(r.Users), list(r.IDs), strings.Join(sets, ","), strings.Join(brokers, ","), strings.Join(stores, ","))
}

func (w world) principal() policy.Principal {
	p := policy.Principal{ClientID: w.name(), Username: pick(w, "", w.name())}
	if w.IntN(2) == 0 {
		p.Attributes = map[string]string{pick(w, "x", "y"): w.name()}
	}
	return p
}

func (w world) action() policy.Action {
	clean := strings.NewReplacer("{principal.username}", "a", "{principal.clientId}", "b", "{principal.attributes.x}", "a*")
	a := policy.Action{Method: pick(w, policy.Connect, policy.Publish, policy.Subscribe, policy.Read, policy.Write)}
	switch a.Method {
	case policy.Publish:
		a.On = strings.NewReplacer("+", "a", "#", "b").Replace(clean.Replace(w.topic()))
	case policy.Subscribe:
		a.On = clean.Replace(w.topic())
	case policy.Read, policy.Write:
		a.On = clean.Replace(w.key())
	}
	return a
}

func (w world) rules() (all []rule, text string) {
	for range 1 + w.IntN(4) {
		all = append(all, w.rule())
		text += all[len(all)-1].String()
	}
	return all, resource(text)
}

// The judge is a slow reference for the engine in a few lines.

func fill(text string, p policy.Principal) (parts []string, ok bool) {
	for i, piece := range strings.Split(strings.NewReplacer("{principal.username}", "\x00U\x00", "{principal.clientId}", "\x00C\x00", "{principal.attributes.x}", "\x00X\x00").Replace(text), "\x00") {
		if i%2 == 1 {
			piece = map[string]string{"U": p.Username, "C": p.ClientID, "X": p.Attributes["x"]}[piece]
			ok = ok || piece == ""
		}
		parts = append(parts, piece)
	}
	return parts, !ok
}

func matchKey(parts []string, literal bool, text string) bool {
	if len(parts) == 0 || len(parts) == 1 && parts[0] == "" {
		return text == ""
	}
	head, rest := parts[0], slices.Clone(parts)
	runes := []rune(text)
	one := func(n int) bool {
		rest[0] = head[n:]
		return len(runes) > 0 && matchKey(rest, literal, string(runes[1:]))
	}
	switch {
	case head == "":
		return matchKey(parts[1:], !literal, text)
	case literal:
		return strings.HasPrefix(text, head) && matchKey(parts[1:], false, text[len(head):])
	case head[0] == '*':
		rest[0] = head[1:]
		return matchKey(rest, false, text) || len(runes) > 0 && matchKey(parts, false, string(runes[1:]))
	case head[0] == '?':
		return one(1)
	case strings.HasPrefix(head, "[a-b]"):
		return (strings.HasPrefix(text, "a") || strings.HasPrefix(text, "b")) && one(5)
	}
	rest[0] = head[1:]
	return strings.HasPrefix(text, head[:1]) && matchKey(rest, false, text[1:])
}

func matchTopic(rule, on []string, p policy.Principal, first bool) bool {
	if len(rule) == 0 {
		return len(on) == 0
	}
	hidden := first && strings.HasPrefix(on[0], "$")
	if rule[0] == "#" {
		return !hidden
	}
	if len(on) == 0 {
		return false
	}
	if on[0] == "#" {
		return first && rule[0] == "+" && len(rule) == 2 && rule[1] == "#"
	}
	parts, ok := fill(rule[0], p)
	value := strings.Join(parts, "")
	covers := ok && !strings.Contains(value, "/") && value == on[0] && on[0] != "+" && (len(parts) == 1 || parts[0]+parts[2] == "")
	return (rule[0] == "+" && !hidden || covers) && matchTopic(rule[1:], on[1:], p, false)
}

func judge(rules []rule, p policy.Principal, a policy.Action) bool {
	key := func(list []string, on string) bool {
		return slices.ContainsFunc(list, func(k string) bool {
			parts, ok := fill(k, p)
			return ok && !strings.HasSuffix(k, "[") && matchKey(parts, false, on)
		})
	}
	for _, r := range rules {
		named := p.Username != "" && slices.Contains(r.Users, p.Username) || slices.Contains(r.IDs, p.ClientID)
		for _, s := range r.Sets {
			for n, v := range s {
				named = named || p.Attributes[n] == v
			}
		}
		for _, b := range r.Broker {
			allowed := b.Method == a.Method.String() && (len(b.ClientIDs) == 0 || key(b.ClientIDs, p.ClientID))
			if named && allowed && (a.Method == policy.Connect || slices.ContainsFunc(b.Topics, func(t string) bool {
				bad := strings.Contains(t, "a{") // a placeholder that is not a whole level
				return !bad && matchTopic(strings.Split(t, "/"), strings.Split(a.On, "/"), p, true)
			})) {
				return true
			}
		}
		for _, b := range r.Store {
			does := a.Method == policy.Read && b.Method != "Write" || a.Method == policy.Write && b.Method != "Read"
			if named && does && (b.KeyType == "String" && slices.Contains(b.Topics, a.On) || b.KeyType == "Pattern" && key(b.Topics, a.On)) {
				return true
			}
		}
	}
	return false
}

// FuzzDecide: the engine agrees with the judge, and a decision predicts what a client experiences and has a
// reason.
func FuzzDecide(f *testing.F) {
	for i := range uint64(500) {
		f.Add(i)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		w := world{rand.New(rand.NewPCG(seed, 0))}
		rules, text := w.rules()
		p := parse(t, text)
		p.Check(t.Context(), policy.Info)
		for range 50 {
			who, a := w.principal(), w.action()
			want := judge(rules, who, a)
			d := p.Decide(who, a)
			if d.Allowed != want || (p.For(who).Allowed(a) != nil) != want || (p.Lookups().Of(who).Allowed(a) != nil) != want || (d.Lacks == "") != want || want && d.Entry == nil {
				t.Fatalf("%+v %s %q: %+v, the judge says %t\n%s", who, a.Method, a.On, d, want, text)
			}
		}
	})
}

// FuzzCompare: a policy does not differ from itself; what is lost in one direction is gained in the other;
// and both policies decide each change as stated.
func FuzzCompare(f *testing.F) {
	for i := range uint64(200) {
		f.Add(i)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		w := world{rand.New(rand.NewPCG(seed, 1))}
		_, text := w.rules()
		_, other := w.rules()
		a, b := parse(t, text), parse(t, other)
		if same := policy.Compare(t.Context(), a, parse(t, text), nil); len(same) > 0 {
			t.Fatalf("%+v\n%s", same, text)
		}
		there, back := policy.Compare(t.Context(), a, b, nil), policy.Compare(t.Context(), b, a, nil)
		if len(there) != len(back) {
			t.Fatalf("%d changes there, %d back\n%s%s", len(there), len(back), text, other)
		}
		for _, c := range there {
			if a.Decide(c.Principal, c.Action).Allowed != c.Lost || b.Decide(c.Principal, c.Action).Allowed == c.Lost {
				t.Fatalf("%+v\n%s%s", c, text, other)
			}
		}
	})
}

func FuzzParse(f *testing.F) {
	f.Add(resource("      - {principals: {usernames: [a]}, brokerResources: [{method: Connect}]}\n"))
	f.Add("[{\"principals\": {}}]")
	f.Add("a: &a\n  - *a\nrules: *a")
	f.Fuzz(func(t *testing.T, text string) {
		p, err := policy.Parse("f", []byte(text))
		if err != nil {
			return
		}
		who := policy.Principal{ClientID: "c", Username: "u", Attributes: map[string]string{"x": "y"}}
		for _, finding := range p.Check(t.Context(), policy.Info) {
			if finding.Line < 1 || finding.Message == "" {
				t.Errorf("%+v", finding)
			}
		}
		for _, c := range policy.Compare(t.Context(), p, &policy.Policy{}, nil) {
			if !c.Lost {
				t.Errorf("%+v is new in a policy without rules", c)
			}
		}
		p.Decide(who, policy.Action{Method: policy.Read, On: "k"})
	})
}

func manyRules(n int) []byte {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "      - principals: {usernames: [u%d], attributes: [{site: s%d}]}\n        brokerResources:\n          - {method: Connect, clientIds: [\"{principal.username}*\", \"{principal.attributes.site}*\"]}\n"+
			"          - {method: Publish, topics: [statestore/v1/FA9AE35F-2F64-47CD-9BFF-08E2B32A0FE8/command/invoke]}\n          - {method: Subscribe, topics: [\"clients/{principal.clientId}/#\"]}\n"+
			"        stateStoreResources:\n          - {method: ReadWrite, keys: [\"k%d/*\"]}\n", i, i, i)
	}
	return []byte(resource(b.String()))
}

// BenchmarkCheck checks a thousand rules.
func BenchmarkCheck(b *testing.B) {
	text := manyRules(1000)
	for b.Loop() {
		p, err := policy.Parse("f", text)
		if err != nil {
			b.Fatal(err)
		}
		if n := len(p.Check(b.Context(), policy.Info)); n != 2000 {
			b.Fatal(n)
		}
	}
}

// BenchmarkAllowed decides about a key and about a login.
func BenchmarkAllowed(b *testing.B) {
	p := parse(b, string(manyRules(1000)))
	who := policy.Principal{ClientID: "u7-1", Username: "u7"}
	b.Run("key", func(b *testing.B) {
		c := p.For(who)
		for b.Loop() {
			if c.Allowed(policy.Action{Method: policy.Read, On: "k7/colors/red"}) == nil {
				b.Fatal()
			}
		}
	})
	b.Run("login", func(b *testing.B) {
		for b.Loop() {
			p.For(who)
		}
	})
}
