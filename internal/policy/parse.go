package policy

import (
	"fmt"
	"slices"
	"strings"
)

// A Severity says how bad a finding is.
type Severity int

// The severities, in increasing order.
const (
	Info    Severity = iota // works, but not for everybody
	Warning                 // works differently from what it seems
	Error                   // does not work
)

var severityNames = []string{"info", "warning", "error"}

func (s Severity) String() string { return severityNames[s] }

// ParseSeverity parses info, warning or error.
func ParseSeverity(name string) (s Severity, ok bool) {
	i := slices.Index(severityNames, name)
	return Severity(max(i, 0)), i >= 0
}

// A Finding is a mistake in a policy.
type Finding struct {
	File          string
	Line          int
	Severity      Severity
	Message, Hint string
}

const (
	group      = "mqttbroker.iotoperations.azure.com/"
	kindOf     = "BrokerAuthorization"
	form       = "expected a BrokerAuthorization, as kubectl or az print it, or a list of rules, as the portal shows it"
	methodHint = "Connect, Publish or Subscribe"
)

// Parse reads the authorizations of a file: YAML or JSON of the custom resource, of kubectl, of az and
// the REST API, of an ARM template, or the portal's list of rules. It ignores resources of other kinds. It
// is an error if the file has no authorization, such as an empty list of kubectl. Mistakes that leave the rest readable are in Findings.
func Parse(file string, source []byte) (*Policy, error) {
	docs, err := documents(file, source)
	if err != nil {
		return nil, err
	}
	r := reader{file: file, policy: &Policy{}}
	for _, d := range docs {
		r.resource(d, false)
	}
	if len(r.policy.Resources) == 0 {
		return nil, &SyntaxError{file, form, 1}
	}
	r.policy.share()
	return r.policy, nil
}

// Merge returns the rules of several policies as one.
func Merge(all ...*Policy) *Policy {
	to := &Policy{}
	for _, p := range all {
		for _, r := range p.Rules {
			if r.Resource >= 0 && len(to.Resources) > 0 {
				r.Resource += len(to.Resources)
			}
		}
		to.Rules, to.Resources, to.Findings = append(to.Rules, p.Rules...), append(to.Resources, p.Resources...), append(to.Findings, p.Findings...)
	}
	return to
}

type reader struct {
	file   string
	policy *Policy
}

func (r *reader) find(line int, severity Severity, hint, message string, args ...any) {
	r.policy.Findings = append(r.policy.Findings, Finding{r.file, line, severity, fmt.Sprintf(message, args...), hint})
}

