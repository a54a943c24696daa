// Command hostile attacks a server as a client on its network could, or checks the delivery guarantees of the
// emulator's broker while clients disconnect; see hostile.sh.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/sscli/sscli/emulator"
	"github.com/sscli/sscli/scripts/harness"
)

const (
	mib = 1 << 20

	memoryLimit  = 64 * mib   // value of serve --limit memory, for attacks on memory
	defaultLimit = 1024 * mib // its default, for all others
	allowance    = 64 * mib   // memory that the process may use beyond the limit and the stored values
	longest      = 4 * time.Minute

	// longestWait is how long a PING or GET of an uninvolved client may take.
	longestWait = 100 * time.Millisecond
	// shortWait is the same in a short run, which may share the machine with other programs: only the time counts
	// that the server had a CPU for.
	shortWait = 2 * time.Second
)

func main() {
	if len(os.Args) == 6 && os.Args[1] == bystanderRole {
		bystander(os.Args[2], os.Args[3], os.Args[4], os.Args[5])
		return
	}
	if len(os.Args) == 2 && os.Args[1] == brokerRole {
		broker()
		return
	}
	short := flag.Bool("short", false, "a tenth of each load, and more time for an answer")
	full := flag.Bool("full", false, "run attacks on memory with limits of 64 and 256 MiB and without one")
	only := flag.String("only", "", "run only the attacks whose name contains `TEXT`")
	var s soak
	flag.DurationVar(&s.duration, "soak", 0, "instead of attacks, let clients publish and break off for this time")
	flag.IntVar(&s.clients, "clients", 200, "with -soak: how many clients")
	flag.Float64Var(&s.rate, "rate", 5, "with -soak: messages a second of each client")
	flag.Uint64Var(&s.seed, "seed", uint64(time.Now().UnixNano()), "with -soak: seed of the random choices")
	harness.Main(time.Hour, func(ctx context.Context, b *harness.Bench) error {
		if s.duration > 0 {
			return s.run(ctx, b)
		}
		return run(ctx, b, *only, *short, *full)
	})
}

// run runs the attacks, each on a new server, and prints a row of a Markdown table for each. It skips each
// attack whose name does not contain only.
func run(ctx context.Context, b *harness.Bench, only string, short, full bool) error {
	if err := writeUsers(b.Dir); err != nil {
		return err
	}
	if err := writeCertificate(b.Dir); err != nil {
		return err
	}
	issuer, err := newIssuer(b.Dir)
	if err != nil {
		return err
	}
	idle, err := startTarget(ctx, b, nil)
	if err != nil {
		return err
	}
	defer idle.stop()
	fmt.Println("| attack | peak memory, MiB | slowest PING or GET, ms | of an idle server meanwhile | what the attacker got | |")
	fmt.Println("| --- | --- | --- | --- | --- | --- |")
	var broken []string
	for _, a := range attacks() {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if !strings.Contains(a.name, only) {
			continue
		}
		limits := []int64{defaultLimit}
		if a.memory {
			if limits[0] = memoryLimit; full {
				limits = append(limits, 4*memoryLimit, defaultLimit)
			}
		}
		for _, limit := range limits {
			row, err := a.attempt(ctx, b, idle, issuer, limit, short)
			if err != nil {
				return fmt.Errorf("%s: %w", a.name, err)
			}
			verdict := cmp.Or(strings.Join(row.broken, ", "), "held")
			fmt.Printf("| %s | %s | %.1f | %.1f | %s | %s |\n", a.name, row.memory, milliseconds(row.answer), milliseconds(row.idle), row.got, verdict)
			if len(row.broken) > 0 {
				broken = append(broken, a.name+": "+verdict)
			}
		}
	}
	if len(broken) > 0 {
		fmt.Fprintf(os.Stderr, "hostile: %d bounds are broken:\n%s\n", len(broken), strings.Join(broken, "\n"))
		b.Miss()
	}
	return nil
}

// An attack is what one or more clients of an attacker do to a server.
type attack struct {
	name  string
	flags []string // flags of serve, in addition to those for all attacks

	// memory reports whether the server runs with memoryLimit, and with -full also with larger ones. Other attacks use the
	// default limits. The peak memory must not exceed the sum of the limit, allowance and the stored values.
	memory bool

	// alone means that there is no uninvolved client, because the attack disconnects all clients.
	alone bool

	// prepare, unless nil, writes files for the server before it starts, to a directory.
	prepare func(dir string) error

	// run carries out the attack and describes what the attacker got in a few words. An error, or a failed
	// [harness.Check], means that the attack could not be carried out.
	run func(ctx context.Context, t *target) (got string, err error)
}

// A row is the result of an attack.
type row struct {
	memory string // peak and bound, in MiB
	answer wait   // the slowest answers to an uninvolved client
	idle   wait   // the same for a server that nobody attacks; shows how busy the machine is
	got    string
	broken []string // bounds that were exceeded
}

func (a attack) attempt(ctx context.Context, b *harness.Bench, idle *target, issuer *emulator.Issuer, limit int64, short bool) (r row, err error) {
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	flags := a.flags
	if limit != defaultLimit {
		flags = append(slices.Clip(flags), "--limit", fmt.Sprint("memory=", limit))
	}
	if a.prepare != nil {
		if err := a.prepare(b.Dir); err != nil {
			return r, err
		}
	}
	t, err := startTarget(ctx, b, flags)
	if err != nil {
		return r, err
	}
	t.short, t.issuer = short, issuer
	defer t.stop()
	token := ""
	if slices.Contains(flags, "--sat-audience") {
		if token, err = issuer.Issue("bystander", time.Now(), longest); err != nil {
			return r, err
		}
	}
	var attacked *child
	if !a.alone {
		if attacked, _, err = startChild(ctx, bystanderRole, t.mqtt, t.redis, t.pid(), token); err != nil {
			return r, err
		}
	}
	control, _, err := startChild(ctx, bystanderRole, idle.mqtt, idle.redis, idle.pid(), "")
	if err != nil {
		return r, err
	}
	failed := harness.Try(func() { r.got, err = a.run(ctx, t) })
	if missing, ok := failed.(noAnswer); ok {
		r.got, failed = "no answer: "+plain(missing.error), nil
	}
	err = cmp.Or(failed, err)
	t.hangUp()
	var gone error
	if attacked != nil {
		r.answer, gone = slowest(attacked)
	}
	r.idle, _ = slowest(control)
	if leak, ok := errors.AsType[breach](err); ok {
		r.broken = append(r.broken, string(leak))
	} else if err != nil {
		return r, err
	}
	if gone != nil {
		r.broken = append(r.broken, "the uninvolved client: "+gone.Error())
	}
	if r.answer.slowest > longestWait && !short || r.answer.worked > shortWait {
		r.broken = append(r.broken, "PING or GET")
	}
	peak, err := t.peak()
	if err != nil {
		r.broken = append(r.broken, "the server ended")
		return r, nil
	}
	bound := limit + allowance + t.stored.Load()
	r.memory = fmt.Sprintf("%d of %d", peak/mib, bound/mib)
	if peak > bound {
		r.broken = append(r.broken, "memory")
	}
	return r, nil
}

func milliseconds(w wait) float64 { return float64(w.slowest.Microseconds()) / 1000 }

func attacks() []attack {
	return slices.Concat(stalls(), holds(), fills(), floods(), crowds(), leaks(), tokens(), deaf(), transports(), rights())
}
