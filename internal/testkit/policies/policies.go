// Package policies has authorizations for tests: some with one planted mistake each, and some without any.
package policies

import "strings"

// UUID is in the topics of the store.
const UUID = "FA9AE35F-2F64-47CD-9BFF-08E2B32A0FE8"

// Parts of a way to the store.
const (
	Connect = `{method: Connect, clientIds: ["{principal.username}"]}`
	Request = "{method: Publish, topics: [statestore/v1/" + UUID + "/command/invoke]}"
	Own     = `{method: Subscribe, topics: ["clients/{principal.clientId}/#"]}`
	Store   = Connect + ", " + Request + ", " + Own
)

// Resource returns a resource with rules in flow form, one per line. The first is in line 7.
func Resource(rules string) string {
	return "apiVersion: mqttbroker.iotoperations.azure.com/v1\nkind: BrokerAuthorization\nmetadata: {name: a}\nspec:\n  authorizationPolicies:\n    rules:\n" + rules
}

// Line returns a rule in one line.
func Line(principals, brokers, stores string) string {
	return "      - {principals: {" + principals + "}, brokerResources: [" + brokers + "], stateStoreResources: [" + stores + "]}\n"
}

// A Mistake is in the rules of an authorization.
type Mistake struct {
	Name, Rules string
	ID          string // of the finding
	Line        int
	Mend        string // a part of the hint; "" = none is tried
}

const keys = `{method: Read, keys: ["k/*"]}`

// bob returns the rule of a neighbour, which has no mistake.
func bob() string { return Line("usernames: [bob]", Store, `{method: Read, keys: ["colors/*"]}`) }

func ann(brokers, stores string) string { return bob() + Line("usernames: [ann]", brokers, stores) }

func connect(ids string) string {
	return ann(strings.Replace(Store, `["{principal.username}"]`, "["+ids+"]", 1), keys)
}

func key(stores string) string { return ann(Store, stores) }

func also(more string) string { return ann(Store+", "+more, keys) }

func site(set, brokers, stores string) string {
	return bob() + Line("attributes: [{"+set+"}]", brokers, stores)
}

func watch(hex string) string {
	return `, {method: Subscribe, topics: ["clients/statestore/v1/FA9AE35F-2F64-47CD-9BFF-08E2B32A0FE8/` + hex + `/command/notify/+"]}`
}

