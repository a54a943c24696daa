package policy

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/sscli/sscli/internal/yamltext"
)

// The kinds of findings. docs/authorization.md has an example of each.
const (
	IDSyntax    = "SS001"
	idResource  = "SS002"
	idField     = "SS003"
	idValue     = "SS004"
	idBoolean   = "SS005"
	idMethod    = "SS006"
	idEmpty     = "SS007"
	idNever     = "SS008"
	idDialect   = "SS009"
	idBlank     = "SS010"
	idObsolete  = "SS011"
	idMeaning   = "SS012"
	idBinary    = "SS013"
	idConnect   = "SS014"
	idRequest   = "SS015"
	idReplies   = "SS016"
	idWatch     = "SS017"
	idKeys      = "SS018"
	idForms     = "SS019"
	idAttribute = "SS020"
	idCovers    = "SS021"
	idShared    = "SS022"
	idClaimed   = "SS023"
	idPrefix    = "SS024"
	idNotifier  = "SS025"
	idRedundant = "SS026"
	idLock      = "SS027"
	idUntried   = "SS028"
)

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
	return ParseUntil(context.Background(), file, source)
}

// ParseUntil is like Parse, and ends with the cause of ctx.
func ParseUntil(ctx context.Context, file string, source []byte) (*Policy, error) {
	docs, err := documents(ctx, file, source)
	if err != nil {
		return nil, err
	}
	r := reader{ctx: ctx, file: file, policy: &Policy{}}
	for _, d := range docs {
		r.resource(d, false)
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if len(r.policy.Resources) == 0 {
		why := form
		switch {
		case len(docs) == 0:
			why = "the file is empty: " + form
		case r.other != "":
			why = "a " + r.other + ": " + form
		}
		return nil, &SyntaxError{file, why, 1}
	}
	r.policy.ignored = map[string]ignores{file: readIgnores(source)}
	r.policy.link()
	return r.policy, nil
}

// Merge returns one policy with the rules of all. Of a single policy, it returns that one.
func Merge(all ...*Policy) *Policy {
	if len(all) == 1 {
		return all[0]
	}
	to := &Policy{ignored: make(map[string]ignores)}
	for _, p := range all {
		maps.Copy(to.ignored, p.ignored)
		for _, r := range p.Rules {
			if r.Resource >= 0 && len(to.Resources) > 0 {
				r.Resource += len(to.Resources)
			}
		}
		to.Rules, to.Resources, to.Findings = append(to.Rules, p.Rules...), append(to.Resources, p.Resources...), append(to.Findings, p.Findings...)
	}
	to.indexRules()
	return to
}

type reader struct {
	ctx    context.Context
	file   string
	policy *Policy
	other  string // the kind of another resource
}

func (r *reader) find(id string, line int, severity Severity, hint, message string, args ...any) {
	r.policy.Findings = append(r.policy.Findings, Finding{ID: id, File: r.file, Line: line, Severity: severity, Message: fmt.Sprintf(message, args...), Hint: hint})
}

// mended adds a mend to the last finding, if the entry in place of old may match something.
func (r *reader) mended(old, better *Entry, hint string) {
	if f := &r.policy.Findings[len(r.policy.Findings)-1]; better.never == "" {
		f.Mend, f.Hint = old.by(better), hint
	}
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
		r.other = cmp.Or(r.other, kindName.Value)
	case get(n, "spec") != nil:
		switch {
		case kindName == nil:
			r.find(idResource, n.Line, Error, "kind: "+kindOf, "no kind: kubectl does not accept the resource")
		case kindName.Value != kindOf:
			r.find(idResource, kindName.Line, Error, "kind: "+kindOf, "kind %q with authorizationPolicies", kindName.Value)
		}
		if version == nil {
			r.find(idResource, n.Line, Error, "apiVersion: "+group+"v1", "no apiVersion: kubectl does not accept the resource")
		} else if !strings.HasPrefix(version.Value, group) {
			r.find(idResource, version.Line, Error, "apiVersion: "+group+"v1", "apiVersion %q: not the group of the MQTT broker of Azure IoT Operations", version.Value)
		}
		policies = r.fields(get(n, "spec"), "spec", "authorizationPolicies")
	case get(n, "properties") != nil:
		policies = r.fields(get(n, "properties"), "properties", "authorizationPolicies", "provisioningState", "healthState")
	case get(n, "authorizationPolicies") != nil:
		policies = get(n, "authorizationPolicies")
	case get(n, "rules") != nil:
		policies = n
	case kindName != nil:
		r.find(idResource, n.Line, Error, "spec: with authorizationPolicies: and rules:", "no spec")
		r.start(n, name)
	case listed:
		r.find(idResource, n.Line, Error, "", "%s", form)
	}
	if policies == nil {
		if kindName != nil && kindName.Value == kindOf && get(n, "spec") != nil {
			r.start(n, name)
			r.find(idResource, get(n, "spec").Line, Error, "authorizationPolicies: with rules:", "no authorizationPolicies: every client is denied everything")
		}
		return
	}
	r.start(n, name)
	rules := r.fields(policies, "authorizationPolicies", "rules", "cache", "enableCache")
	if cache := get(policies, "cache"); cache != nil && cache.Value != "Enabled" && cache.Value != "Disabled" {
		r.find(idResource, cache.Line, Error, "cache: Enabled", "cache %q: expected Enabled or Disabled", cache.Value)
	}
	if old := get(policies, "enableCache"); old != nil {
		r.find(idResource, old.Line, Warning, "cache: Enabled", "enableCache is the name of an old preview: the broker ignores it")
	}
	if rules == nil {
		r.find(idEmpty, policies.Line, Error, "", "no rules: every client is denied everything")
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
		r.find(idField, n.Line, Error, "", "%s: expected fields such as %s:, found %s", what, expected[0], found(n))
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
		r.find(idField, key.Line, Error, hint, "unknown field %s in %s: the broker ignores it, or refuses the resource", name, what)
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
		r.find(idValue, n.Line, Error, "begin each element with a hyphen, or write ["+n.Value+"]", "%s: expected a list, found %s", what, found(n))
	default:
		for i, item := range items {
			do(i, item)
		}
	}
}

