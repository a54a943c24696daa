//go:build linux

// Command bench compares sscli with other programs, or with an earlier sscli; see scripts/bench.sh.
//
// Each [row] has a figure of sscli, mostly also the figure of a peer, and a goal for their ratio. The rows of
// a group share servers. -against measures the same rows with two builds of sscli.
package main

import (
	"context"
	"flag"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/sscli/sscli/scripts/harness"
)

type bench struct {
	*harness.Bench
	ctx    context.Context
	rounds int
	scale  float64
	only   string
	full   bool
	builds bool // two builds of sscli are compared
}

// A row is one measurement.
type row struct {
	number string // number of the goal in docs/performance.md
	what   string
	ours   func(*side) float64
	peer   func(*side) float64 // nil = the goal applies to the figure of ours itself
	goal   goal

	// or is a figure of ours, at most which meets the goal whatever the ratio; 0 = none.
	or float64

	// sizes means that peer is sscli too, with a smaller load: the ratio is the growth. The goal applies to
	// the ratio if growth is set, otherwise to the figure of ours itself.
	sizes, growth bool

	times float64 // number of rounds as a multiple of -rounds; 0 = 1
	alone bool    // not measured with -against
}

// A goal is a bound and the direction that is better.
type goal struct {
	more  bool // more is better
	bound float64
	none  bool // only a direction, without a bound
}

func least(bound float64) goal { return goal{more: true, bound: bound} }
func most(bound float64) goal  { return goal{bound: bound} }

var (
	more = goal{more: true, none: true}
	less = goal{none: true}
)

func (g goal) met(f float64) bool { return g.none || g.more && f >= g.bound || !g.more && f <= g.bound }

func (g goal) String() string {
	switch {
	case g.none:
		return ""
	case g.more:
		return fmt.Sprintf("≥ %g", g.bound)
	}
	return fmt.Sprintf("≤ %g", g.bound)
}

// A group is rows that share servers.
type group struct {
	name, about string
	tools       []string
	rows        func(*bench) []row
	when        when
}

// when says in which runs a group is measured unless it is named.
type when int

const (
	always when = iota
	beside      // not with -against, where it would take too long
	named       // only if it is named
)

var groups = []group{
	{"flights", "round trips and failures of single commands; sequential requests beside paho's client", []string{"mosquitto"}, flightRows, always},
	{"request", "single commands beside mosquitto_rr and redis-cli, and start-up", []string{"mosquitto", "mosquitto_rr", "redis-server", "redis-cli"}, requestRows, always},
	{"batch", "batch beside redis-cli, and beside paho's client on Mosquitto", []string{"mosquitto", "redis-server", "redis-cli"}, batchRows, always},
	{"watch", "watch beside mosquitto_sub", []string{"mosquitto_sub"}, watchRows, always},
	{"emulator", "requests a second and memory beside redis-server", []string{"mosquitto", "redis-server", "redis-cli", "redis-benchmark"}, emulatorRows, always},
	{"redis", "the Redis port beside redis-server", []string{"redis-server", "redis-cli", "redis-benchmark"}, redisRows, always},
	{"data", "serve --data beside the syncs of the disk", nil, dataRows, always},
	{"transfer", "export, diff and apply beside batch", nil, transferRows, always},
	{"growth", "cost at two sizes of the same work", []string{"redis-server", "redis-cli"}, growthRows, beside},
	{"attacks", "what scripts/hostile.sh finds; a tenth of each load without -full", nil, attackRows, beside},
	{"takeover", "how long the next holder of a lock waits, beside etcd", []string{"bash", "etcd", "etcdctl"}, takeoverRows, named},
	{"via", "--via kubectl beside kubectl port-forward, below scripts/cluster.sh", []string{"kubectl"}, viaRows, named},
}

