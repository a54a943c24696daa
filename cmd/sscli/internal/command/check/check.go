// Package check is the command `sscli check`, which tells a site's monitoring about keys, locks and brokers.
//
// A spec is one check, from the command line or from a file (spec.go, file.go). A view is what is known of a
// broker and of the keys of its checks: read once (look.go), or kept current by a watch, for Prometheus
// (listen.go). judge compares the two and returns a verdict (judge.go), which is printed as a result, as the
// line of a monitoring plugin, or as metrics (output.go). What a check looks at is its kind (kind.go): each has a file of its
// own (key.go, lock.go, match.go, broker.go).
package check

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sscli/sscli/cmd/sscli/internal/app"
	"github.com/sscli/sscli/cmd/sscli/internal/complete"
	"github.com/sscli/sscli/cmd/sscli/internal/config"
	"github.com/sscli/sscli/cmd/sscli/internal/fault"
	"github.com/sscli/sscli/cmd/sscli/internal/suggest"
	"github.com/sscli/sscli/cmd/sscli/internal/usage"
	"github.com/sscli/sscli/format"
)

type flags struct {
	targets       map[string]*[]string // by the name of their kind; those of keys are arguments
	labels        []string
	conditions    map[string]*config.Text // of conditions with a value
	switches      map[string]*bool        // of the others
	file, state   config.File
	out           config.File
	lint, noWrite bool
	drift         usage.Duration
	listen        listenFlags
}

// New returns the command `sscli check`.
func New(a *app.App) *cobra.Command {
	f := flags{targets: make(map[string]*[]string), conditions: make(map[string]*config.Text), switches: make(map[string]*bool)}
	cmd := &cobra.Command{
		Use:         "check [KEY...]",
		Short:       "Check keys and locks for monitoring",
		GroupID:     app.GroupDebug,
		Annotations: map[string]string{app.Forms: app.Plugin + " " + prometheus},
		Long: `Check keys, locks and the broker, once, or with --listen for as long as it runs. Each
condition applies to the keys, the locks (--lock) or the patterns (--match) that it can be
about. Without a condition, a key must exist.

A limit is critical. Two, as in --max-age 10m,1h, are where it warns and where it is
critical. Times may be in days, such as 14d.

The exit code is 1 if a check warns or is critical, and 3, 4 or 124 if the broker does not
answer. With -o nagios, it is 0, 1, 2 or 3: OK, warning, critical, unknown. With
-o prometheus, it is 0 once the metrics are written.

A check is OK only if that is known; it is unknown if not. With --match, a condition on keys
applies to each key that matches.

An age is measured on the store's clock. To read it, sscli sets the key ` + ClockKey + `, which
expires after 10 s. With --no-write, in a protected context without --yes, or if the store
refuses it, an age is by this machine's clock. A client with a fast clock may have made a
version up to a minute younger than it is, unless --drift says that clocks are better.

The store does not say since when a lock is held or how often a key changed. --held-max
and --changes-max compare with what earlier runs put into the file of --state, or with
what --listen saw.`,
		Example: `  sscli check setpoint --max-age 10m,1h
  sscli check config --json .temp --min 10 --max 30 -o nagios
  sscli check --lock deploy --held-max 1h --state /var/lib/sscli/checks
  sscli check --match 'sensors/*' --count-min 10
  sscli check --rtt 100ms --skew 1s --cert-expires 14d
  sscli check -f checks.yaml -o prometheus --outfile /var/lib/node_exporter/sscli.prom
  sscli check -f checks.yaml --listen 127.0.0.1:9843`,
		ValidArgsFunction: complete.Keys(a, 0),
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.run(cmd.Context(), a, cmd, args)
		},
	}
	fs := cmd.Flags()
	for _, k := range kinds() {
		if k.flag != "" {
			f.targets[k.name] = fs.StringArray(k.name, nil, k.flag)
		}
	}
	for _, c := range conditions() {
		if c.value == "" {
			f.switches[c.name] = fs.Bool(c.name, false, c.usage)
			continue
		}
		f.conditions[c.name] = new(config.Text)
		fs.Var(f.conditions[c.name], c.name, c.usage)
	}
	fs.VarP(&f.file, "file", "f", "run the checks in `FILE`, - for standard input")
	fs.BoolVar(&f.lint, "lint", false, "find mistakes in the file of -f, and connect to no broker")
	fs.Var(&f.state, "state", "keep in `FILE` what the next run needs to know of this one")
	fs.StringArrayVar(&f.labels, "label", nil, "add the label `NAME=VALUE` to all metrics; may be repeated")
	fs.BoolVar(&f.noWrite, "no-write", false, "do not set "+ClockKey+" to read the store's clock")
	_ = f.drift.Set("1m") // it is valid
	fs.Var(&f.drift, "drift", "the clocks of clients are at most `TIME` ahead of the store's, which refuses more than the default")
	fs.Var(&f.out, "outfile", "with -o prometheus: write to `FILE`, which readers see whole, - for standard output")
	f.listen.bind(fs)
	return cmd
}

