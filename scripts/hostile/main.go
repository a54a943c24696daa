// Command hostile attacks a server as a client on its network could; see hostile.sh.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/sscli/sscli/scripts/bench/harness"
)

const (
	mib = 1 << 20

	memoryLimit = 64 * mib // value of serve --limit memory, for attacks on memory
	allowance   = 64 * mib // how much memory the process may take beyond the limit and the stored values
	slowestPing = 100      // milliseconds that a PING of an uninvolved client may take
	shortPing   = 2000     // the same in a short run, which may share the machine with other programs
	longest     = 4 * time.Minute
)

func main() {
	if len(os.Args) == 3 && os.Args[1] == bystanderWord {
		bystander(os.Args[2])
		return
	}
	short := flag.Bool("short", false, "a tenth of each load, and more time for a PING")
	only := flag.String("only", "", "run only the attacks whose name contains `TEXT`")
	sscli := flag.String("sscli", "", "program to attack (default: built from the current directory)")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	broken, err := run(ctx, *sscli, *only, *short)
	if err != nil {
		fmt.Fprintln(os.Stderr, "hostile:", err)
		os.Exit(2)
	}
	if broken > 0 {
		fmt.Fprintf(os.Stderr, "hostile: %d bounds are broken\n", broken)
		os.Exit(1)
	}
}

// run makes the attacks, each on a new server, and prints a row of a Markdown table for each. It
// returns how many attacks broke a bound. It skips each attack whose name lacks the text in only.
func run(ctx context.Context, sscli, only string, short bool) (broken int, err error) {
	dir, err := os.MkdirTemp("", "hostile")
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if sscli == "" {
		sscli = filepath.Join(dir, "sscli")
		if err := harness.Build(ctx, sscli, "./cmd/sscli"); err != nil {
			return 0, err
		}
	}
	if err := writeUsers(dir); err != nil {
		return 0, err
	}
	idle, err := startTarget(ctx, sscli, dir, nil)
	if err != nil {
		return 0, err
	}
	defer idle.stop()
	fmt.Println("| attack | peak memory, MiB | slowest PING, ms | of an idle server meanwhile | what the attacker got | |")
	fmt.Println("| --- | --- | --- | --- | --- | --- |")
	for _, a := range attacks() {
		if ctx.Err() != nil {
			return broken, ctx.Err()
		}
		if !strings.Contains(a.name, only) {
			continue
		}
		row, err := a.attempt(ctx, sscli, dir, idle, short)
		if err != nil {
			return broken, fmt.Errorf("%s: %w", a.name, err)
		}
		verdict := cmp.Or(strings.Join(row.broken, ", "), "held")
		fmt.Printf("| %s | %s | %.1f | %.1f | %s | %s |\n", a.name, row.memory, row.ping, row.idle, row.got, verdict)
		if len(row.broken) > 0 {
			broken++
		}
	}
	return broken, nil
}

// An attack is what one or more clients of an attacker do to a server.
type attack struct {
	name  string
	flags []string // of serve, in addition to the flags for all attacks

	// memory reports whether the server runs with memoryLimit. Its peak memory must then not exceed
	// the sum of memoryLimit, allowance and the stored values. Other attacks use default limits.
	memory bool

	// run makes the attack and returns what the attacker got, in a few words. An error means
	// that the attack could not be made.
	run func(ctx context.Context, t *target) (got string, err error)
}

// A row is the result of an attack.
type row struct {
	memory string  // peak in MiB, and the bound if there is one
	ping   float64 // the slowest PING of an uninvolved client, in milliseconds
	idle   float64 // the same on a server that nobody attacks, which shows how busy the machine is
	got    string
	broken []string // bounds that did not hold
}

func (a attack) attempt(ctx context.Context, sscli, dir string, idle *target, short bool) (r row, err error) {
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	flags := a.flags
	if a.memory {
		flags = append(flags, "--limit", fmt.Sprint("memory=", memoryLimit))
	}
	t, err := startTarget(ctx, sscli, dir, flags)
	if err != nil {
		return r, err
	}
	t.short = short
	defer t.stop()
	attacked, err := startBystander(ctx, t)
	if err != nil {
		return r, err
	}
	control, err := startBystander(ctx, idle)
	if err != nil {
		return r, err
	}
	r.got, err = a.run(ctx, t)
	t.hangUp()
	var gone error
	r.ping, gone = attacked.end()
	r.idle, _ = control.end()
	if err != nil {
		return r, err
	}
	if gone != nil {
		r.broken = append(r.broken, "the uninvolved client: "+gone.Error())
	}
	if r.ping > slowestPing && !short || r.ping > shortPing {
		r.broken = append(r.broken, "PING")
	}
	peak, err := t.peak()
	if err != nil {
		r.broken = append(r.broken, "the server ended")
		return r, nil
	}
	r.memory = fmt.Sprint(peak / mib)
	if a.memory {
		bound := memoryLimit + allowance + t.stored.Load()
		r.memory += fmt.Sprintf(" of %d", bound/mib)
		if peak > bound {
			r.broken = append(r.broken, "memory")
		}
	}
	return r, nil
}

func attacks() []attack {
	return slices.Concat(stalls(), holds(), fills(), floods())
}