// resource reads a document, or an element of a list of resources.
func (r *reader) resource(n *node, listed bool) {
	if n.kind == sequence {
		if slices.ContainsFunc(n.items, isRule) || len(n.items) == 0 && !listed {
			r.start(n, nil)
			r.rules(n)
			return
		}
		for _, item := range n.items {
			r.resource(item, true)
		}
		return
	}
	name, version, kindName := n.get("metadata", "name"), n.get("apiVersion"), n.get("kind")
	if name == nil {
		name = n.get("name")
	}
	var policies *node
	switch {
	case n.get("items") != nil:
		r.resource(n.get("items"), true)
	case n.get("value") != nil && n.get("value").kind == sequence:
		r.resource(n.get("value"), true)
	case n.get("resources") != nil && n.get("resources").kind != text:
		for _, item := range n.get("resources").all() {
			if t := item.get("type"); t != nil && strings.HasSuffix(strings.ToLower(t.text), "/authorizations") {
				r.resource(item, true)
			}
		}
	case kindName != nil && kindName.text != kindOf && n.get("spec", "authorizationPolicies") == nil:
		// another resource of the file
	case n.get("spec") != nil:
		switch {
		case kindName == nil:
			r.find(n.line, Error, "kind: "+kindOf, "no kind: kubectl does not accept the resource")
		case kindName.text != kindOf:
			r.find(kindName.line, Error, "kind: "+kindOf, "kind %q with authorizationPolicies", kindName.text)
		}
		if version == nil {
			r.find(n.line, Error, "apiVersion: "+group+"v1", "no apiVersion: kubectl does not accept the resource")
		} else if !strings.HasPrefix(version.text, group) {
			r.find(version.line, Error, "apiVersion: "+group+"v1", "apiVersion %q: not the group of the MQTT broker of Azure IoT Operations", version.text)
		}
		policies = r.fields(n.get("spec"), "spec", "authorizationPolicies")
	case n.get("properties") != nil:
		policies = r.fields(n.get("properties"), "properties", "authorizationPolicies", "provisioningState", "healthState")
	case n.get("authorizationPolicies") != nil:
		policies = n.get("authorizationPolicies")
	case n.get("rules") != nil:
		policies = n
	case kindName != nil:
		r.find(n.line, Error, "spec: with authorizationPolicies: and rules:", "no spec")
		r.start(n, name)
	case listed:
		r.find(n.line, Error, "", "%s", form)
	}
	if policies == nil {
		if kindName != nil && kindName.text == kindOf && n.get("spec") != nil {
			r.start(n, name)
			r.find(n.get("spec").line, Error, "authorizationPolicies: with rules:", "no authorizationPolicies: every client is denied everything")
		}
		return
	}
	r.start(n, name)
	rules := r.fields(policies, "authorizationPolicies", "rules", "cache", "enableCache")
	if cache := policies.get("cache"); cache != nil && cache.text != "Enabled" && cache.text != "Disabled" {
		r.find(cache.line, Error, "cache: Enabled", "cache %q: expected Enabled or Disabled", cache.text)
	}
	if old := policies.get("enableCache"); old != nil {
		r.find(old.line, Warning, "cache: Enabled", "enableCache is the name of an old preview: the broker ignores it")
	}
	if rules == nil {
		r.find(policies.line, Error, "", "no rules: every client is denied everything")
		return
	}
	r.rules(rules)
}

func isRule(n *node) bool {
	return n.get("principals") != nil || n.get("brokerResources") != nil || n.get("stateStoreResources") != nil
}

func (r *reader) start(n *node, name *node) {
	res := Resource{File: r.file, Line: n.line}
	if name != nil {
		res.Name = name.text
	}
	r.policy.Resources = append(r.policy.Resources, res)
}

// all returns the elements of a list, or the values of a mapping.
func (n *node) all() []*node {
	if n.kind != mapping {
		return n.items
	}
	all := make([]*node, len(n.members))
	for i, m := range n.members {
		all[i] = m.value
	}
	return all
}

// fields reports members with other names than the expected ones, and returns the value of the first.
func (r *reader) fields(n *node, what string, expected ...string) *node {
	if n.kind != mapping {
		r.find(n.line, Error, "", "%s: expected fields such as %s:, found %s", what, expected[0], n.what())
		return nil
	}
	for _, m := range n.members {
		if slices.Contains(expected, m.name) {
			continue
		}
		hint := "expected " + strings.Join(expected, ", ")
		for _, e := range expected {
			if strings.EqualFold(e, m.name) || strings.EqualFold(strings.TrimSuffix(e, "s"), m.name) || strings.EqualFold(strings.TrimSuffix(m.name, "s"), e) {
				hint = "write " + e
			}
		}
		if m.name == "listenerRef" {
			hint = "set authorizationRef in the ports of the BrokerListener"
		}
		r.find(m.line, Error, hint, "unknown field %s in %s: the broker ignores it, or refuses the resource", m.name, what)
	}
	return n.get(expected[0])
}

func (n *node) what() string {
	return []string{"nothing", fmt.Sprintf("the text %.40q", n.text), n.text, "fields", "a list"}[n.kind]
}

// list calls do for each element of the list n, which may be nil.
func (r *reader) list(n *node, what string, do func(i int, n *node)) {
	switch {
	case n == nil:
	case n.kind != sequence:
		r.find(n.line, Error, "begin each element with a hyphen, or write ["+n.text+"]", "%s: expected a list, found %s", what, n.what())
	default:
		for i, item := range n.items {
			do(i, item)
		}
	}
}

// texts returns the elements of a list of strings.
func (r *reader) texts(n *node, what string) (all []string, lines []int) {
	r.list(n, what, func(_ int, n *node) {
		if s, ok := r.text(n, what); ok {
			all, lines = append(all, s), append(lines, n.line)
		}
	})
	return all, lines
}

