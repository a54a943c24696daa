package policycmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sscli/sscli/cmd/sscli/internal/app"
	"github.com/sscli/sscli/cmd/sscli/internal/config"
	"github.com/sscli/sscli/cmd/sscli/internal/fault"
	"github.com/sscli/sscli/format"
	"github.com/sscli/sscli/internal/policy"
	"github.com/sscli/sscli/internal/yamltext"
	"github.com/sscli/sscli/repl"
)

// A suite is a file of expectations.
type suite struct {
	file     string
	policies []string // relative to the file
	clients  []tested
	asked    *policy.Policy // the file itself, if it is an authorization
}

// tested is a client with what is expected of it.
type tested struct {
	policy.Principal
	library string // one of policy.Clients
	expect  []expectation
}

type expectation struct {
	line  int
	words string // such as read colors/red
	allow bool
}

func newTest(a *app.App) *cobra.Command {
	var policies config.Files
	var junit config.File
	var write bool
	cmd := &cobra.Command{
		Use:   "test FILE...",
		Short: "Test an authorization against expectations",
		Long: `Test an authorization against files of expectations, for CI. Each failure is a line with the
rule that decided; the exit code is 1 if there are any.

  policy: authz.yaml
  tests:
    - user: ann
      clientId: ann
      attributes: {site: "7"}
      allow: [connect, get colors/red, read colors/blue]
      deny: [set colors/red, publish a/b]

The policy is a file, or a list of files, beside the file of expectations. connect, publish,
subscribe, read and write ask for one right. get, set, del, scan, watch and lock ask for all
that the command needs: to connect, send requests and get replies, too. With as: rust, dotnet
or go, they are the commands of that SDK, which differ in their topics for replies.

--write prints a file of expectations: for a file of expectations with the answers of today,
for an authorization with what each of its principals may do.`,
		Example:           "  sscli policy test authz.test.yaml --junit report.xml\n  sscli policy test --write authz.yaml > authz.test.yaml",
		Args:              needFiles,
		ValidArgsFunction: cobra.FixedCompletions(nil, cobra.ShellCompDirectiveDefault),
		RunE: func(cmd *cobra.Command, args []string) error {
			var suites []suite
			for _, name := range args {
				s, err := readSuite(cmd.Context(), a, name, write)
				if err != nil {
					return err
				}
				if len(policies) > 0 {
					s.policies, s.asked = policies, nil
				}
				suites = append(suites, s)
			}
			return test(cmd.Context(), a, suites, string(junit), write)
		},
	}
	cmd.Flags().Var(&policies, "policy", "test the policy in `FILE`, and not the one that the expectations name; may be repeated")
	cmd.Flags().Var(&junit, "junit", "also write a report for CI into `FILE`")
	cmd.Flags().BoolVar(&write, "write", false, "print a file of expectations, with the answers of today")
	return cmd
}

// readSuite reads a file of expectations or, with write, an authorization.
func readSuite(ctx context.Context, a *app.App, name string, write bool) (s suite, err error) {
	source, err := a.Read(ctx, name, "the expectations")
	if err != nil {
		return s, &fault.UsageError{Err: err}
	}
	wrong := func(line int, message string, args ...any) error {
		return &fault.UsageError{Err: fmt.Errorf("%s: %s", format.Location(name, max(line, 1), 0), fmt.Sprintf(message, args...))}
	}
	s.file = name
	if write && !strings.Contains(source, "tests") {
		return suiteOf(ctx, name, source)
	}
	docs, err := yamltext.Parse(ctx, []byte(source))
	if e, ok := errors.AsType[*yamltext.Error](err); ok {
		return s, wrong(e.Line, "%v", e)
	} else if err != nil {
		return s, err
	}
	if len(docs) != 1 || yamltext.Member(docs[0], "tests") == nil {
		if write {
			return suiteOf(ctx, name, source)
		}
		return s, wrong(1, "no expectations: expected policy: FILE and tests:; sscli policy test --write makes them from a policy")
	}
	for key, value := range yamltext.Members(docs[0]) {
		switch key.Value {
		case "policy":
			s.policies = scalars(value)
		case "tests":
			items, _ := yamltext.Items(value)
			for _, item := range items {
				client, line, why := readTested(item)
				if why != "" {
					return s, wrong(line, "%s", why)
				}
				s.clients = append(s.clients, client)
			}
		default:
			return s, wrong(key.Line, "unknown field %s: expected policy or tests", key.Value)
		}
	}
	return s, nil
}

