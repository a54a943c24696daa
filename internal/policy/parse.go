package policy

import (
	"fmt"
	"slices"
	"strings"

	"github.com/sscli/sscli/internal/yamltext"
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
func (r *reader) resource(n *yamltext.Node, listed bool) {
	if items, ok := yamltext.Items(n); ok {
		if slices.ContainsFunc(items, isRule) || len(items) == 0 && !listed {
			r.start(n, nil)
			r.rules(n)
			return
		}
		for _, item := range items {
			r.resource(item, true)
		}
		return
	}
	name, version, kindName := get(n, "metadata", "name"), get(n, "apiVersion"), get(n, "kind")
	if name == nil {
		name = get(n, "name")
	}
	var policies *yamltext.Node
	switch {
	case get(n, "items") != nil:
		r.resource(get(n, "items"), true)
	case get(n, "value") != nil && nodeKind(get(n, "value")) == sequence:
		r.resource(get(n, "value"), true)
	case get(n, "resources") != nil && nodeKind(get(n, "resources")) != text:
		for _, item := range elements(get(n, "resources")) {
			if t := get(item, "type"); t != nil && strings.HasSuffix(strings.ToLower(t.Value), "/authorizations") {
				r.resource(item, true)
			}
		}
	case kindName != nil && kindName.Value != kindOf && get(n, "spec", "authorizationPolicies") == nil:
		// another resource of the file
	case get(n, "spec") != nil:
		switch {
		case kindName == nil:
			r.find(n.Line, Error, "kind: "+kindOf, "no kind: kubectl does not accept the resource")
		case kindName.Value != kindOf:
			r.find(kindName.Line, Error, "kind: "+kindOf, "kind %q with authorizationPolicies", kindName.Value)
		}
		if version == nil {
			r.find(n.Line, Error, "apiVersion: "+group+"v1", "no apiVersion: kubectl does not accept the resource")
		} else if !strings.HasPrefix(version.Value, group) {
			r.find(version.Line, Error, "apiVersion: "+group+"v1", "apiVersion %q: not the group of the MQTT broker of Azure IoT Operations", version.Value)
		}
		policies = r.fields(get(n, "spec"), "spec", "authorizationPolicies")
	case get(n, "properties") != nil:
		policies = r.fields(get(n, "properties"), "properties", "authorizationPolicies", "provisioningState", "healthState")
	case get(n, "authorizationPolicies") != nil:
		policies = get(n, "authorizationPolicies")
	case get(n, "rules") != nil:
		policies = n
	case kindName != nil:
		r.find(n.Line, Error, "spec: with authorizationPolicies: and rules:", "no spec")
		r.start(n, name)
	case listed:
		r.find(n.Line, Error, "", "%s", form)
	}
	if policies == nil {
		if kindName != nil && kindName.Value == kindOf && get(n, "spec") != nil {
			r.start(n, name)
			r.find(get(n, "spec").Line, Error, "authorizationPolicies: with rules:", "no authorizationPolicies: every client is denied everything")
		}
		return
	}
	r.start(n, name)
	rules := r.fields(policies, "authorizationPolicies", "rules", "cache", "enableCache")
	if cache := get(policies, "cache"); cache != nil && cache.Value != "Enabled" && cache.Value != "Disabled" {
		r.find(cache.Line, Error, "cache: Enabled", "cache %q: expected Enabled or Disabled", cache.Value)
	}
	if old := get(policies, "enableCache"); old != nil {
		r.find(old.Line, Warning, "cache: Enabled", "enableCache is the name of an old preview: the broker ignores it")
	}
	if rules == nil {
		r.find(policies.Line, Error, "", "no rules: every client is denied everything")
		return
	}
	r.rules(rules)
}

func isRule(n *yamltext.Node) bool {
	return get(n, "principals") != nil || get(n, "brokerResources") != nil || get(n, "stateStoreResources") != nil
}

func (r *reader) start(n, name *yamltext.Node) {
	res := Resource{File: r.file, Line: n.Line}
	if name != nil {
		res.Name = name.Value
	}
	r.policy.Resources = append(r.policy.Resources, res)
}

// elements returns the elements of a list, or the values of a mapping.
func elements(n *yamltext.Node) []*yamltext.Node {
	all, _ := yamltext.Items(n)
	for _, value := range yamltext.Members(n) {
		all = append(all, value)
	}
	return all
}

// fields reports members with other names than the expected ones, and returns the value of the first.
func (r *reader) fields(n *yamltext.Node, what string, expected ...string) *yamltext.Node {
	if nodeKind(n) != mapping {
		r.find(n.Line, Error, "", "%s: expected fields such as %s:, found %s", what, expected[0], found(n))
		return nil
	}
	for key := range yamltext.Members(n) {
		name := key.Value
		if slices.Contains(expected, name) {
			continue
		}
		hint := "expected " + strings.Join(expected, ", ")
		for _, e := range expected {
			if strings.EqualFold(e, name) || strings.EqualFold(strings.TrimSuffix(e, "s"), name) || strings.EqualFold(strings.TrimSuffix(name, "s"), e) {
				hint = "write " + e
			}
		}
		if name == "listenerRef" {
			hint = "set authorizationRef in the ports of the BrokerListener"
		}
		r.find(key.Line, Error, hint, "unknown field %s in %s: the broker ignores it, or refuses the resource", name, what)
	}
	return get(n, expected[0])
}

// found describes a value for a message.
func found(n *yamltext.Node) string {
	return []string{"nothing", fmt.Sprintf("the text %.40q", n.Value), n.Value, "fields", "a list"}[nodeKind(n)]
}

// list calls do for each element of the list n, which may be nil.
func (r *reader) list(n *yamltext.Node, what string, do func(i int, n *yamltext.Node)) {
	items, ok := yamltext.Items(n)
	switch {
	case n == nil:
	case !ok:
		r.find(n.Line, Error, "begin each element with a hyphen, or write ["+n.Value+"]", "%s: expected a list, found %s", what, found(n))
	default:
		for i, item := range items {
			do(i, item)
		}
	}
}

// texts returns the elements of a list of strings.
func (r *reader) texts(n *yamltext.Node, what string) (all []string, lines []int) {
	r.list(n, what, func(_ int, n *yamltext.Node) {
		if s, ok := r.text(n, what); ok {
			all, lines = append(all, s), append(lines, n.Line)
		}
	})
	return all, lines
}

func (r *reader) text(n *yamltext.Node, what string) (s string, ok bool) {
	switch {
	case nodeKind(n) == literal:
		r.find(n.Line, Error, fmt.Sprintf("write %q", n.Value), "%s: %s is not text without quotes", what, n.Value)
	case nodeKind(n) != text:
		r.find(n.Line, Error, "", "%s: expected text, found %s", what, found(n))
		return "", false
	case n.Value == "":
		r.find(n.Line, Error, "", "%s: an empty text, which matches nothing", what)
	}
	return n.Value, true
}

func (r *reader) rules(n *yamltext.Node) {
	items, ok := yamltext.Items(n)
	if !ok {
		r.find(n.Line, Error, "", "rules: expected a list, found %s", found(n))
		return
	}
	if len(items) == 0 {
		r.find(n.Line, Error, "", "no rules: every client is denied everything")
	}
	for i, item := range items {
		name := fmt.Sprintf("rules[%d]", i)
		rule := &Rule{Resource: len(r.policy.Resources) - 1, Line: item.Line, Name: name}
		r.policy.Rules = append(r.policy.Rules, rule)
		who := r.fields(item, name, "principals", "brokerResources", "stateStoreResources")
		if who != nil {
			r.fields(who, "principals", "usernames", "clientIds", "attributes")
			rule.Usernames, _ = r.texts(get(who, "usernames"), "usernames")
			rule.ClientIDs, _ = r.texts(get(who, "clientIds"), "clientIds")
			r.list(get(who, "attributes"), "attributes", func(_ int, n *yamltext.Node) { r.attributes(rule, n) })
		}
		r.list(get(item, "brokerResources"), "brokerResources", func(i int, n *yamltext.Node) {
			r.broker(rule, fmt.Sprintf("brokerResources[%d]", i), n)
		})
		r.list(get(item, "stateStoreResources"), "stateStoreResources", func(i int, n *yamltext.Node) {
			r.store(rule, fmt.Sprintf("stateStoreResources[%d]", i), n)
		})
	}
}

func (r *reader) attributes(rule *Rule, n *yamltext.Node) {
	if nodeKind(n) != mapping {
		r.find(n.Line, Error, "write - NAME: VALUE", "attributes: expected NAME: VALUE, found %s", found(n))
		return
	}
	set := make(map[string]string)
	for key, value := range yamltext.Members(n) {
		if s, ok := r.text(value, "attribute "+key.Value); ok {
			set[key.Value] = s
		}
	}
	if len(set) == 0 {
		r.find(n.Line, Warning, "", "attributes: an empty set, which is for nobody (assumed)")
	}
	rule.Attributes = append(rule.Attributes, set)
}

// method returns the method of an entry, which must be one of the given ones.
func (r *reader) method(n *yamltext.Node, path, expected string, allowed ...Method) (m Method) {
	at := get(n, "method")
	if at == nil {
		r.find(n.Line, Error, "method: "+expected, "%s has no method", path)
		return 0
	}
	m, ok := ParseMethod(at.Value)
	if !ok || !slices.Contains(allowed, m) {
		r.find(at.Line, Error, "", "method %.40q in %s: expected %s", at.Value, path, expected)
		return 0
	}
	r.spelling(at, m.String())
	return m
}

// spelling reports a name that differs from the API's only in case.
func (r *reader) spelling(n *yamltext.Node, want string) {
	if misspelt(n, want) {
		r.find(n.Line, Warning, "write "+want, "%q: the API knows %s; taken as that (assumed)", n.Value, want)
	}
}

func misspelt(n *yamltext.Node, want string) bool { return n != nil && n.Value != want }

func (r *reader) broker(rule *Rule, path string, n *yamltext.Node) {
	r.fields(n, path, "method", "topics", "clientIds")
	if nodeKind(n) != mapping {
		return
	}
	method := r.method(n, path, methodHint, Connect, Publish, Subscribe)
	ids, idLines := r.texts(get(n, "clientIds"), "clientIds")
	for i, id := range ids {
		if parts, why := parseParts(id); why != "" {
			r.find(idLines[i], Error, "", "client id %q: %s", id, why)
		} else if !parses(parts) {
			r.find(idLines[i], Error, "", "client id %q: [ without ], or **", id)
		}
	}
	parsed := newIDs(ids)
	topics, lines := r.texts(get(n, "topics"), "topics")
	add := func(line int, topic string) *Entry {
		e := &Entry{Rule: rule, Line: line, Path: path, Methods: method, ClientIDs: ids, ids: parsed, Text: topic, misspelt: misspelt(get(n, "method"), method.String())}
		rule.Entries = append(rule.Entries, e)
		return e
	}
	switch {
	case method == 0:
	case method == Connect:
		if len(topics) > 0 {
			r.find(lines[0], Warning, "remove the topics, or use Publish or Subscribe", "Connect has topics: they have no meaning")
		}
		add(n.Line, "")
	case len(topics) == 0 && (get(n, "topics") == nil || nodeKind(get(n, "topics")) == sequence):
		r.find(n.Line, Error, "add topics:", "%s without topics allows nothing", method)
	default:
		if len(ids) > 0 {
			r.find(get(n, "clientIds").Line, Warning, "principals.clientIds, or clientIds with Connect", "clientIds with %s: only Connect is documented; taken as a further condition (assumed)", method)
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

func (r *reader) store(rule *Rule, path string, n *yamltext.Node) {
	r.fields(n, path, "method", "keyType", "keys")
	if nodeKind(n) != mapping {
		return
	}
	method := r.method(n, path, "Read, Write or ReadWrite", Read, Write, Read|Write)
	keyType := Pattern
	if at := get(n, "keyType"); at != nil {
		types := []KeyType{Pattern, String, Binary}
		i := slices.IndexFunc(types, func(t KeyType) bool { return strings.EqualFold(string(t), at.Value) })
		if i < 0 {
			r.find(at.Line, Error, "", "keyType %.40q: expected Pattern, String or Binary", at.Value)
			return
		}
		keyType = types[i]
		r.spelling(at, string(keyType))
	}
	keys, lines := r.texts(get(n, "keys"), "keys")
	if len(keys) == 0 && (get(n, "keys") == nil || nodeKind(get(n, "keys")) == sequence) {
		r.find(n.Line, Error, "add keys:", "%s has no keys: it allows nothing", path)
	}
	if method == 0 {
		return
	}
	for i, key := range keys {
		e := &Entry{Rule: rule, Line: lines[i], Path: path, Methods: method, Type: keyType, Text: key, misspelt: misspelt(get(n, "method"), method.String()) || misspelt(get(n, "keyType"), string(keyType))}
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