func (r *reader) texts(n *yamltext.Node, what string) (all []string, lines []int) {
	r.list(n, what, func(_ int, n *yamltext.Node) {
		if s, ok := r.text(n, what); ok {
			all, lines = append(all, s), append(lines, n.Line)
		}
	})
	return all, lines
}

func (r *reader) text(n *yamltext.Node, what string) (s string, ok bool) {
	_, isLiteral := yaml11(n)
	switch {
	case isLiteral:
		r.find(idBoolean, n.Line, Error, fmt.Sprintf("write %q", n.Value), "%s: %s is not text without quotes: kubectl reads YAML 1.1, in which it is a number or a boolean", what, n.Value)
	case nodeKind(n) != text && nodeKind(n) != literal:
		r.find(idValue, n.Line, Error, "", "%s: expected text, found %s", what, found(n))
		return "", false
	case n.Value == "":
		r.find(idEmpty, n.Line, Error, "", "%s: an empty text, which matches nothing", what)
	}
	return n.Value, true
}

func (r *reader) rules(n *yamltext.Node) {
	items, ok := yamltext.Items(n)
	if !ok {
		r.find(idValue, n.Line, Error, "", "rules: expected a list, found %s", found(n))
		return
	}
	if len(items) == 0 {
		r.find(idEmpty, n.Line, Error, "", "no rules: every client is denied everything")
	}
	for i, item := range items {
		if r.ctx.Err() != nil {
			return
		}
		name := fmt.Sprintf("rules[%d]", i)
		rule := &Rule{Resource: len(r.policy.Resources) - 1, Line: item.Line, Name: name}
		r.policy.Rules = append(r.policy.Rules, rule)
		who := r.fields(item, name, "principals", "brokerResources", "stateStoreResources")
		if who != nil {
			r.fields(who, "principals", "usernames", "clientIds", "attributes")
			var lines []int
			rule.Usernames, lines = r.texts(get(who, "usernames"), "usernames")
			for i, name := range rule.Usernames {
				rule.at(alternative{user: name}, lines[i])
			}
			rule.ClientIDs, lines = r.texts(get(who, "clientIds"), "clientIds")
			for i, id := range rule.ClientIDs {
				rule.at(alternative{id: id}, lines[i])
			}
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
		r.find(idValue, n.Line, Error, "write - NAME: VALUE", "attributes: expected NAME: VALUE, found %s", found(n))
		return
	}
	set := make(map[string]string)
	for key, value := range yamltext.Members(n) {
		if other, _ := yaml11(key); other != key.Value {
			r.find(idBoolean, key.Line, Error, fmt.Sprintf("write %q", key.Value), "the name of the attribute %s is not text without quotes: kubectl reads YAML 1.1, in which it is %s", key.Value, other)
		}
		if s, ok := r.text(value, "attribute "+key.Value); ok {
			set[key.Value] = s
		}
	}
	if len(set) == 0 {
		r.find(idEmpty, n.Line, Warning, "", "attributes: an empty set, which is for nobody (assumed)")
	}
	rule.Attributes = append(rule.Attributes, set)
	rule.at(alternative{set: set}, n.Line)
}

func (r *Rule) at(a alternative, line int) {
	if r.lines == nil {
		r.lines = make(map[string]int)
	}
	if a.set == nil || len(a.set) > 0 {
		r.listed = append(r.listed, a)
	}
	if key := a.key(); r.lines[key] == 0 {
		r.lines[key] = line
	}
}

// method returns the method of an entry, which must be one of the given ones.
func (r *reader) method(n *yamltext.Node, path, expected string, allowed ...Method) (m Method) {
	at := get(n, "method")
	if at == nil {
		r.find(idMethod, n.Line, Error, "method: "+expected, "%s has no method", path)
		return 0
	}
	m, ok := ParseMethod(at.Value)
	if !ok || !slices.Contains(allowed, m) {
		r.find(idMethod, at.Line, Error, "", "method %.40q in %s: expected %s", at.Value, path, expected)
		return 0
	}
	r.spelling(at, m.String())
	return m
}

// spelling reports a name that differs from the API's only in case.
func (r *reader) spelling(n *yamltext.Node, want string) {
	if misspelt(n, want) {
		r.find(idMethod, n.Line, Warning, "write "+want, "%q: the API knows %s; taken as that (assumed)", n.Value, want)
	}
}

func (r *reader) broker(rule *Rule, path string, n *yamltext.Node) {
	r.fields(n, path, "method", "topics", "clientIds")
	if nodeKind(n) != mapping {
		return
	}
	method := r.method(n, path, methodHint, Connect, Publish, Subscribe)
	ids, idLines := r.texts(get(n, "clientIds"), "clientIds")
	for i, id := range ids {
		if parts, why := parseParts(id); why != "" {
			r.find(idNever, idLines[i], Error, "", "client id %q: %s", id, why)
			if fixed := fixTokens(id); len(newIDs([]string{fixed}).all) > 0 {
				r.policy.Findings[len(r.policy.Findings)-1].Hint = fmt.Sprintf("write %q", fixed)
			}
		} else if !parses(parts) {
			r.find(idNever, idLines[i], Error, "", "client id %q: [ without ], or **", id)
		}
	}
	parsed := newIDs(ids)
	topics, lines := r.texts(get(n, "topics"), "topics")
	add := func(line int, topic string) *Entry {
		e := &Entry{Rule: rule, Line: line, Path: path, Methods: method, ClientIDs: ids, ids: parsed, idAt: idLines, Text: topic, misspelt: misspelt(get(n, "method"), method.String())}
		rule.Entries = append(rule.Entries, e)
		return e
	}
	switch {
	case method == 0:
	case method == Connect:
		if len(topics) > 0 {
			r.find(idMeaning, lines[0], Warning, "remove the topics, or use Publish or Subscribe", "Connect has topics: they have no meaning")
		}
		add(n.Line, "")
	case len(topics) == 0 && (get(n, "topics") == nil || nodeKind(get(n, "topics")) == sequence):
		r.find(idEmpty, n.Line, Error, "add topics:", "%s without topics allows nothing", method)
	default:
		if len(ids) > 0 {
			r.find(idMeaning, get(n, "clientIds").Line, Warning, "principals.clientIds, or clientIds with Connect", "clientIds with %s: only Connect is documented; taken as a further condition (assumed)", method)
		}
		for i, topic := range topics {
			e := add(lines[i], topic)
			if e.setTopic(); e.never != "" && topic != "" {
				r.find(idNever, e.Line, Error, "", "topic %q matches nothing: %s", topic, e.never)
				better := e.changed(fixTopic(topic))
				r.mended(e, better, fmt.Sprintf("write %q, for %s", better.Text, rule.someone()))
			}
		}
	}
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
			r.find(idMethod, at.Line, Error, "", "keyType %.40q: expected Pattern, String or Binary", at.Value)
			return
		}
		keyType = types[i]
		r.spelling(at, string(keyType))
	}
	keys, lines := r.texts(get(n, "keys"), "keys")
	if len(keys) == 0 && (get(n, "keys") == nil || nodeKind(get(n, "keys")) == sequence) {
		r.find(idEmpty, n.Line, Error, "add keys:", "%s has no keys: it allows nothing", path)
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
			r.find(idNever, e.Line, Error, keyHint(e), "%s key %q matches nothing: %s", keyType, key, e.never)
			if keyType == Binary {
				named := *e
				named.Type = String
				r.mended(e, (&named).changed(key), "keyType: String, for "+rule.someone()+"; or the base64 of the key's bytes")
			} else if better := e.changed(fixTokens(key)); better.Text != key {
				r.mended(e, better, fmt.Sprintf("write %q, for %s", better.Text, rule.someone()))
			}
		case keyType == Binary && plain(key) && !utf8.ValidString(e.exact):
			r.find(idBinary, e.Line, Warning, "", "Binary key %q is the base64 of other bytes, which are no text", key)
			named := *e
			named.Type = String
			r.mended(e, (&named).changed(key), "keyType: String, for "+rule.someone())
		case keyType == Binary && digits(e.exact):
			r.find(idBinary, e.Line, Warning, "encode the key's own bytes: printf %s KEY | base64", "Binary key %q is the text %q, which looks like the codes of a key's bytes", key, e.exact)
		}
	}
}