// suiteOf returns the questions about what an authorization allows.
func suiteOf(ctx context.Context, name, text string) (s suite, err error) {
	s.file, s.policies = name, []string{filepath.Base(name)}
	if s.asked, err = parse(ctx, name, text); err == nil {
		s.clients = clientsOf(ctx, s.asked)
	}
	return s, err
}

func scalars(n *yamltext.Node) (all []string) {
	items, ok := yamltext.Items(n)
	if !ok {
		items = []*yamltext.Node{n}
	}
	for _, item := range items {
		if text, ok := yamltext.Scalar(item); ok {
			all = append(all, text)
		}
	}
	return all
}

func readTested(n *yamltext.Node) (t tested, line int, why string) {
	t.library = policy.Clients[0]
	for key, value := range yamltext.Members(n) {
		text, isText := yamltext.Scalar(value)
		switch key.Value {
		case "user":
			t.Username = text
		case "clientId":
			t.ClientID = text
		case "as":
			if t.library = text; !slices.Contains(policy.Clients, text) {
				return t, key.Line, "as: expected " + strings.Join(policy.Clients, ", ")
			}
		case "attributes":
			t.Attributes = make(map[string]string)
			for name, value := range yamltext.Members(value) {
				t.Attributes[name.Value], _ = yamltext.Scalar(value)
			}
			isText = yamltext.IsMapping(value)
		case "allow", "deny":
			items, ok := yamltext.Items(value)
			isText = ok
			for _, item := range items {
				words, _ := yamltext.Scalar(item)
				if _, err := t.deeds(words); err != nil {
					return t, item.Line, err.Error()
				}
				t.expect = append(t.expect, expectation{item.Line, words, key.Value == "allow"})
			}
		default:
			return t, key.Line, fmt.Sprintf("unknown field %s: expected user, clientId, attributes, as, allow or deny", key.Value)
		}
		if !isText {
			return t, key.Line, key.Value + ": unexpected kind of value"
		}
	}
	if len(t.expect) == 0 {
		return t, n.Line, "no expectations: expected allow or deny, with a list of questions"
	}
	return t, 0, ""
}

// deeds returns what words such as set colors/red ask for.
func (t *tested) deeds(text string) (all []policy.Deed, err error) {
	words, err := repl.Split(text)
	if err != nil {
		return nil, err
	}
	q := question{client: config.Text(t.ClientID), library: t.library}
	if all, err = q.deeds(repl.Texts(words)); err == nil && len(all) == 0 {
		err = errors.New("no question: expected words such as read KEY")
	}
	for i := range all {
		all[i].Principal = t.Principal
	}
	return all, err
}

// ask returns the step of an expectation's question that decides: the first that is denied, or the last.
func (t *tested) ask(may *policy.Lookup, e expectation) (step policy.Deed, allowed bool, err error) {
	deeds, err := t.deeds(e.words)
	for _, d := range deeds {
		if step, allowed = d, may.Allowed(d.Action) != nil; !allowed {
			break
		}
	}
	return step, allowed, err
}

// clientsOf returns clients for the principals of a policy, with questions about what its rules allow to each.
func clientsOf(ctx context.Context, p *policy.Policy) (all []tested) {
	for _, who := range p.Examples(ctx) {
		if ctx.Err() != nil {
			break
		}
		t := tested{Principal: who, library: policy.Clients[0], expect: []expectation{{words: "connect"}}}
		keys := make(map[string]bool)
		for _, right := range p.Rights(who) {
			words := []string{strings.ToLower(right.Method.String())}
			if right.Method >= policy.Read {
				words = []string{"get", "set"}
			}
			for _, word := range words {
				if text := word + " " + format.Word(right.On); !keys[text] {
					keys[text] = true
					t.expect = append(t.expect, expectation{words: text})
				}
			}
		}
		all = append(all, t)
	}
	return all
}

