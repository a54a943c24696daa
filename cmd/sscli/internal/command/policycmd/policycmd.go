// Package policycmd has the commands of `sscli policy`, which test the authorization of a broker before it
// is applied. Package policy decides; the emulator asks the same package.
package policycmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/sscli/sscli/cmd/sscli/internal/app"
	"github.com/sscli/sscli/cmd/sscli/internal/config"
	"github.com/sscli/sscli/cmd/sscli/internal/fault"
	"github.com/sscli/sscli/format"
	"github.com/sscli/sscli/internal/files"
	"github.com/sscli/sscli/internal/policy"
)

const forms = `FILE is a BrokerAuthorization as kubectl, az or the REST API print it, YAML or JSON, or the list
of rules that the portal shows. Resources of other kinds in the file are ignored.`

// New returns the command `sscli policy` with its subcommands.
func New(a *app.App) *cobra.Command {
	return app.WithCommands(&cobra.Command{
		Use:         "policy",
		Short:       "Test authorization before it is applied",
		GroupID:     app.GroupDebug,
		Annotations: map[string]string{app.Offline: ""},
		Long: `Test a BrokerAuthorization before it locks anybody out, without a broker: find mistakes,
ask what a client may do and which rule decides, or who may use a key, keep the answers as
tests, compare two versions, and write the rules for what a client does. sscli serve --policy decides by the same rules.

` + forms,
		Example: `  sscli policy check authz.yaml
  sscli policy can authz.yaml --user ann --client-id sensor-1 --write colors/red
  kubectl get brokerauthorization -A -o yaml | sscli policy diff - new.yaml`,
	}, newCheck(a), newCan(a), newWho(a), newTest(a), newTable(a), newDiff(a), newSuggest(a))
}

// read parses a policy of one or more files, "-" for standard input.
func read(ctx context.Context, a *app.App, names ...string) (*policy.Policy, error) {
	all, err := readEach(ctx, a, names...)
	if err != nil {
		return nil, err
	}
	return policy.Merge(all...), nil
}

// readEach parses the policies of files at the same time.
func readEach(ctx context.Context, a *app.App, names ...string) ([]*policy.Policy, error) {
	all, errs := make([]*policy.Policy, len(names)), make([]error, len(names))
	var parsers sync.WaitGroup
	for i, name := range names {
		text, err := a.Read(ctx, name, "the policy")
		if err != nil {
			errs[i] = &fault.UsageError{Err: err}
			break
		}
		parsers.Go(func() { all[i], errs[i] = parse(ctx, name, text) })
	}
	parsers.Wait()
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}

// parse parses what was read from a file.
func parse(ctx context.Context, name, text string) (*policy.Policy, error) {
	if name == "-" {
		name = "standard input"
	}
	decoded, err := files.DecodeText([]byte(text)) // a redirection of PowerShell writes UTF-16
	if err != nil {
		return nil, &fault.UsageError{Err: fmt.Errorf("%s: %w", format.Location(name, 0, 0), err)}
	}
	p, err := policy.ParseUntil(ctx, name, decoded)
	if err != nil && ctx.Err() == nil {
		err = &fault.UsageError{Err: err}
	}
	return p, err
}

func needFiles(_ *cobra.Command, args []string) error {
	if len(args) == 0 {
		return fault.Usagef("missing FILE")
	}
	return nil
}

func newCheck(a *app.App) *cobra.Command {
	var least string
	var ignore []string
	cmd := &cobra.Command{
		Use:   "check FILE...",
		Short: "Find mistakes in an authorization",
		Long: `Find mistakes in an authorization: what the broker does not understand, topics and keys that
match nothing, and, by asking the rules, for each principal: clients that may use keys but
cannot connect, send requests, get replies or watch; clients that read what belongs to
others, or can take their client ids; and rules that add nothing.

Each finding is a line: FILE:LINE: SEVERITY: ID: the problem; how to fix it. A change of the
rules was tried before it is shown. An error does not work, and a warning does not do what it
seems to do; info is shown only with --severity info: it works, but not for all clients of
the rule. The exit code is 1 if there are findings. docs/authorization.md explains each ID.

A comment such as # sscli:ignore SS021: the dashboard reads everything, in the line of a
finding or before it, silences it; before all else, in the whole file. --ignore does so for
all files.

` + forms,
		Example:           "  sscli policy check authz.yaml\n  kubectl get brokerauthorization -A -o yaml | sscli policy check -",
		Args:              needFiles,
		ValidArgsFunction: cobra.FixedCompletions(nil, cobra.ShellCompDirectiveDefault),
		RunE: func(cmd *cobra.Command, args []string) error {
			severity, ok := policy.ParseSeverity(least)
			if !ok {
				return fault.Usagef("--severity %.32q: must be info, warning or error", least)
			}
			for _, id := range ignore {
				if !regexp.MustCompile(`^SS\d{3}$`).MatchString(id) {
					return fault.Usagef("--ignore %.32q: expected an ID such as SS021", id)
				}
			}
			return check(cmd.Context(), a, args, severity, ignore)
		},
	}
	cmd.Flags().StringVar(&least, "severity", "warning", "show findings of at least this `SEVERITY`: info, warning or error")
	cmd.Flags().StringSliceVar(&ignore, "ignore", nil, "show no findings with this `ID`, such as SS021; may be repeated")
	return cmd
}