func main() {
	if helper(os.Args[1:]) {
		return
	}
	var b bench
	flag.IntVar(&b.rounds, "rounds", 0, "measure most rows `N` times (default 5; with -against 6)")
	flag.Float64Var(&b.scale, "scale", 0, "multiply numbers of keys, requests and events by `F` (default 1; with -against 0.3)")
	flag.StringVar(&b.only, "only", "", "measure only the rows whose number and text contain `TEXT`")
	flag.BoolVar(&b.full, "full", false, "make the attacks and the contests for a lock in full, for about ten minutes each")
	against := flag.String("against", "", "measure the program of the commit `REV` beside this one")
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "usage: scripts/bench.sh [FLAGS] [GROUP...]\n\nGroups; those in parentheses run only if they are named:")
		for _, g := range groups {
			name := g.name
			if g.when == named {
				name = "(" + name + ")"
			}
			fmt.Fprintf(flag.CommandLine.Output(), "  %-12s %s\n", name, g.about)
		}
		fmt.Fprintln(flag.CommandLine.Output(), "\nFlags:")
		flag.PrintDefaults()
	}
	harness.Main(time.Hour, func(ctx context.Context, h *harness.Bench) error {
		b.Bench, b.ctx = h, ctx
		os.Setenv("XDG_CONFIG_HOME", b.Dir) // the user's contexts must not affect the measurement
		chosen, err := choose(flag.Args(), *against != "")
		if err != nil {
			return err
		}
		if *against != "" {
			b.against(*against, chosen)
			return nil
		}
		b.beside(chosen)
		return nil
	})
}