// prometheus is the form of output for Prometheus.
const prometheus = "prometheus"

func (f flags) run(ctx context.Context, a *app.App, cmd *cobra.Command, keys []string) error {
	if f.lint {
		return f.mistakes(ctx, a, cmd)
	}
	load := func() (views []*view, apps []*app.App, err error) {
		specs, err := f.specs(ctx, a, keys)
		if err != nil {
			return nil, nil, err
		}
		if err := f.together(a, specs); err != nil {
			return nil, nil, err
		}
		return f.views(ctx, a, cmd, specs)
	}
	views, apps, err := load()
	if err != nil {
		return err
	}
	if f.listen.listen != "" {
		m := &monitor{views: views, apps: apps, noWrite: f.noWrite, pause: permanentPause, refuse: refusedPause, now: time.Now, state: string(f.state), build: a.Build.Version,
			warn: a.Warn,
			log:  func(text string, args ...any) { a.Detail(fmt.Sprintf(text, args...)) }}
		if f.file != "" && f.file != "-" {
			m.load = load
		}
		return m.run(ctx, a, f.listen)
	}
	return f.once(ctx, a, views, apps)
}

// specs returns the checks of the command line or of the file.
func (f flags) specs(ctx context.Context, a *app.App, keys []string) ([]*spec, error) {
	if f.file == "" {
		return f.given(keys)
	}
	if len(f.targetsGiven(keys)) > 0 || len(f.set()) > 0 {
		return nil, fault.Usagef("-f together with keys, locks, patterns or conditions: write them into the file")
	}
	specs, mistakes, err := f.read(ctx, a)
	if err == nil && len(mistakes) > 0 {
		err = &fault.UsageError{Err: in(f.fileName(), mistakes)}
	}
	return specs, err
}

func (f flags) read(ctx context.Context, a *app.App) ([]*spec, []mistake, error) {
	text, err := a.Read(ctx, string(f.file), "the checks")
	if err != nil {
		return nil, nil, &fault.UsageError{Err: err}
	}
	return parseFile(ctx, []byte(text))
}

// fileName returns the name of the file of the checks in messages; "" = there is none.
func (f flags) fileName() string {
	if f.file == "-" {
		return "standard input"
	}
	return string(f.file)
}

// mistakes prints all mistakes in the file, also contexts that do not exist.
func (f flags) mistakes(ctx context.Context, a *app.App, cmd *cobra.Command) error {
	if f.file == "" {
		return fault.Usagef("--lint without a file: add -f FILE")
	}
	specs, mistakes, err := f.read(ctx, a)
	if err != nil {
		return err
	}
	for _, s := range specs {
		if s.context == "" {
			continue
		}
		if _, err := a.InContext(ctx, cmd.Flags(), s.context, "context"); err != nil {
			mistakes = append(mistakes, mistake{s.line, s.column, err})
		}
	}
	for _, m := range mistakes {
		if err := a.Emit(format.Finding{By: "check", File: f.fileName(), Line: m.line, Column: m.column, Message: m.err.Error()}); err != nil {
			return err
		}
	}
	if len(mistakes) > 0 {
		return fault.ErrNo
	}
	return a.Emit(format.Note{Level: format.Notice, Message: format.Count(len(specs), "check") + ", no mistakes"})
}

func (f flags) set() (set []condition) {
	for _, c := range conditions() {
		if on := f.switches[c.name]; on != nil && *on {
			set = append(set, c)
		} else if text := f.conditions[c.name]; text != nil && *text != "" {
			set = append(set, c)
		}
	}
	return set
}

// targetsGiven returns a check without conditions for each target on the command line.
func (f flags) targetsGiven(keys []string) (specs []*spec) {
	for _, k := range kinds() {
		var given []string
		switch {
		case k.flag != "":
			given = *f.targets[k.name]
		case k.operand != "":
			given = keys
		}
		for _, target := range given {
			specs = append(specs, &spec{kind: k.name, target: target})
		}
	}
	return specs
}

