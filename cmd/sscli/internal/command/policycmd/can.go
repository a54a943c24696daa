package policycmd

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/sscli/sscli/cmd/sscli/internal/app"
	"github.com/sscli/sscli/cmd/sscli/internal/config"
	"github.com/sscli/sscli/cmd/sscli/internal/fault"
	"github.com/sscli/sscli/format"
	"github.com/sscli/sscli/internal/files"
	"github.com/sscli/sscli/internal/policy"
	"github.com/sscli/sscli/repl"
)

func newCan(a *app.App) *cobra.Command {
	var q question
	cmd := &cobra.Command{
		Use:   "can FILE... [-]",
		Short: "Ask what a client may do",
		Long: `Ask whether a client may do something, which rule decides, or which rule comes nearest and
what it lacks. The exit code is 0 if the answer to each question is yes, else 1.

The client is what its login proves (--user, --attribute) and the client id that it claims.
--read and --write ask for the right on the key alone. A command also has to connect, to send
requests and to get replies: the answer names what of that is denied and, with --connect, is
no. The words get, set, del, scan, watch and lock ask for all that the command needs.

With -, questions come from standard input, one a line: the same flags, quoted as in a
shell, or words such as read KEY. Flags on the command line are for all lines. A line that
begins with yes or no (or allow or deny) says which answer is right.

Where the documentation of the broker does not say what it does, the answer names what
sscli assumes.

` + forms,
		Example: `  sscli policy can authz.yaml --user ann --client-id sensor-1 --connect --write colors/red
  echo '--attribute building=22 publish sensors/22/x/telemetry' | sscli policy can authz.yaml -`,
		Args:              needFiles,
		ValidArgsFunction: cobra.FixedCompletions(nil, cobra.ShellCompDirectiveDefault),
		RunE: func(cmd *cobra.Command, args []string) error {
			files := slices.DeleteFunc(slices.Clone(args), func(name string) bool { return name == "-" })
			asks := len(files) < len(args)
			if len(files) == 0 {
				return fault.Usagef("missing FILE: - is for the questions")
			}
			p, err := read(cmd.Context(), a, files...)
			if err != nil {
				return err
			}
			deeds, err := q.deeds(nil)
			if err != nil {
				return asUsage(err)
			}
			if len(deeds) == 0 && !asks {
				return fault.Usagef("no question: add --connect, --publish, --subscribe, --read, --write, or - to read questions")
			}
			return can(cmd.Context(), a, p, q, deeds, asks)
		},
	}
	q.bind(cmd.Flags())
	return cmd
}

func asUsage(err error) error {
	if fault.IsA[*fault.UsageError](err) {
		return err
	}
	return &fault.UsageError{Err: err}
}

func can(ctx context.Context, a *app.App, p *policy.Policy, q question, deeds []policy.Deed, asks bool) error {
	no := false
	answer := func(deeds []policy.Deed, expected string) error {
		allowed := true
		for _, d := range deeds {
			got := p.Decide(d.Principal, d.Action)
			f := answerOf(p, d, got)
			if got.Allowed && d.Method >= policy.Read && d.ClientID != "" {
				step, reply, denied := p.For(d.Principal).Needs()
				if denied {
					f.Needs = strings.TrimSpace(strings.ToLower(step.Method.String()) + " " + step.On)
				} else if reply != "" {
					f.Assumes = append(f.Assumes, "its requests name the response topic "+reply)
				}
			}
			works := got.Allowed && (f.Needs == "" || !slices.ContainsFunc(deeds, func(d policy.Deed) bool { return d.Method == policy.Connect }))
			allowed = allowed && works
			if err := a.Queue(f); err != nil {
				return err
			}
		}
		no = no || allowed == (expected == "no" || expected == "deny")
		return a.Flush()
	}
	if err := answer(deeds, ""); err != nil || !asks {
		return errors.Join(err, fault.NoIf(no && err == nil))
	}
	source, end, err := a.Open(ctx, "-", "sscli policy can")
	if err != nil {
		return err
	}
	defer end()
	a.Streaming = true
	lines := bufio.NewScanner(files.NewTextReader(source))
	lines.Buffer(nil, 1<<20)
	for n := 1; lines.Scan(); n++ {
		text, expected := strings.TrimSpace(lines.Text()), ""
		if word, rest, _ := strings.Cut(text, " "); slices.Contains([]string{"yes", "no", "allow", "deny"}, word) {
			text, expected = rest, word
		}
		deeds, err := q.line(text)
		if err == nil && ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		if err != nil {
			return &fault.UsageError{Err: fmt.Errorf("line %d: %w", n, err)}
		}
		if len(deeds) == 0 {
			continue
		}
		if err := answer(deeds, expected); err != nil {
			return err
		}
	}
	if err := lines.Err(); fault.IsA[*files.TextError](err) {
		return &fault.UsageError{Err: fmt.Errorf("standard input: %w", err)}
	} else if err != nil {
		return errors.Join(err, fault.NoIf(no))
	}
	return fault.NoIf(no)
}