func (r *reader) text(n *node, what string) (s string, ok bool) {
	switch {
	case n.kind == literal:
		r.find(n.line, Error, fmt.Sprintf("write %q", n.text), "%s: %s is not text without quotes", what, n.text)
	case n.kind != text:
		r.find(n.line, Error, "", "%s: expected text, found %s", what, n.what())
		return "", false
	case n.text == "":
		r.find(n.line, Error, "", "%s: an empty text, which matches nothing", what)
	}
	return n.text, true
}

func (r *reader) rules(n *node) {
	if n.kind != sequence {
		r.find(n.line, Error, "", "rules: expected a list, found %s", n.what())
		return
	}
	if len(n.items) == 0 {
		r.find(n.line, Error, "", "no rules: every client is denied everything")
	}
	for i, item := range n.items {
		name := fmt.Sprintf("rules[%d]", i)
		rule := &Rule{Resource: len(r.policy.Resources) - 1, Line: item.line, Name: name}
		r.policy.Rules = append(r.policy.Rules, rule)
		who := r.fields(item, name, "principals", "brokerResources", "stateStoreResources")
		if who != nil {
			r.fields(who, "principals", "usernames", "clientIds", "attributes")
			rule.Usernames, _ = r.texts(who.get("usernames"), "usernames")
			rule.ClientIDs, _ = r.texts(who.get("clientIds"), "clientIds")
			r.list(who.get("attributes"), "attributes", func(_ int, n *node) { r.attributes(rule, n) })
		}
		r.list(item.get("brokerResources"), "brokerResources", func(i int, n *node) {
			r.broker(rule, fmt.Sprintf("brokerResources[%d]", i), n)
		})
		r.list(item.get("stateStoreResources"), "stateStoreResources", func(i int, n *node) {
			r.store(rule, fmt.Sprintf("stateStoreResources[%d]", i), n)
		})
	}
}

func (r *reader) attributes(rule *Rule, n *node) {
	if n.kind != mapping {
		r.find(n.line, Error, "write - NAME: VALUE", "attributes: expected NAME: VALUE, found %s", n.what())
		return
	}
	set := make(map[string]string)
	for _, m := range n.members {
		if s, ok := r.text(m.value, "attribute "+m.name); ok {
			set[m.name] = s
		}
	}
	if len(set) == 0 {
		r.find(n.line, Warning, "", "attributes: an empty set, which is for nobody (assumed)")
	}
	rule.Attributes = append(rule.Attributes, set)
}

// method returns the method of an entry, which must be one of the given ones.
func (r *reader) method(n *node, path, expected string, allowed ...Method) (m Method) {
	at := n.get("method")
	if at == nil {
		r.find(n.line, Error, "method: "+expected, "%s has no method", path)
		return 0
	}
	m, ok := ParseMethod(at.text)
	if !ok || !slices.Contains(allowed, m) {
		r.find(at.line, Error, "", "method %.40q in %s: expected %s", at.text, path, expected)
		return 0
	}
	r.spelling(at, m.String())
	return m
}

// spelling reports a name that differs from the API's only in case.
func (r *reader) spelling(n *node, want string) {
	if misspelt(n, want) {
		r.find(n.line, Warning, "write "+want, "%q: the API knows %s; taken as that (assumed)", n.text, want)
	}
}

func misspelt(n *node, want string) bool { return n != nil && n.text != want }

