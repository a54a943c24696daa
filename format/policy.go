package format

import "strings"

// PolicyAnswer is the answer of `policy can` to one question.
type PolicyAnswer struct {
	User, Client string
	Attributes   []string // NAME=VALUE
	Method       string   // such as Read
	On           string   // the key or topic; empty for Connect
	Allowed      bool
	Where        string   // the place of the rule that decides, or of the nearest; empty = no rule
	Entry        string   // what that rule allows
	Lacks        string   // why the action is denied
	Needs        string   // what else a request needs and the rules deny; empty = nothing
	Assumes      []string // what the answer depends on that the broker's documentation does not say
}

func (a PolicyAnswer) fields(o *objectWriter) {
	o.add("op", "policy_can")
	o.add("user", nonEmpty(a.User))
	o.add("client", nonEmpty(a.Client))
	o.add("attributes", when(len(a.Attributes) > 0, a.Attributes))
	o.add("method", a.Method)
	o.add(policyObject(a.Method), nonEmpty(a.On))
	o.add("allowed", a.Allowed)
	o.add("where", nonEmpty(a.Where))
	o.add("entry", nonEmpty(a.Entry))
	o.add("lacks", nonEmpty(a.Lacks))
	o.add("needs", nonEmpty(a.Needs))
	o.add("assumes", when(len(a.Assumes) > 0, a.Assumes))
}

// policyObject returns the name of the field for what an action is on.
func policyObject(method string) string {
	if method == "Publish" || method == "Subscribe" {
		return "topic"
	}
	return "key"
}

func (a PolicyAnswer) human(w *writer) {
	word := "yes"
	if !a.Allowed {
		word = w.fail.Sprint("no") + " "
	}
	w.printf("%s  %s\n", word, strings.TrimSpace(strings.ToLower(a.Method)+" "+wordOrNothing(a.On)))
	switch {
	case a.Allowed:
		w.printf("     %s: %s\n", printable(a.Where), printable(a.Entry))
	case a.Where != "":
		w.printf("     nearest: %s: %s\n", printable(a.Where), printable(a.Lacks))
	default:
		w.printf("     %s\n", printable(a.Lacks))
	}
	if a.Needs != "" {
		w.printf("     not enough for a request: %s is denied\n", printable(a.Needs))
	}
	for _, text := range a.Assumes {
		w.printf("     assumed: %s\n", printable(text))
	}
}

func wordOrNothing(text string) string {
	if text == "" {
		return ""
	}
	return Word(text)
}

// raw writes yes or no, the method, what it is on, the place of the rule, and what the rule allows or
// lacks.
func (a PolicyAnswer) raw(w *writer) {
	word := "yes"
	if !a.Allowed {
		word = "no"
	}
	w.record(word, a.Method, a.On, a.Where, a.Entry+a.Lacks)
}

// PolicyEntry is a row of `policy table`.
type PolicyEntry struct {
	Who    string `json:"who"`
	Method string `json:"method"`
	On     string `json:"on,omitempty"`    // topic or key; empty = every client id
	Type   string `json:"type,omitempty"`  // of a key
	Where  string `json:"where"`           // the place of the rule
	Never  string `json:"never,omitempty"` // why the entry matches nothing
}

func (e PolicyEntry) fields(o *objectWriter) { o.result("policy_table", e) }

func (e PolicyEntry) human(w *writer) { w.row(e) }

func (e PolicyEntry) titles(*style) []string { return []string{"who", "may", "on", "rule"} }

func (e PolicyEntry) cells(s *style) []cell {
	on := Escape(e.On)
	if e.Type != "" && e.Type != "Pattern" {
		on += " (" + e.Type + ")"
	}
	if e.Never != "" {
		on += " (never)"
	}
	return []cell{{text: Escape(e.Who), keep: true}, {text: e.Method}, {text: on, keep: true}, {text: printable(e.Where), paint: s.faint, keep: true}}
}

func (e PolicyEntry) raw(w *writer) { w.record(e.Who, e.Method, e.On, e.Type, e.Where) }

// PolicyChange is an action that two policies decide differently, as `policy diff` found it.
type PolicyChange struct {
	Change     string // allowed or lost
	User       string
	Client     string
	Attributes []string // NAME=VALUE
	Method     string
	On         string
	From       string // the entry of which On is an example; empty = the action was given, or is Connect
	Where      string // the place of the entry that allows the action
}

