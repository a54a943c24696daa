// Package harness has the shared parts of the benchmarks and the attacks: it builds the program under test, starts
// servers on loopback and stops them, measures contenders in turn, and compares the
// result with a goal.
//
// A benchmark declares its own flags and calls [Main] with a function that starts
// servers ([Bench.Mosquitto], [Bench.Serve], ...), measures ([Rounds]) and states its
// goals ([Bench.AtLeast], [Bench.AtMost]).
package harness

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// A Bench is one run of a benchmark.
type Bench struct {
	SSCLI string // path of the program under test
	Dir   string // scratch directory, removed at the end

	missed  bool // a goal was missed
	servers []*exec.Cmd
}

// Main parses the flags, runs a benchmark for at most limit, which the flag -limit overrides, and
// stops the servers it started. It exits with 2 if the benchmark could not be run, and with 1 if
// the benchmark missed a goal. The named tools must be on the PATH.
func Main(limit time.Duration, tools []string, run func(context.Context, *Bench) error) {
	sscli := flag.String("sscli", "", "sscli to measure (default: built from the current directory)")
	flag.DurationVar(&limit, "limit", limit, "give up after this time")
	flag.Parse()
	for _, tool := range tools {
		if _, err := exec.LookPath(tool); err != nil {
			exit(err)
		}
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	b := Bench{SSCLI: *sscli}
	if err := b.run(ctx, run); err != nil {
		exit(err)
	}
	if b.missed {
		os.Exit(1)
	}
}

func exit(err error) {
	fmt.Fprintf(os.Stderr, "%s: %v\n", filepath.Base(os.Args[0]), err)
	os.Exit(2)
}

func (b *Bench) run(ctx context.Context, run func(context.Context, *Bench) error) (err error) {
	if b.Dir, err = os.MkdirTemp("", "bench"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(b.Dir)) }()
	if b.SSCLI == "" {
		b.SSCLI = filepath.Join(b.Dir, "sscli")
		if err := Build(ctx, b.SSCLI, "./cmd/sscli"); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithCancel(ctx)
	defer b.wait()
	defer cancel() // terminates the servers
	return run(ctx, b)
}

// Build builds a Go package or file into a program, with the flags of a release.
func Build(ctx context.Context, program, source string) error {
	cmd := exec.CommandContext(ctx, "go", "build", "-buildvcs=false", "-trimpath", "-tags", "nethttpomithttp2", "-ldflags", "-s -w -X main.buildVersion=bench", "-o", program, source)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	_, err := Run(cmd)
	return err
}

// Run runs a command and returns how long it took. The error includes what the command
// wrote to standard error.
func Run(cmd *exec.Cmd) (time.Duration, error) {
	var stderr strings.Builder
	cmd.Stderr = &stderr
	begin := time.Now()
	err := cmd.Run()
	took := time.Since(begin)
	if err != nil {
		return took, fmt.Errorf("%s: %w: %s", strings.Join(cmd.Args, " "), err, stderr.String())
	}
	return took, nil
}

// Feed runs a program with n lines on its standard input. line is a format string; its operands are
// the number of the line, from 0, and value.
func Feed(cmd *exec.Cmd, n int, line, value string) error {
	read, write := io.Pipe()
	go func() { // ends when everything is written or the program ends
		w := bufio.NewWriter(write)
		var err error
		for i := 0; i < n && err == nil; i++ {
			_, err = fmt.Fprintf(w, line, i, value)
		}
		write.CloseWithError(errors.Join(err, w.Flush()))
	}()
	cmd.Stdin = read
	_, err := Run(cmd)
	read.Close()
	return err
}

// AtLeast prints a row of a Markdown table: the number of a goal in docs/performance.md,
// what is measured, the medians of ours and of peer, the median of the ratios of ours to
// peer in each round, the goal, and whether it is met. If peer is nil, the goal applies to
// the median of ours.
func (b *Bench) AtLeast(number, what string, ours, peer Figures, goal float64) {
	b.row(number, what, ours, peer, "≥", goal, func(ratio float64) bool { return ratio >= goal })
}

// AtMost is AtLeast for figures that should be small.
func (b *Bench) AtMost(number, what string, ours, peer Figures, goal float64) {
	b.row(number, what, ours, peer, "≤", goal, func(ratio float64) bool { return ratio <= goal })
}

func (b *Bench) row(number, what string, ours, peer Figures, sign string, goal float64, met func(float64) bool) {
	ratio, beside := ours.Median(), ""
	if peer != nil {
		ratio, beside = ours.Over(peer), figure(peer.Median())
	}
	verdict := "met"
	if !met(ratio) {
		verdict = "**missed**"
		b.Miss()
	}
	fmt.Printf("| %s | %s | %s | %s | %.3g | %s %g | %s |\n", number, what, figure(ours.Median()), beside, ratio, sign, goal, verdict)
}

// figure rounds f to three significant digits, or to an integer if f is at least 100.
func figure(f float64) string {
	if f >= 100 {
		return fmt.Sprintf("%.0f", f)
	}
	return fmt.Sprintf("%.3g", f)
}

// Miss records a missed goal without printing anything.
func (b *Bench) Miss() { b.missed = true }