// line parses a line of questions: flags, and words such as read KEY. An empty line and a comment ask
// nothing.
func (q question) line(text string) ([]policy.Deed, error) {
	words, err := repl.Split(text)
	if err != nil || len(words) == 0 {
		return nil, err
	}
	fs := pflag.NewFlagSet("", pflag.ContinueOnError)
	fs.Usage = func() {}
	asked := question{user: q.user, client: q.client, attributes: q.attributes}
	asked.bind(fs)
	asked.attributes = slices.Clone(q.attributes)
	if err := fs.Parse(repl.Texts(words)); err != nil {
		return nil, err
	}
	if !fs.Changed("attribute") {
		asked.attributes = q.attributes
	}
	deeds, err := asked.deeds(fs.Args())
	if err == nil && len(deeds) == 0 {
		return nil, errors.New("no question: expected words such as read KEY")
	}
	return deeds, err
}

func answerOf(p *policy.Policy, d policy.Deed, got policy.Decision) format.PolicyAnswer {
	f := format.PolicyAnswer{
		User: d.Username, Client: d.ClientID, Attributes: attributePairs(d.Attributes), Method: d.Method.String(), On: d.On,
		Allowed: got.Allowed, Lacks: got.Lacks, Assumes: got.Assumes,
	}
	switch {
	case got.Entry != nil:
		f.Where = p.Where(got.Entry)
	case got.Rule != nil:
		f.Where = p.WhereRule(got.Rule)
	}
	if got.Allowed {
		f.Entry = got.Entry.String()
	}
	return f
}

func newDiff(a *app.App) *cobra.Command {
	var traces config.Files
	cmd := &cobra.Command{
		Use:   "diff OLD NEW",
		Short: "Show what a change of rules allows and denies",
		Long: `Show what a new authorization newly allows (+) and what it no longer allows (-): for all
principals that the rules of either name, with the topics and keys of their rules, and
examples for patterns and for the values of tokens. It may miss a loss that depends on
certain values. With --trace, also for what clients were seen to do, or to try. The exit code
is 1 if something is no longer allowed.

` + forms,
		Example: "  sscli policy diff authz.yaml new.yaml\n  kubectl get brokerauthorization -A -o yaml | sscli policy diff - new.yaml --trace log.json",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 2 {
				return fault.Usagef("expected OLD and NEW, two files")
			}
			return nil
		},
		ValidArgsFunction: cobra.FixedCompletions(nil, cobra.ShellCompDirectiveDefault),
		RunE: func(cmd *cobra.Command, args []string) error {
			both, err := readEach(cmd.Context(), a, args...)
			if err != nil {
				return err
			}
			seen, err := readLogs(cmd.Context(), a, traces, question{})
			if err != nil {
				return err
			}
			for _, note := range seen.notes {
				a.Inform(note)
			}
			lost := false
			for _, c := range policy.Compare(cmd.Context(), both[0], both[1], slices.Concat(seen.deeds, seen.without)) {
				f := format.PolicyChange{Change: "allowed", User: c.Username, Client: c.ClientID, Attributes: attributePairs(c.Attributes), Method: c.Method.String(), On: c.On, From: c.From}
				if c.Lost {
					lost, f.Change, f.Where = true, "lost", both[0].Where(c.Old)
				} else {
					f.Where = both[1].Where(c.New)
				}
				if err := a.Queue(f); err != nil {
					return err
				}
			}
			if err := a.Flush(); err != nil {
				return err
			}
			if cmd.Context().Err() != nil {
				return context.Cause(cmd.Context())
			}
			return fault.NoIf(lost)
		},
	}
	cmd.Flags().Var(&traces, "trace", "also compare what clients did or tried by `FILE`: of --trace-file with --trace-format json, of serve -v --log-format json, or a list as policy can reads; may be repeated")
	config.Own(cmd.Flags(), "trace")
	return cmd
}