// helper does what another process of this program has started this one for, if args say so.
func helper(args []string) (done bool) {
	var err error
	switch {
	case len(args) == 2 && args[0] == "paho":
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
		defer cancel()
		err = pahoSets(ctx, args[1], inflight)
	case len(args) > 1 && args[0] == "run":
		err = measured(args[1:]...)
	default:
		return false
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	return true
}

// choose returns the groups with these names, or by default all groups that run without being named.
func choose(names []string, against bool) (chosen []group, err error) {
	for _, name := range names {
		if !slices.ContainsFunc(groups, func(g group) bool { return g.name == name }) {
			return nil, fmt.Errorf("no group %q; scripts/bench.sh -help lists them", name)
		}
	}
	for _, g := range groups {
		if slices.Contains(names, g.name) || len(names) == 0 && (g.when == always || g.when == beside && !against) {
			chosen = append(chosen, g)
		}
	}
	for _, g := range chosen {
		for _, tool := range g.tools {
			if _, err := exec.LookPath(tool); err != nil {
				return nil, fmt.Errorf("group %s: %w", g.name, err)
			}
		}
	}
	return chosen, nil
}

// n returns a number of keys, requests or events, multiplied by -scale.
func (b *bench) n(size int) int { return max(1, int(float64(size)*b.scale)) }

func (b *bench) defaults(rounds int, scale float64) {
	if b.rounds == 0 {
		b.rounds = rounds
	}
	if b.scale == 0 {
		b.scale = scale
	}
}

func (b *bench) roundsOf(r row) int {
	if r.times == 0 {
		return b.rounds
	}
	return max(1, int(float64(b.rounds)*r.times))
}

func (b *bench) wants(r row) bool { return strings.Contains(r.number+" "+r.what, b.only) }

// beside compares sscli with its peers. It prints a row of a Markdown table for each measurement: the medians
// of both sides, the median of the rounds' ratios, the goal, and whether it is met.
func (b *bench) beside(chosen []group) {
	b.defaults(5, 1)
	fmt.Print("| | what | sscli | peer | ratio | goal | | group |\n| --- | --- | --- | --- | --- | --- | --- | --- |\n")
	for _, g := range chosen {
		fmt.Fprintf(os.Stderr, "== %s\n", g.name)
		s := b.side(b.SSCLI)
		for _, r := range g.rows(b) {
			if b.wants(r) {
				b.measure(g, r, s)
			}
		}
		s.stop()
	}
}

// suspicious reports whether the memory at two sizes is the same to the megabyte. It may be something else's, such as
// that of the process that measures it.
func (r row) suspicious(large, small float64) bool {
	return r.sizes && strings.HasPrefix(r.what, "M") && math.Round(large) == math.Round(small)
}

func (b *bench) measure(g group, r row, s *side) {
	fmt.Fprintln(os.Stderr, r.what)
	contenders := []contender{{"sscli", func() float64 { return r.ours(s) }}}
	if r.peer != nil {
		contenders = append(contenders, contender{"peer", func() float64 { return r.peer(s) }})
	}
	f := rounds(b.ctx, b.roundsOf(r), contenders...)
	ratio, peer, judged := "", "", f[0].median()
	if r.peer != nil {
		over := f[0].over(f[1])
		ratio, peer = fmt.Sprintf("%.3g", over), figure(f[1].median())
		if r.suspicious(judged, f[1].median()) {
			ratio += ", the same at both sizes"
		}
		if !r.sizes || r.growth {
			judged = over
		}
	}
	verdict := "met"
	switch {
	case r.goal.none:
		verdict = ""
	case !r.goal.met(judged) && (r.or == 0 || f[0].median() > r.or):
		verdict = "**missed**"
		b.Miss()
	}
	goal := r.goal.String()
	if r.or > 0 {
		goal += fmt.Sprintf(", or sscli ≤ %g", r.or)
	}
	fmt.Printf("| %s | %s | %s | %s | %s | %s | %s | `%s` |\n", r.number, r.what, figure(f[0].median()), peer, ratio, goal, verdict, g.name)
}

// unchanged is the goal of -against: the new figure must be at least this fraction of the old one.
const unchanged = 0.95

// against compares sscli with an earlier sscli, which has its own servers. It stops after 15 minutes.
func (b *bench) against(rev string, chosen []group) {
	b.defaults(6, 0.3)
	b.builds = true
	earlier := filepath.Join(b.Dir, "earlier")
	tree := filepath.Join(b.Dir, "tree")
	harness.Must(harness.Run(exec.CommandContext(b.ctx, "git", "worktree", "add", "--detach", tree, rev)))
	err := harness.Build(b.ctx, tree, earlier, "./cmd/sscli")
	// Runs without the context, so that Ctrl-C does not leave the worktree behind.
	harness.Must(harness.Run(exec.Command("git", "worktree", "remove", "--force", tree)))
	harness.Check(err)

	end := time.Now().Add(15 * time.Minute)
	fmt.Printf("| | what | %s | now | ratio, over 1 is better | goal | | group |\n| --- | --- | --- | --- | --- | --- | --- | --- |\n", rev)
	for _, g := range chosen {
		fmt.Fprintf(os.Stderr, "== %s\n", g.name)
		sides := []*side{b.side(earlier), b.side(b.SSCLI)}
		for _, r := range g.rows(b) {
			switch {
			case r.alone || !b.wants(r):
			case time.Now().After(end):
				fmt.Fprintf(os.Stderr, "bench: not measured, the time is over: %s\n", r.what)
				b.Miss()
			default:
				b.compare(g, r, sides)
			}
		}
		for _, s := range sides {
			s.stop()
		}
	}
}

// compare measures a row with an earlier sscli and with the current one.
func (b *bench) compare(g group, r row, sides []*side) {
	fmt.Fprintln(os.Stderr, r.what)
	f := make([]figures, 2)
	ratio := 0.0
	measure := func() {
		for i, more := range rounds(b.ctx, max(6, b.roundsOf(r)),
			contender{"earlier", func() float64 { return r.ours(sides[0]) }},
			contender{"now", func() float64 { return r.ours(sides[1]) }}) {
			f[i] = append(f[i], more...)
		}
		if ratio = f[1].over(f[0]); !r.goal.more {
			ratio = f[0].over(f[1])
		}
	}
	err := harness.Try(func() {
		if measure(); ratio < unchanged {
			measure() // doubles the rounds, in case the difference was noise
		}
	})
	harness.Check(b.ctx.Err())
	if err != nil { // such as a flag that the earlier sscli lacks
		fmt.Fprintf(os.Stderr, "bench: not measured: %s: %v\n", r.what, err)
		return
	}
	what, _, _ := strings.Cut(r.what, " / ")
	verdict := "met"
	if ratio < unchanged {
		verdict = "**missed**"
		b.Miss()
	}
	fmt.Printf("| %s | %s | %s | %s | %.3g | ≥ %g | %s | `%s` |\n", r.number, what, figure(f[0].median()), figure(f[1].median()), ratio, unchanged, verdict, g.name)
}