func (c PolicyChange) fields(o *objectWriter) {
	o.add("op", "policy_diff")
	o.add("change", c.Change)
	o.add("user", nonEmpty(c.User))
	o.add("client", nonEmpty(c.Client))
	o.add("attributes", when(len(c.Attributes) > 0, c.Attributes))
	o.add("method", c.Method)
	o.add(policyObject(c.Method), nonEmpty(c.On))
	o.add("entry", nonEmpty(c.From))
	o.add("where", c.Where)
}

func (c PolicyChange) human(w *writer) {
	mark := "+"
	if c.Change == "lost" {
		mark = w.fail.Sprint("-")
	}
	who := strings.Join(c.Who(), " ")
	w.printf("%s %s  %s", mark, who, strings.TrimSpace(c.Method+" "+wordOrNothing(c.On)))
	if c.From != "" && c.From != c.On {
		w.printf(", as an example of %s", Escape(c.From))
	}
	w.printf("  %s\n", w.faint.Sprint(printable(c.Where)))
}

// Who returns the client as words.
func (c PolicyChange) Who() (who []string) {
	if c.User != "" {
		who = append(who, "user "+Word(c.User))
	}
	for _, pair := range c.Attributes {
		who = append(who, Escape(pair))
	}
	if c.Client != "" {
		who = append(who, "as "+Word(c.Client))
	}
	return who
}

func (c PolicyChange) raw(w *writer) {
	w.record(c.Change, strings.Join(c.Who(), " "), c.Method, c.On, c.From, c.Where)
}

// PolicyText is a resource that `policy suggest` wrote, or a line of a table in Markdown.
type PolicyText struct {
	Text  string   `json:"resource"`
	Notes []string `json:"notes,omitempty"` // what it allows beyond what was seen
}

func (t PolicyText) fields(o *objectWriter) { o.result("policy_suggest", t) }

func (t PolicyText) human(w *writer) { w.print(t.Text) }

// PolicyTest is an expectation that `policy test` found unmet.
type PolicyTest struct {
	File     string `json:"file"`
	Line     int    `json:"line"`
	Who      string `json:"who"`
	Question string `json:"question"`        // such as set colors/red
	Expected string `json:"expected"`        // allow or deny
	Step     string `json:"step,omitempty"`  // of the question, which is denied
	Where    string `json:"where,omitempty"` // the place of the rule that decides, or of the nearest
	Reason   string `json:"reason"`          // what that rule allows, or why the step is denied
}

// Text returns the failure as a sentence.
func (t PolicyTest) Text() string {
	text := "expected " + t.Expected + ", but "
	if t.Expected == "deny" {
		return text + t.Where + " allows " + t.Reason
	}
	if text += t.Step + " is denied: "; t.Where != "" {
		text += "nearest: " + t.Where + ": "
	}
	return text + t.Reason
}

func (t PolicyTest) fields(o *objectWriter) { o.result("policy_test", t) }

func (t PolicyTest) human(w *writer) {
	w.printf("%s: %s: %s: %s\n", Location(t.File, t.Line, 0), printable(t.Who), printable(t.Question), printable(t.Text()))
}

// PolicyHolder is a principal that may do something, as `policy who` found it.
type PolicyHolder struct {
	Method string `json:"method"`
	On     string `json:"on"`
	Who    string `json:"who"`
	If     string `json:"if,omitempty"`    // what the client must be besides
	Where  string `json:"where"`           // the place of the rule
	Entry  string `json:"entry"`           // what the rule allows
	Lacks  string `json:"lacks,omitempty"` // why the right is of no use
}

func (h PolicyHolder) fields(o *objectWriter) { o.result("policy_who", h) }

func (h PolicyHolder) human(w *writer) {
	w.printf("%s  %s", strings.ToLower(h.Method), printable(h.Who))
	if h.If != "" {
		w.printf(" if %s", printable(h.If))
	}
	w.printf("  %s", w.faint.Sprint(printable(h.Where+": "+h.Entry)))
	if h.Lacks != "" {
		w.printf("  (%s)", h.Lacks)
	}
	w.print("\n")
}

func (h PolicyHolder) raw(w *writer) {
	w.record(h.Method, h.Who, h.If, h.Where, strings.TrimSpace(h.Entry+" "+h.Lacks))
}
