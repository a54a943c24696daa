//go:build linux

// Command transfer compares the speed of `sscli export` and `sscli diff` with an `sscli batch` that
// gets the same keys. It also compares an `sscli apply` that changes nothing with export, and
// measures the memory of diff.
// scripts/bench-transfer.sh runs it.
package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/sscli/sscli/scripts/harness"
)

// The goals.
const (
	maxExport = 2.0 // time of export, relative to batch
	maxDiff   = 2.5 // time of diff with a file, relative to batch
	maxApply  = 1.5 // time of apply with an unchanged file, relative to export
)

type bench struct {
	*harness.Bench
	rounds, keys int
}

func main() {
	var b bench
	flag.IntVar(&b.rounds, "rounds", 3, "rounds")
	flag.IntVar(&b.keys, "keys", 1_000_000, "keys in the store")
	harness.Main(time.Hour, nil, b.run)
}

func (b *bench) run(ctx context.Context, h *harness.Bench) error {
	b.Bench = h
	store, err := b.Serve(ctx)
	if err != nil {
		return err
	}
	set := exec.CommandContext(ctx, b.SSCLI, b.Args(store, "batch", "-", "--inflight", "256")[1:]...)
	if err := harness.Feed(set, b.keys, "set key%08d %s\n", strings.Repeat("v", 100)); err != nil {
		return err
	}
	gets, exported := filepath.Join(b.Dir, "gets"), filepath.Join(b.Dir, "exported.jsonl")
	if err := b.writeGets(gets); err != nil {
		return err
	}
	var peaks harness.Figures // memory of diff, MiB
	f, err := harness.Rounds(b.rounds,
		b.contender(ctx, "batch", nil, b.Args(store, "batch", gets, "--inflight", "256")),
		b.contender(ctx, "export", nil, b.Args(store, "export", "-f", exported)),
		b.contender(ctx, "diff", &peaks, b.Args(store, "diff", exported)),
		b.contender(ctx, "apply", nil, b.Args(store, "apply", exported)))
	if err != nil {
		return err
	}
	b.AtMost("P16", fmt.Sprintf("seconds, `export` of %d keys / `batch --inflight 256` that gets them", b.keys), f[1], f[0], maxExport)
	b.AtMost("P16", fmt.Sprintf("seconds, `diff FILE` of %d keys / `batch --inflight 256` that gets them", b.keys), f[2], f[0], maxDiff)
	b.AtMost("P18", "seconds, `apply FILE` that changes nothing / `export`", f[3], f[1], maxApply)
	fmt.Printf("  diff: %.1f MiB at its peak, %.0f bytes a key\n", peaks.Median(), peaks.Median()*(1<<20)/float64(b.keys))
	return nil
}

func (b *bench) writeGets(name string) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	w := bufio.NewWriter(f)
	for n := range b.keys {
		fmt.Fprintf(w, "get key%08d\n", n)
	}
	return errors.Join(w.Flush(), f.Close())
}

// contender returns a contender that measures how many seconds a command takes, with its output
// discarded. It also appends the command's peak memory in MiB to peaks, unless peaks is nil.
func (b *bench) contender(ctx context.Context, name string, peaks *harness.Figures, args []string) harness.Contender {
	return harness.Contender{Name: name, Measure: func() (float64, error) {
		cmd := exec.CommandContext(ctx, args[0], args[1:]...)
		took, err := harness.Run(cmd)
		if err != nil {
			return 0, err
		}
		if peaks != nil {
			usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage)
			if !ok {
				return 0, errors.New("the system does not report the use of memory")
			}
			*peaks = append(*peaks, float64(usage.Maxrss)/1024)
		}
		fmt.Printf("  %-8s %8.2f s\n", name, took.Seconds())
		return took.Seconds(), nil
	}}
}