// Planted returns authorizations with one mistake each.
func Planted() []Mistake {
	return []Mistake{
		{"a prefix of a name", ann(strings.Replace(Store, "username}", "username}*", 1), keys), "SS024", 8, `"{principal.username}"`},
		{"replies of everybody", ann(Store+`, {method: Subscribe, topics: ["clients/+/statestore/v1/FA9AE35F-2F64-47CD-9BFF-08E2B32A0FE8/command/invoke/response"]}`, keys), "SS021", 8, "clients/{principal.clientId}/#"},
		{"notifications of everybody", ann(Store+`, {method: Subscribe, topics: ["clients/statestore/v1/FA9AE35F-2F64-47CD-9BFF-08E2B32A0FE8/+/command/notify/+"]}`, keys), "SS021", 8, "/616E6E/command/notify/+"},
		{"all topics", ann(Store+`, {method: Subscribe, topics: ["#"]}`, keys), "SS021", 8, ""},
		{"replies of another one", ann(Store+`, {method: Subscribe, topics: ["clients/bob/#"]}`, keys), "SS021", 8, "clients/{principal.clientId}/#"},
		{"a free Connect", ann("{method: Connect}, "+Request+", "+Own, keys), "SS022", 8, `["{principal.username}"]`},
		{"a rule for a client id", bob() + Line("clientIds: [sensor]", "{method: Connect}, "+Request, `{method: Read, keys: [a]}`), "SS023", 8, ""},
		{"no Subscribe, though others have it", bob() + Line(`attributes: [{role: dashboard}]`, `{method: Connect, clientIds: ["{principal.attributes.role}-*"]}, `+Request+", "+Own, keys) + Line("usernames: [gateway]", Connect+", "+Request, `{method: Write, keys: [g]}`), "SS016", 9, "clients/{principal.clientId}/#"},
		{"no Publish", ann(Connect+", "+Own, keys), "SS015", 8, "command/invoke"},
		{"no Connect", ann(Request+", "+Own, keys), "SS014", 8, "{principal.username}"},
		{"a misspelt request topic", ann(Connect+", {method: Publish, topics: [statestore/v1/FA9AE35F-2F64-47CD-9BFF-08E2B32A0FE8/command/invok]}, "+Own, keys), "SS015", 8, "command/invoke"},
		{"an attribute that users lack", bob() + Line("usernames: [ann], attributes: [{building: b1}]", `{method: Connect, clientIds: ["{principal.attributes.building}-*"]}, `+Request+", "+Own, keys), "SS020", 8, "{principal.username}"},
		{"a misspelt token", ann(strings.Replace(Store, "{principal.clientId}", "{principal.clientID}", 1), keys), "SS008", 8, "{principal.clientId}"},
		{"a token in a part of a level", ann(Store+`, {method: Publish, topics: ["d-{principal.clientId}/x"]}`, keys), "SS008", 8, "d/{principal.clientId}/x"},
		{"a star in a topic", ann(Store+`, {method: Publish, topics: ["sensors/*"]}`, keys), "SS009", 8, "sensors/#"},
		{"a topic's wildcard in a key", ann(Store, `{method: Read, keys: ["line1/#"]}`), "SS009", 8, "line1/*"},
		{"a topic's + in a key", ann(Store, `{method: Read, keys: ["line1/+/x"]}`), "SS009", 8, "line1/*/x"},
		{"a regular expression", ann(Store, `{method: Read, keys: ["a.*"]}`), "SS009", 8, "a*"},
		{"a word as a class", ann(Store, `{method: Read, keys: ["recipe[current]"]}`), "SS009", 8, ""},
		{"a pattern as String", ann(Store, `{method: Read, keyType: String, keys: ["sp/*"]}`), "SS009", 8, "keyType: Pattern"},
		{"# in a client id", ann(strings.Replace(Store, "{principal.username}", "ann-#", 1), keys), "SS009", 8, "ann-*"},
		{"a blank", bob() + Line(`usernames: ["ann "]`, Store, keys), "SS010", 8, ""},
		{"a boolean", bob() + Line("attributes: [{country: no}]", `{method: Connect, clientIds: ["{principal.attributes.country}-*"]}`, ""), "SS005", 8, ""},
		{"an obsolete topic", ann(Store+`, {method: Publish, topics: ["$services/statestore/_any_/command/invoke/request"]}`, keys), "SS011", 8, "statestore/v1"},
		{"a rule twice", ann(Store, keys) + Line("usernames: [ann]", "", keys), "SS026", 9, "remove"},
		{"no keys", ann(Store, ""), "SS018", 8, ""},
		{"a user's own name as a prefix", connect(`"ann*"`), "SS024", 8, `"ann"`},
		{"one character more", connect(`"{principal.username}?*"`), "SS024", 8, "{principal.username}"},
		{"a class after a name", connect(`"{principal.username}[0-9]*"`), "SS024", 8, "{principal.username}"},
		{"a name after a star", connect(`"*{principal.username}"`), "SS024", 8, "{principal.username}"},
		{"two names without a separator", site("site: \"1\"", strings.Replace(Store, "{principal.username}", "{principal.attributes.site}{principal.username}", 1), keys), "SS024", 8, "{principal."},
		{"keys with a name as a prefix", key(`{method: Read, keys: ["{principal.username}*"]}`), "SS024", 8, "{principal.username}/*"},
		{"keys with a client id as a prefix", key(`{method: ReadWrite, keys: ["state:{principal.clientId}*"]}`), "SS024", 8, "state:{principal.clientId}/*"},
		{"replies of others, as the Rust SDK has them", also(`{method: Subscribe, topics: ["clients/+/services/#"]}`), "SS021", 8, "clients/{principal.clientId}/#"},
		{"all of clients/", also(`{method: Subscribe, topics: ["clients/#"]}`), "SS021", 8, ""},
		{"all notifications", also(`{method: Subscribe, topics: ["clients/statestore/#"]}`), "SS021", 8, ""},
		{"two levels and all", also(`{method: Subscribe, topics: ["+/+/#"]}`), "SS021", 8, ""},
		{"replies forged directly", also(`{method: Publish, topics: ["clients/#"]}`), "SS025", 8, ""},
		{"replies forged with +", also(`{method: Publish, topics: ["clients/+/statestore/v1/` + UUID + `/command/invoke/response"]}`), "SS025", 8, "remove"},
		{"all topics published", also(`{method: Publish, topics: ["#"]}`), "SS025", 8, ""},
		{"replies forged to bob", also(`{method: Publish, topics: ["clients/bob/#"]}`), "SS025", 8, "remove"},
		{"an attribute in another case", site("building: b1", strings.Replace(Store, "{principal.username}", "{principal.attributes.Building}-*", 1), keys), "SS020", 8, "{principal.attributes.building}-*"},
		{"an attribute with a slip in a topic", site("building: b1", strings.Replace(Store, "{principal.username}", "{principal.attributes.building}-*", 1)+`, {method: Publish, topics: ["t/{principal.attributes.biulding}"]}`, keys), "SS020", 8, "t/{principal.attributes.building}"},
		{"an attribute with a slip in a key", site("building: b1", strings.Replace(Store, "{principal.username}", "{principal.attributes.building}-*", 1), `{method: Read, keys: ["{principal.attributes.buildings}/*"]}`), "SS020", 8, "{principal.attributes.building}/*"},
		{"a subject as a user name", bob() + Line(`usernames: ["CN=ann"]`, Store, keys), "SS009", 8, ""},
		{"a wildcard in an attribute", site("building: \"b*\"", strings.Replace(Store, "{principal.username}", "{principal.attributes.building}-*", 1), keys), "SS009", 8, ""},
		{"everybody", bob() + Line(`usernames: ["*"]`, Store, keys), "SS009", 8, ""},
		{"a question mark in a topic", also(`{method: Publish, topics: ["line?/x"]}`), "SS009", 8, "+/x"},
		{"a class in a topic", also(`{method: Publish, topics: ["line/[0-9]/x"]}`), "SS009", 8, "line/+/x"},
		{"an anchored expression", key(`{method: Read, keys: ["^k/.*$"]}`), "SS009", 8, "k/*"},
		{"one or more in a key", key(`{method: Read, keys: ["k/.+"]}`), "SS009", 8, "k/*"},
		{"digits in a key", key(`{method: Read, keys: ["k\\d+"]}`), "SS009", 8, "k[0-9]*"},
		{"alternatives in a key", key(`{method: Read, keys: ["(red|blue)/x"]}`), "SS009", 8, ""},
		{"SQL in a key", key(`{method: Read, keys: ["k/%"]}`), "SS009", 8, "k/*"},
		{"an expression for client ids", connect(`"ann-.*"`), "SS009", 8, "ann-*"},
		{"an anchored client id", connect(`"^ann-.*$"`), "SS009", 8, "ann-*"},
		{"text as Binary", key(`{method: Read, keyType: Binary, keys: [setpoint]}`), "SS013", 8, "keyType: String"},
		{"a class as String", key(`{method: Read, keyType: String, keys: ["n[0-9]"]}`), "SS009", 8, "keyType: Pattern"},
		{"a lock that cannot be read", key(`{method: Write, keys: ["locks/*"]}`), "SS027", 8, "Read"},
		{"a lock that cannot be watched", key(`{method: ReadWrite, keys: ["lock:*"]}`), "SS017", 8, "/616E6E/command/notify/+"},
		{"notifications of the id in plain text", also(`{method: Subscribe, topics: ["clients/statestore/v1/` + UUID + `/ann/command/notify/+"]}`), "SS017", 8, "/616E6E/command/notify/+"},
		{"notifications in lower case", also(`{method: Subscribe, topics: ["clients/statestore/v1/` + UUID + `/616e6e/command/notify/+"]}`), "SS017", 8, "/616E6E/command/notify/+"},
		{"the topic of requests in lower case", ann(Connect+", {method: Publish, topics: [statestore/v1/"+strings.ToLower(UUID)+"/command/invoke]}, "+Own, keys), "SS015", 8, "command/invoke"},
		{"replies without their topics", ann(Connect+", "+Request+`, {method: Subscribe, topics: ["clients/{principal.clientId}"]}`, keys), "SS016", 8, "clients/{principal.clientId}/#"},
		{"a user with a slip", bob() + Line("usernames: [anne]", Connect+", "+Request+", "+Own, "") + Line("usernames: [ann]", "", keys), "SS014", 9, "{principal.username}"},
		{"an attribute's name with a slip", site("role: reader", strings.Replace(Store, "{principal.username}", "{principal.attributes.role}-*", 1), "") + Line("attributes: [{rloe: reader}]", "", keys), "SS020", 9, ""},
		{"an attribute's value with a slip", site("role: reader", strings.Replace(Store, "{principal.username}", "{principal.attributes.role}-*", 1), "") + Line("attributes: [{role: raeder}]", "", keys), "SS020", 9, ""},
		{"two Connects, one of them free", ann(Store+", {method: Connect}", keys), "SS022", 8, "{principal.username}"},
		{"a number", bob() + Line("usernames: [0x1F]", Store, keys), "SS005", 8, ""},
		{"a topic's # in the middle of a key", key(`{method: Read, keys: ["a/#/b"]}`), "SS009", 8, "a/*/b"},
		{"an anchored class, once or more", key(`{method: Read, keys: ["^line[0-9]+$"]}`), "SS009", 8, "line[0-9]*"},
		{"alternatives and more", key(`{method: Read, keys: ["(a|b).*"]}`), "SS009", 8, ""},
		{"an expression in a topic", also(`{method: Subscribe, topics: ["sensors/.*"]}`), "SS009", 8, "sensors/#"},
		{"notifications all in lower case", also(`{method: Subscribe, topics: ["` + strings.ToLower("clients/statestore/v1/"+UUID+"/616E6E/command/notify/+") + `"]}`), "SS017", 8, "/616E6E/command/notify/+"},
		{"replies of bob below any level", also(`{method: Subscribe, topics: ["+/626F62/#"]}`), "SS021", 8, ""},
		{"notifications of bob below any level", also(`{method: Subscribe, topics: ["clients/statestore/+/+/626F62/command/notify/+"]}`), "SS021", 8, "/616E6E/command/notify/+"},
		{"a separator that a name contains", bob() + Line("usernames: [ann, ann-b]", strings.Replace(Store, "username}", "username}-*", 1), keys), "SS024", 8, `"{principal.username}"`},
		{"a separator that a name contains, in a key", bob() + Line("usernames: [ann, ann-b]", Store, `{method: Read, keys: ["s-{principal.username}-*"]}`), "SS024", 8, "s-{principal.username}/-*"},
		{"a fraction", bob() + Line("attributes: [{share: .5}]", "{method: Connect}", ""), "SS005", 8, ""},
		{"an octal number", bob() + Line("attributes: [{line: 010}]", "{method: Connect}", ""), "SS005", 8, ""},
		{"a switch", key("{method: Read, keys: [on]}"), "SS005", 8, ""},
		{"null", bob() + Line("usernames: [~]", Store, keys), "SS004", 8, ""},
		{"a shared subscription", also(`{method: Subscribe, topics: ["$share/g/news"]}`), "SS008", 8, `"news"`},
		{"no slash after a wildcard", also(`{method: Subscribe, topics: ["news/#/x"]}`), "SS008", 8, `"news/+/x"`},
		{"a blank in a topic", also(`{method: Subscribe, topics: ["news/x "]}`), "SS010", 8, `"news/x"`},
		{"a method of keys for topics", also(`{method: Read, topics: ["news"]}`), "SS006", 8, ""},
		{"a token with a dollar", also(`{method: Publish, topics: ["d/${principal.clientId}"]}`), "SS008", 8, `"d/{principal.clientId}"`},
		{"a token of two braces", also(`{method: Publish, topics: ["d/{{principal.clientId}}"]}`), "SS008", 8, `"d/{principal.clientId}"`},
		{"a token in a String", key(`{method: Read, keyType: String, keys: ["{principal.clientId}"]}`), "SS009", 8, "keyType: Pattern"},
		{"an old topic of requests", ann(Connect+", {method: Publish, topics: [statestore/"+UUID+"/command/invoke]}, "+Own, keys), "SS011", 8, "statestore/v1"},
		{"an attribute that is misspelt in its own rule", site(`line: "1"}, {lnie: "2"`, Connect+", "+Request+", "+Own, keys), "SS020", 8, ""},
		{"Clients", ann(Connect+", "+Request+`, {method: Subscribe, topics: ["Clients/{principal.clientId}/#"]}`, keys), "SS016", 8, `write "clients/{principal.clientId}/#"`},
		{"a slash before clients", ann(Connect+", "+Request+`, {method: Subscribe, topics: ["/clients/{principal.clientId}/#"]}`, keys), "SS016", 8, `write "clients/{principal.clientId}/#"`},
		{"an empty level", ann(Connect+", "+Request+`, {method: Subscribe, topics: ["clients//{principal.clientId}/#"]}`, keys), "SS016", 8, `write "clients/{principal.clientId}/#"`},
		{"a Binary key that is text", key("{method: Read, keyType: Binary, keys: [press]}"), "SS008", 8, "keyType: String"},
		{"two tokens with a separator that names contain", bob() + Line("usernames: [ann, ann-x]", "{method: Connect}, "+Request+`, {method: Subscribe, topics: ["clients/ann/#"]}`, `{method: Read, keys: ["{principal.username}-{principal.clientId}"]}`), "SS024", 8, `write "{principal.username}/{principal.clientId}"`},
		{"two tokens without a separator", bob() + Line("usernames: [ann, ann-x]", "{method: Connect}, "+Request+`, {method: Subscribe, topics: ["clients/ann/#"]}`, `{method: Read, keys: ["{principal.username}{principal.clientId}"]}`), "SS024", 8, `write "{principal.username}/{principal.clientId}"`},
		{"the watch of another user", bob() + Line("usernames: [ann, eve]", Store+watch("616E6E"), keys), "SS021", 8, ""},
	}
}