func test(ctx context.Context, a *app.App, suites []suite, junit string, write bool) error {
	asked, failed := 0, 0
	var report strings.Builder
	for _, s := range suites {
		var names []string
		for _, name := range s.policies {
			if !filepath.IsAbs(name) && s.file != "-" {
				name = filepath.Join(filepath.Dir(s.file), name)
			}
			names = append(names, name)
		}
		if len(names) == 0 {
			return fault.Usagef("%s names no policy: add policy: FILE, or --policy FILE", format.Path(s.file))
		}
		p := s.asked
		if p == nil {
			var err error
			if p, err = read(ctx, a, names...); err != nil {
				return err
			}
		}
		var one junitSuite
		lookups := p.Lookups()
		for i, client := range s.clients {
			may := lookups.Of(client.Principal)
			who := strings.Join(format.PolicyChange{User: client.Username, Client: client.ClientID, Attributes: attributePairs(client.Attributes)}.Who(), " ")
			for j, e := range client.expect {
				if ctx.Err() != nil {
					return context.Cause(ctx)
				}
				step, allowed, err := client.ask(may, e)
				if err != nil {
					return asUsage(err)
				}
				s.clients[i].expect[j].allow = allowed
				asked++
				failure := ""
				if allowed != e.allow && !write {
					failed++
					answer := answerOf(p, step, p.Decide(step.Principal, step.Action))
					f := format.PolicyTest{File: s.file, Line: e.line, Who: who, Question: e.words, Expected: allowWord(e.allow), Where: answer.Where, Reason: cmp.Or(answer.Lacks, answer.Entry)}
					if !answer.Allowed && answer.Method != "" {
						f.Step = strings.TrimSpace(strings.ToLower(answer.Method) + " " + answer.On)
					}
					failure = f.Text()
					if err := a.Queue(f); err != nil {
						return err
					}
				}
				one.add(who, e.words, failure)
			}
		}
		report.WriteString(one.text(s.file))
		if write {
			if err := a.Queue(format.PolicyText{Text: s.String()}); err != nil {
				return err
			}
		}
	}
	if err := a.Flush(); err != nil || write {
		return err
	}
	if junit != "" {
		if err := os.WriteFile(junit, []byte(junitText(report.String())), 0o666); err != nil {
			return err
		}
	}
	a.Inform(fmt.Sprintf("%s: %d failed", format.Count(asked, "expectation"), failed))
	return fault.NoIf(failed > 0)
}

func allowWord(allow bool) string {
	if allow {
		return "allow"
	}
	return "deny"
}

// String returns the file of a suite.
func (s suite) String() string {
	var b strings.Builder
	quoted := make([]string, len(s.policies))
	for i, name := range s.policies {
		quoted[i] = yamltext.Quote(filepath.ToSlash(name))
	}
	fmt.Fprintf(&b, "policy: [%s]\ntests:\n", strings.Join(quoted, ", "))
	for _, t := range s.clients {
		lead := "  - "
		field := func(name, value string) {
			if value != "" {
				fmt.Fprintf(&b, "%s%s:%s\n", lead, name, value)
				lead = "    "
			}
		}
		quote := func(text string) string {
			if text == "" {
				return ""
			}
			return " " + yamltext.Quote(text)
		}
		field("user", quote(t.Username))
		field("clientId", quote(t.ClientID))
		var pairs []string
		for _, name := range slices.Sorted(maps.Keys(t.Attributes)) {
			pairs = append(pairs, yamltext.Quote(name)+": "+yamltext.Quote(t.Attributes[name]))
		}
		if len(pairs) > 0 {
			field("attributes", " {"+strings.Join(pairs, ", ")+"}")
		}
		if t.library != policy.Clients[0] {
			field("as", " "+t.library)
		}
		for _, allow := range []bool{true, false} {
			var list strings.Builder
			for _, e := range t.expect {
				if e.allow == allow {
					list.WriteString("\n      - " + yamltext.Quote(e.words))
				}
			}
			field(allowWord(allow), list.String())
		}
	}
	return b.String()
}