func newSuggest(a *app.App) *cobra.Command {
	var q question
	var traces config.Files
	var general, unused bool
	var name string
	cmd := &cobra.Command{
		Use:   "suggest [FILE|-]...",
		Short: "Write the rules for what clients do",
		Long: `Write the smallest authorization that allows what clients were seen to do: each user name
or, without one, each client id may do exactly what it did. FILE is a trace (--trace-file
with --trace-format json), a log (serve -v --log-format json), or a list as sscli policy can
reads. A log names the topics for replies only with -vv, and never those of applications.
The flags add actions. Each client gets Connect. One that reads or writes a key also gets what
requests need: Publish for requests and Subscribe for replies.

Requests that were refused because the client lacked a right or a login are left out, as
are those of Redis clients without a login, which no rule can name; stderr says how many.

A key with *, ? or [ in a flag is a pattern; in a log, it is the key of this name.

With --unused, the operands are authorizations, and the output is the entries of their rules
that none of the --trace files needed.

--generalise turns three or more keys, or client ids, that begin alike into a pattern, and a
client's own id in a topic into {principal.clientId}; stderr shows each.`,
		Example: `  sscli serve -vv --log-format json -- make integration-test 2> log.json
  sscli policy suggest log.json > authz.yaml
  sscli policy suggest --user ann --client-id sensor-1 --read colors/red`,
		ValidArgsFunction: cobra.FixedCompletions(nil, cobra.ShellCompDirectiveDefault),
		RunE: func(cmd *cobra.Command, args []string) error {
			if unused {
				return showUnused(cmd.Context(), a, args, traces, q)
			}
			seen, err := readLogs(cmd.Context(), a, append(slices.Clone(args), traces...), q)
			if err != nil {
				return err
			}
			deeds, err := q.deeds(nil)
			if err != nil {
				return asUsage(err)
			}
			for _, d := range deeds {
				if d.Method >= policy.Read && strings.ContainsAny(d.On, "*?[") {
					d.Written = true
					seen.lacking(fmt.Sprintf("%s was taken as a pattern (keyType: Pattern); the one key of this name is %s", format.Word(d.On), format.Word(policy.QuotePattern(d.On))))
				}
				seen.add(d)
			}
			for _, note := range seen.leftOut() {
				a.Inform(note)
			}
			if len(seen.deeds) == 0 {
				return fault.Usagef("nothing was seen: expected a trace, a log, or actions such as --read KEY")
			}
			rules, err := policy.Suggest(cmd.Context(), seen.deeds)
			if err != nil && cmd.Context().Err() == nil {
				return &fault.UsageError{Err: err}
			}
			result := format.PolicyText{}
			if general {
				result.Notes = policy.Generalise(cmd.Context(), seen.deeds, rules)
			}
			result.Text = policy.ResourceOf(cmd.Context(), name, rules)
			if cmd.Context().Err() != nil {
				return context.Cause(cmd.Context())
			}
			for _, note := range append(seen.notes, result.Notes...) {
				a.Inform(strings.TrimSpace(note))
			}
			return a.Emit(result)
		},
	}
	fs := cmd.Flags()
	q.bind(fs)
	for _, name := range []string{"connect", "publish", "subscribe", "read", "write"} {
		fs.Lookup(name).Usage = map[string]string{
			"connect": "it connects", "publish": "it publishes to `TOPIC`; may be repeated", "subscribe": "it subscribes to `FILTER`; may be repeated",
			"read": "it reads `KEY`; may be repeated", "write": "it writes `KEY`; may be repeated",
		}[name]
	}
	fs.Var(&traces, "trace", "a `FILE`, as the operand; may be repeated")
	config.Own(fs, "trace")
	fs.BoolVar(&general, "generalise", false, "turn what looks alike into patterns")
	fs.BoolVar(&unused, "unused", false, "show what the rules in the operands allow and the traces never needed")
	fs.StringVar(&name, "name", "sscli-suggested", "`NAME` of the resource")
	return cmd
}

// showUnused prints the entries of the rules that no action in the traces needed.
func showUnused(ctx context.Context, a *app.App, names, traces []string, q question) error {
	if len(names) == 0 || len(traces) == 0 {
		return fault.Usagef("--unused: expected an authorization and --trace FILE")
	}
	p, err := read(ctx, a, names...)
	if err != nil {
		return err
	}
	seen, err := readLogs(ctx, a, traces, q)
	if err != nil {
		return err
	}
	unused := p.Unused(ctx, seen.deeds)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	for _, e := range unused {
		row := format.PolicyEntry{Who: strings.Join(e.Rule.Principals(), ", "), Method: e.Methods.String(), On: e.Text, Type: string(e.Type), Where: p.Where(e), Never: e.Never()}
		if err := a.Queue(row); err != nil {
			return err
		}
	}
	for _, note := range seen.notes {
		a.Inform(note)
	}
	a.Inform(format.Count(len(unused), "right") + " that the trace did not need")
	return a.Flush()
}