// Right returns authorizations without a mistake, by what is in them.
func Right() map[string]string {
	const keys = `{method: ReadWrite, keys: ["k/*"]}`
	return map[string]string{
		"users":                            Line("usernames: [ann, bob]", Store, keys),
		"a separator":                      Line("usernames: [ann, bob]", strings.Replace(Store, "username}", "username}-*", 1), keys),
		"with a watch":                     Line("usernames: [ann]", Store+watch("616E6E"), keys),
		"telemetry":                        Line("attributes: [{role: device}]", `{method: Connect, clientIds: ["{principal.username}"]}, {method: Publish, topics: ["sensors/{principal.username}/#"]}`, ""),
		"an attribute":                     Line(`attributes: [{site: "7"}]`, `{method: Connect, clientIds: ["{principal.attributes.site}-*"]}, `+Request+", "+Own, `{method: Read, keys: ["sites/{principal.attributes.site}/*"]}`),
		"values that are no prefixes":      Line("attributes: [{building: b22}, {building: b23}]", `{method: Connect, clientIds: ["{principal.attributes.building}*"]}, {method: Publish, topics: ["t/{principal.attributes.building}"]}`, ""),
		"layers":                           Line("attributes: [{group: store}]", Connect+", "+Request+", "+Own, "") + Line("usernames: [ann]", "", keys),
		"a dashboard beside users":         Line("attributes: [{role: dashboard}]", `{method: Connect, clientIds: ["dash-{principal.username}"]}, {method: Subscribe, topics: ["sensors/#"]}`, "") + Line("usernames: [ann]", Store, keys),
		"a binary key, a class":            Line("usernames: [ann]", Store, `{method: Read, keyType: Binary, keys: [dGVzdA==]}, {method: Read, keys: ["n[0-9]", "m[abc]"]}`),
		"a free Connect without ids":       Line("usernames: [ann, bob]", "{method: Connect}, {method: Publish, topics: [news]}", ""),
		"two tokens of one name":           Line("usernames: [ann, ann-x]", Store, `{method: Read, keys: ["{principal.username}{principal.clientId}", "{principal.username}-{principal.clientId}"]}`),
		"own keys":                         ann(Store, `{method: ReadWrite, keys: ["{principal.username}/*", "state:{principal.clientId}:*", "{principal.username}"]}`),
		"dotted keys":                      ann(Store, `{method: ReadWrite, keys: ["line1.*", "line2.temperature"]}`),
		"a prefix before a name":           ann(strings.Replace(Store, "{principal.username}", "dash-{principal.username}", 1), keys),
		"a prefix before ids":              ann(strings.Replace(Store, "{principal.username}", "annabel-{principal.username}-*", 1), keys),
		"ids of one user":                  ann(strings.Replace(Store, `["{principal.username}"]`, `["ann-1", "ann-2"]`, 1), keys),
		"ids of one user, with a star":     ann(strings.Replace(Store, `["{principal.username}"]`, `["ann-*"]`, 1), keys),
		"site and name":                    bob() + Line(`attributes: [{site: "1"}, {site: "12"}]`, strings.Replace(Store, "{principal.username}", "{principal.attributes.site}-{principal.username}", 1), `{method: Read, keys: ["{principal.attributes.site}/*"]}`),
		"attributes alike":                 Line(`attributes: [{cap1: "y", cap2: "z"}]`, `{method: Connect, clientIds: ["{principal.username}"]}, {method: Publish, topics: ["t/{principal.attributes.cap1}", "u/{principal.attributes.cap2}"]}`, ""),
		"the Go SDK":                       ann(Connect+", "+Request+`, {method: Subscribe, topics: ["clients/616E6E/statestore/v1/`+UUID+`/command/invoke/response"]}`, keys),
		"the .NET SDK":                     ann(Connect+", "+Request+`, {method: Subscribe, topics: ["clients/{principal.clientId}/statestore/v1/`+UUID+`/command/invoke"]}`, keys),
		"a response topic of its own":      ann(Connect+", "+Request+`, {method: Subscribe, topics: ["replies/{principal.username}"]}, {method: Publish, topics: ["replies/{principal.username}"]}`, keys),
		"a response topic below its own":   ann(Connect+", "+Request+`, {method: Subscribe, topics: ["clients/{principal.clientId}/store/responses"]}`, keys),
		"applications":                     ann(Store+`, {method: Publish, topics: ["sensors/+/x", "50%/x"]}, {method: Subscribe, topics: ["sensors/#", "+/alarm", "clients/+/commands/#"]}`, keys),
		"services beside a gateway":        bob() + Line("attributes: [{group: gateway}]", `{method: Connect, clientIds: ["gw-{principal.username}"]}, `+Request+", "+Own, `{method: Write, keys: ["line1/*"]}`),
		"a service account":                Line(`usernames: ["system:serviceaccount:apps:reader"]`, strings.Replace(Store, "{principal.username}", "reader-*", 1), `{method: Read, keys: ["k/*"]}`),
		"keys with odd names":              ann(Store, `{method: Read, keyType: String, keys: ["a{b}", "x[1]", "50%", "a+b", "c#", "^"]}, {method: Read, keys: ["a+b", "c#d", "e$", "x|y"]}`),
		"bytes":                            ann(Store, `{method: Read, keyType: Binary, keys: ["/wAB", "3q2+7w==", "AAEC"]}`),
		"classes":                          ann(Store, `{method: Read, keys: ["n[0-9]", "n[0-9][a-f]*", "x/[abc]/*"]}`),
		"locks":                            ann(Store+watch("616E6E"), `{method: ReadWrite, keys: ["locks/*"]}, {method: Write, keys: ["clock/*", "blocks"]}`),
		"a lock by two rules":              ann(Store+watch("616E6E"), `{method: Write, keys: ["locks/*"]}`) + Line("usernames: [ann]", "", `{method: Read, keys: ["*"]}`),
		"a lock that is only looked at":    ann(Store, `{method: Read, keys: ["locks/*"]}`),
		"a client id of one user":          Line("usernames: [ann]", `{method: Connect, clientIds: [line1]}, `+Request+", "+Own, "") + Line("clientIds: [line1]", "", keys),
		"layers of three":                  Line("attributes: [{group: store}]", Request+", "+Own, "") + Line("attributes: [{staff: \"yes\"}]", Connect, "") + Line("usernames: [ann]", "", keys),
		"several users, several buildings": Line(`attributes: [{building: b1, role: reader}, {building: b2, role: reader}]`, strings.Replace(Store, "{principal.username}", "{principal.attributes.building}-{principal.username}", 1), `{method: Read, keys: ["{principal.attributes.building}/*"]}`),
		"quoted":                           Line(`usernames: ["on", "1.0", "2024-01-01", "~"]`, Store, keys),
		"names that begin like numbers":    Line(`usernames: [2024-01-01, 2024-01-01T10:00:00Z, 0x1p2, 1:30, .nan.x, 1a, 0x, v1.0, e5, no-1, yesterday, 1.2.3, -a]`, Store, keys),
	}
}