func check(ctx context.Context, a *app.App, names []string, least policy.Severity, ignore []string) error {
	shown, resources := 0, 0
	for _, name := range names {
		p, err := read(ctx, a, name)
		var findings []policy.Finding
		if bad, ok := errors.AsType[*policy.SyntaxError](err); ok {
			findings = []policy.Finding{{ID: policy.IDSyntax, File: bad.File, Line: bad.Line, Severity: policy.Error, Message: bad.Message}}
		} else if err != nil {
			return err
		} else {
			if findings = p.Check(ctx, least); ctx.Err() != nil {
				return context.Cause(ctx)
			}
			resources += len(p.Resources)
		}
		for _, f := range findings {
			if slices.Contains(ignore, f.ID) {
				continue
			}
			shown++
			if err := a.Queue(format.Finding{By: "policy", ID: f.ID, File: f.File, Line: f.Line, Severity: f.Severity.String(), Message: f.Message, Hint: f.Hint}); err != nil {
				return err
			}
		}
	}
	if err := a.Flush(); err != nil {
		return err
	}
	a.Inform(fmt.Sprintf("%s checked: %s", format.Count(resources, "authorization"), format.Count(shown, "finding")))
	return fault.NoIf(shown > 0)
}

func newTable(a *app.App) *cobra.Command {
	var markdown bool
	cmd := &cobra.Command{
		Use:               "table FILE...",
		Short:             "Show who may do what",
		Long:              "Show who may do what: a row for each principal and each topic or key of its rules.\n\n" + forms,
		Example:           "  sscli policy table authz.yaml -o human\n  sscli policy table authz.yaml --markdown >> review.md",
		Args:              needFiles,
		ValidArgsFunction: cobra.FixedCompletions(nil, cobra.ShellCompDirectiveDefault),
		RunE: func(cmd *cobra.Command, args []string) error {
			p, err := read(cmd.Context(), a, args...)
			if err != nil {
				return err
			}
			return table(cmd.Context(), a, p, markdown, len(args) == 1)
		},
	}
	cmd.Flags().BoolVar(&markdown, "markdown", false, "print a table in Markdown")
	return cmd
}

func table(ctx context.Context, a *app.App, p *policy.Policy, markdown, one bool) error {
	byWho := make(map[string][]format.Row)
	for _, r := range p.Rules {
		principals := r.Principals()
		for _, e := range r.Entries {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			where := fmt.Sprintf("line %d %s", e.Line, r.Name)
			if !one {
				where = fmt.Sprintf("%s:%d %s", p.Resources[r.Resource].File, e.Line, r.Name)
			}
			on := e.Text
			if len(e.ClientIDs) > 0 {
				on = strings.TrimSpace(on + " as " + strings.Join(e.ClientIDs, ", "))
			}
			for _, who := range principals {
				byWho[who] = append(byWho[who], format.PolicyEntry{Who: who, Method: e.Methods.String(), On: on, Type: string(e.Type), Where: where, Never: e.Never()})
			}
		}
	}
	var rows []format.Row
	for _, who := range slices.Sorted(maps.Keys(byWho)) {
		rows = append(rows, byWho[who]...)
	}
	if markdown {
		var lines strings.Builder
		lines.WriteString("| who | may | on | rule |\n| --- | --- | --- | --- |\n")
		for _, r := range rows {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			e := r.(format.PolicyEntry)
			on := cellText(e.On)
			if e.Type != "" && e.Type != string(policy.Pattern) {
				on += " (" + e.Type + ")"
			}
			if e.Never != "" {
				on += " (never: " + cellText(e.Never) + ")"
			}
			fmt.Fprintf(&lines, "| %s | %s | %s | %s |\n", cellText(e.Who), e.Method, on, cellText(e.Where))
		}
		return a.Emit(format.PolicyText{Text: lines.String()})
	}
	a.Out.Measure(rows[:min(len(rows), 10_000)]...)
	for _, r := range rows {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err := a.Queue(r); err != nil {
			return err
		}
	}
	return a.Flush()
}