// given returns the checks of the command line. What is given twice is checked once.
func (f flags) given(keys []string) (specs []*spec, err error) {
	twice := make(map[[2]string]bool)
	for _, s := range f.targetsGiven(keys) {
		if s.target == "" {
			return nil, fault.Usagef("the key, the lock or the pattern is empty")
		}
		if id := [2]string{s.kind, s.target}; !twice[id] {
			twice[id] = true
			specs = append(specs, s)
		}
	}
	about := &spec{kind: aBroker}
	for _, c := range f.set() {
		text := ""
		if value := f.conditions[c.name]; value != nil {
			text = string(*value)
		}
		used := slices.Contains(c.on, aBroker)
		if used {
			if err := about.set(c, text); err != nil {
				return nil, fault.Usagef("--%s: %w", c.name, err)
			}
		}
		for _, s := range specs {
			if !slices.Contains(c.on, s.kind) {
				continue
			}
			used = true
			if err := s.set(c, text); err != nil {
				return nil, fault.Usagef("--%s: %w", c.name, err)
			}
		}
		if !used {
			return nil, fault.Usagef("--%s without %s: nothing to check", c.name, kindOf(c.on[0]).operand)
		}
	}
	if len(about.conditions) > 0 {
		specs = append(specs, about)
	}
	if len(specs) == 0 {
		_, operands := targets()
		return nil, fault.Usagef("nothing to check: expected %s, a condition on the broker such as --rtt 100ms, or -f FILE", strings.Join(operands, ", "))
	}
	for _, s := range specs {
		if err := s.check(); err != nil {
			return nil, fault.Usagef("%w", err)
		}
	}
	return specs, nil
}

// together returns a usage error for flags that exclude or require each other.
func (f flags) together(a *app.App, specs []*spec) error {
	l := f.listen
	switch {
	case l.listen != "" && (f.out != "" || a.Form != ""):
		return fault.Usagef("--listen together with --outfile, or -o nagios or prometheus: Prometheus reads the metrics from the port")
	case len(f.labels) > 0 && l.listen == "" && a.Form != prometheus:
		return fault.Usagef("--label without -o prometheus or --listen")
	case l.listen == "" && (l.port.Cert != "" || l.port.Key != "" || l.users != "" || l.insecure):
		return fault.Usagef("--tls-cert, --tls-key, --users and --no-login are for --listen")
	case f.out != "" && a.Form != prometheus:
		return fault.Usagef("--outfile without -o prometheus")
	}
	for _, s := range specs {
		if condition := s.needing(memory); condition != "" && f.state == "" && l.listen == "" {
			return &fault.UsageError{
				Err:  fmt.Errorf("%s of %s: one look cannot tell", condition, s.describe()),
				Hint: suggest.Try("`--state FILE`, or `--listen HOST:PORT`"),
			}
		}
	}
	return nil
}

// views returns a view for each broker, with the App that connects to it, and sets the context of each check to
// that of its view.
func (f flags) views(ctx context.Context, a *app.App, cmd *cobra.Command, specs []*spec) (views []*view, apps []*app.App, err error) {
	by := make(map[string][]*spec) // by the context of the file
	var names []string
	for _, s := range specs {
		if by[s.context] == nil {
			names = append(names, s.context)
		}
		by[s.context] = append(by[s.context], s)
	}
	brokers := make(map[string][]*spec) // a file may name the context of the command line
	for _, name := range names {
		one := a
		if name != "" {
			where := format.Location(f.fileName(), by[name][0].line, by[name][0].column) + ": context"
			if one, err = a.InContext(ctx, cmd.Flags(), name, where); err != nil {
				return nil, nil, err
			}
		}
		if err := one.Settings.Broker(); err != nil {
			return nil, nil, err
		}
		own := contextOf(one)
		for _, s := range by[name] {
			s.context = own
		}
		if brokers[own] == nil {
			apps = append(apps, one)
		}
		brokers[own] = append(brokers[own], by[name]...)
	}
	if mistakes := unique(specs); len(mistakes) > 0 {
		return nil, nil, &fault.UsageError{Err: in(f.fileName(), mistakes)}
	}
	labels, err := f.allLabels(specs)
	if err != nil {
		return nil, nil, err
	}
	live := f.listen.listen != ""
	for _, one := range apps {
		own := contextOf(one)
		views = append(views, newView(own, labels, brokers[own], f.drift.Duration, a.Form == "" && !live, a.Form == prometheus || live))
	}
	return views, apps, nil
}

func (f flags) allLabels(specs []*spec) (all []label, err error) {
	taken := make(map[string]bool)
	for _, s := range specs {
		for _, l := range s.labels {
			taken[l.name] = true
		}
	}
	for _, text := range f.labels {
		name, value, ok := strings.Cut(text, "=")
		switch {
		case !ok || !isLabelName(name):
			return nil, fault.Usagef("--label %.64q: expected a name of letters, digits and _, and a value, such as team=ops", text)
		case isReserved(name) || taken[name]:
			return nil, fault.Usagef("--label %s: series have this label already", name)
		}
		taken[name] = true
		all = append(all, label{name, value})
	}
	return all, nil
}