func (r *reader) broker(rule *Rule, path string, n *node) {
	r.fields(n, path, "method", "topics", "clientIds")
	if n.kind != mapping {
		return
	}
	method := r.method(n, path, methodHint, Connect, Publish, Subscribe)
	ids, idLines := r.texts(n.get("clientIds"), "clientIds")
	for i, id := range ids {
		if parts, why := parseParts(id); why != "" {
			r.find(idLines[i], Error, "", "client id %q: %s", id, why)
		} else if !parses(parts) {
			r.find(idLines[i], Error, "", "client id %q: [ without ], or **", id)
		}
	}
	parsed := newIDs(ids)
	topics, lines := r.texts(n.get("topics"), "topics")
	add := func(line int, topic string) *Entry {
		e := &Entry{Rule: rule, Line: line, Path: path, Methods: method, ClientIDs: ids, ids: parsed, Text: topic, misspelt: misspelt(n.get("method"), method.String())}
		rule.Entries = append(rule.Entries, e)
		return e
	}
	switch {
	case method == 0:
	case method == Connect:
		if len(topics) > 0 {
			r.find(lines[0], Warning, "remove the topics, or use Publish or Subscribe", "Connect has topics: they have no meaning")
		}
		add(n.line, "")
	case len(topics) == 0 && (n.get("topics") == nil || n.get("topics").kind == sequence):
		r.find(n.line, Error, "add topics:", "%s without topics allows nothing", method)
	default:
		if len(ids) > 0 {
			r.find(n.get("clientIds").line, Warning, "principals.clientIds, or clientIds with Connect", "clientIds with %s: only Connect is documented; taken as a further condition (assumed)", method)
		}
		for i, topic := range topics {
			e := add(lines[i], topic)
			if e.setTopic(); e.never != "" && topic != "" {
				r.find(e.Line, Error, topicHint(topic), "topic %q matches nothing: %s", topic, e.never)
			}
		}
	}
}

// topicHint returns a topic in which tokens are whole levels, or "".
func topicHint(topic string) string {
	const end = "}"
	before, rest, found := strings.Cut(topic, tokenStart)
	token, after, closed := strings.Cut(rest, end)
	if !found || !closed || !validToken(token) {
		return ""
	}
	if before != "" && !strings.HasSuffix(before, "/") {
		before = strings.TrimRight(before, "-_.:") + "/"
	}
	if after != "" && !strings.HasPrefix(after, "/") {
		after = "/" + strings.TrimLeft(after, "-_.:")
	}
	if strings.Contains(after, tokenStart) {
		return "put each token into a level of its own"
	}
	return "such as " + before + tokenStart + token + end + after
}

func (r *reader) store(rule *Rule, path string, n *node) {
	r.fields(n, path, "method", "keyType", "keys")
	if n.kind != mapping {
		return
	}
	method := r.method(n, path, "Read, Write or ReadWrite", Read, Write, Read|Write)
	keyType := Pattern
	if at := n.get("keyType"); at != nil {
		types := []KeyType{Pattern, String, Binary}
		i := slices.IndexFunc(types, func(t KeyType) bool { return strings.EqualFold(string(t), at.text) })
		if i < 0 {
			r.find(at.line, Error, "", "keyType %.40q: expected Pattern, String or Binary", at.text)
			return
		}
		keyType = types[i]
		r.spelling(at, string(keyType))
	}
	keys, lines := r.texts(n.get("keys"), "keys")
	if len(keys) == 0 && (n.get("keys") == nil || n.get("keys").kind == sequence) {
		r.find(n.line, Error, "add keys:", "%s has no keys: it allows nothing", path)
	}
	if method == 0 {
		return
	}
	for i, key := range keys {
		e := &Entry{Rule: rule, Line: lines[i], Path: path, Methods: method, Type: keyType, Text: key, misspelt: misspelt(n.get("method"), method.String()) || misspelt(n.get("keyType"), string(keyType))}
		rule.Entries = append(rule.Entries, e)
		e.setKey()
		switch {
		case e.never != "" && key != "":
			r.find(e.Line, Error, keyHint(e), "%s key %q matches nothing: %s", keyType, key, e.never)
		case keyType == Binary && digits(e.exact):
			r.find(e.Line, Warning, "encode the key's own bytes: printf %s KEY | base64", "Binary key %q is the text %q, which looks like the codes of a key's bytes", key, e.exact)
		case keyType == String && strings.Contains(key, tokenStart):
			r.find(e.Line, Warning, "keyType: Pattern", "String key %q: tokens are replaced only in a Pattern", key)
		}
	}
}

func keyHint(e *Entry) string {
	if e.Type == Pattern && strings.ContainsAny(e.Text, "{}") {
		return "keyType: String takes braces literally"
	}
	return ""
}

// digits reports whether a text is nothing but decimal numbers.
func digits(text string) bool {
	return text != "" && strings.Trim(text, "0123456789 ,\n") == ""
}