func cellText(text string) string {
	if text == "" {
		return ""
	}
	return "`" + strings.ReplaceAll(strings.ReplaceAll(format.Escape(text), "|", `\|`), "`", "'") + "`"
}

func attributePairs(set map[string]string) (all []string) {
	for _, name := range slices.Sorted(maps.Keys(set)) {
		all = append(all, name+"="+set[name])
	}
	return all
}

// A question is a client, and actions of that client.
type question struct {
	user, client       config.Text
	attributes         []string
	connect            bool
	publish, subscribe []string
	read, write        []string
	library            string // one of policy.Clients; "" = the first
}

func (q *question) bind(fs *pflag.FlagSet) {
	fs.Var(&q.user, "user", "the `NAME` that the login proves")
	fs.Var(&q.client, "client-id", "the client `ID`")
	config.Own(fs, "client-id")
	fs.StringArrayVar(&q.attributes, "attribute", nil, "an attribute of the client, `NAME=VALUE`; may be repeated")
	fs.BoolVar(&q.connect, "connect", false, "may it connect?")
	fs.StringArrayVar(&q.publish, "publish", nil, "may it publish to `TOPIC`? may be repeated")
	fs.StringArrayVar(&q.subscribe, "subscribe", nil, "may it subscribe to `FILTER`? may be repeated")
	fs.StringArrayVar(&q.read, "read", nil, "may it read `KEY` (get, keynotify)? may be repeated")
	fs.StringArrayVar(&q.write, "write", nil, "may it write `KEY` (set, del, vdel)? may be repeated")
}

func (q *question) principal() (policy.Principal, error) {
	p := policy.Principal{ClientID: string(q.client), Username: string(q.user)}
	for _, text := range append([]string{p.Username, p.ClientID}, q.attributes...) {
		if !utf8.ValidString(text) {
			return p, fault.Usagef("%.64q: not UTF-8, as what rules say of clients is", text)
		}
	}
	for _, pair := range q.attributes {
		name, value, ok := strings.Cut(pair, "=")
		if !ok || name == "" {
			return p, fault.Usagef("--attribute %.64q: expected NAME=VALUE", pair)
		}
		if p.Attributes == nil {
			p.Attributes = make(map[string]string)
		}
		p.Attributes[name] = value
	}
	return p, nil
}

// deeds returns the client's actions. More actions are words such as read KEY.
func (q *question) deeds(words []string) (all []policy.Deed, err error) {
	who, err := q.principal()
	if err != nil {
		return nil, err
	}
	add := func(m policy.Method, list ...string) {
		for _, on := range list {
			all = append(all, policy.Deed{Principal: who, Action: policy.Action{Method: m, On: on}})
		}
	}
	if q.connect {
		add(policy.Connect, "")
	}
	add(policy.Publish, q.publish...)
	add(policy.Subscribe, q.subscribe...)
	add(policy.Read, q.read...)
	add(policy.Write, q.write...)
	command := false
	if len(words) > 1 && (who.ClientID != "" || q.library != "") {
		for _, key := range words[1:] {
			var journey []policy.Action
			journey, command = policy.Journey(strings.ToLower(words[0]), cmp.Or(q.library, policy.Clients[0]), who.ClientID, key)
			for _, action := range journey {
				add(action.Method, action.On)
			}
		}
	}
	if len(words) > 0 && !command {
		m, ok := policy.ParseMethod(words[0])
		switch strings.ToLower(words[0]) {
		case "get", "watch", "keynotify", "scan":
			m, ok = policy.Read, true
		case "lock":
			m, ok = policy.Read|policy.Write, true
		case "set", "del", "vdel":
			m, ok = policy.Write, true
		}
		switch {
		case !ok:
			return nil, fmt.Errorf("%.64q: expected connect, publish, subscribe, read or write", words[0])
		case m == policy.Connect && len(words) == 1:
			add(m, "")
		case m == policy.Connect || len(words) == 1:
			return nil, fmt.Errorf("%s: expected %s", words[0], map[bool]string{true: "nothing after it", false: "a topic or a key"}[m == policy.Connect])
		default:
			for _, single := range m.Each() {
				add(single, words[1:]...)
			}
		}
	}
	for _, d := range all {
		if err := d.Check(); err != nil {
			return nil, err
		}
	}
	return all, nil
}
