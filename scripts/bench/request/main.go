//go:build linux

// Command request measures the cost of single requests. It compares commands of sscli with commands
// of Mosquitto and Redis, and the startup of sscli with the startup of a minimal Go program.
// scripts/bench-request.sh runs it.
package main

import (
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

	"github.com/sscli/sscli/internal/wire"
	"github.com/sscli/sscli/scripts/harness"
)

type bench struct {
	*harness.Bench
	rounds int // for each pair of commands
}

func main() {
	var b bench
	flag.IntVar(&b.rounds, "rounds", 200, "runs of each command; a tenth for commands over 40 ms")
	harness.Main(10*time.Minute, []string{"mosquitto", "mosquitto_rr", "redis-server", "redis-cli"}, b.run)
}

func (b *bench) run(ctx context.Context, h *harness.Bench) error {
	b.Bench = h
	stock, err := b.Mosquitto(ctx, harness.Unlimited)
	if err != nil {
		return err
	}
	quick, err := b.Mosquitto(ctx, harness.Unlimited+harness.NoDelay)
	if err != nil {
		return err
	}
	secure, err := b.SecureMosquitto(ctx, harness.Unlimited)
	if err != nil {
		return err
	}
	redis, err := b.Redis(ctx)
	if err != nil {
		return err
	}
	hello, err := b.hello(ctx)
	if err != nil {
		return err
	}
	for _, broker := range []harness.Endpoint{stock, quick, secure} {
		if _, err := harness.Run(b.Command(ctx, broker, "set", "k", "v")); err != nil {
			return err
		}
	}
	if _, err := harness.Run(exec.CommandContext(ctx, "redis-cli", "-p", redis.Port, "set", "k", "v")); err != nil {
		return err
	}

	get := func(e harness.Endpoint) []string { return b.Args(e, "get", "k") }
	for _, p := range []pair{
		{"P2", "ms, `get` / `mosquitto_rr`, stock Mosquitto", get(stock), roundTrip(stock), 0.12, b.rounds / 10},
		{"P2", "ms, `get` / `mosquitto_rr`, stock Mosquitto, TLS", get(secure), roundTrip(secure), 0.09, b.rounds / 10},
		{"P3", "ms, `get` / `mosquitto_rr`, Mosquitto with nodelay", get(quick), roundTrip(quick), 1.25, b.rounds},
		{"P3", "ms, `get` on Mosquitto with nodelay / `redis-cli get`", get(quick), []string{"redis-cli", "-p", redis.Port, "get", "k"}, 0.85, b.rounds},
		{"P4", "ms, `sscli version` / hello world in Go", []string{b.SSCLI, "version"}, []string{hello}, 1.8, b.rounds},
	} {
		if err := b.compare(ctx, p); err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
	}
	return b.start(ctx, hello)
}

// A pair is two commands; the first should take at most goal times as long as the second.
type pair struct {
	number, name string
	ours, peers  []string
	goal         float64
	rounds       int
}

func (b *bench) compare(ctx context.Context, p pair) error {
	run := func(args []string) func() (float64, error) {
		return func() (float64, error) {
			took, err := harness.Run(exec.CommandContext(ctx, args[0], args[1:]...))
			return took.Seconds() * 1000, err
		}
	}
	f, err := harness.Rounds(max(p.rounds, 5), harness.Contender{Name: "sscli", Measure: run(p.ours)}, harness.Contender{Name: "peer", Measure: run(p.peers)})
	if err != nil {
		return err
	}
	b.AtMost(p.number, p.name, f[0], f[1], p.goal)
	return nil
}

// start measures the page faults and the package initialization of sscli during startup.
func (b *bench) start(ctx context.Context, hello string) error {
	faults := func(args ...string) func() (float64, error) {
		return func() (float64, error) {
			cmd := exec.CommandContext(ctx, args[0], args[1:]...)
			if _, err := harness.Run(cmd); err != nil {
				return 0, err
			}
			usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage)
			if !ok {
				return 0, errors.New("the system does not report page faults")
			}
			return float64(usage.Minflt), nil
		}
	}
	f, err := harness.Rounds(max(b.rounds/4, 5),
		harness.Contender{Name: "sscli", Measure: faults(b.SSCLI, "version")},
		harness.Contender{Name: "hello", Measure: faults(hello)})
	if err != nil {
		return err
	}
	b.AtMost("P4", fmt.Sprintf("page faults of `sscli version`; hello world: %.0f", f[1].Median()), f[0], nil, 430)

	micros := map[string]harness.Figures{} // by package
	for range 21 {
		cmd := exec.CommandContext(ctx, b.SSCLI, "version")
		cmd.Env = append(os.Environ(), "GODEBUG=inittrace=1")
		var trace strings.Builder
		cmd.Stderr = &trace
		if err := cmd.Run(); err != nil {
			return err
		}
		for line := range strings.Lines(trace.String()) {
			var name string
			var at, took float64
			if _, err := fmt.Sscanf(line, "init %s @%f ms, %f ms clock", &name, &at, &took); err == nil {
				micros[name] = append(micros[name], took*1000)
			}
		}
	}
	slowest, most := "", harness.Figures{0}
	for name, figures := range micros {
		if first, _, _ := strings.Cut(name, "/"); strings.Contains(first, ".") && figures.Median() > most.Median() {
			slowest, most = name, figures
		}
	}
	if slowest == "" {
		return errors.New("the program printed no trace of its initialization")
	}
	b.AtMost("P4", "µs of the slowest package initialization outside the standard library, "+slowest, most, nil, 50)
	return nil
}

// hello builds a Go program that prints one word.
func (b *bench) hello(ctx context.Context) (string, error) {
	source, program := filepath.Join(b.Dir, "hello.go"), filepath.Join(b.Dir, "hello")
	if err := os.WriteFile(source, []byte("package main\n\nimport \"fmt\"\n\nfunc main() { fmt.Println(\"hello\") }\n"), 0o600); err != nil {
		return "", err
	}
	return program, harness.Build(ctx, program, source)
}

// roundTrip returns the command line of a GET by mosquitto_rr, which exits after the reply.
func roundTrip(e harness.Endpoint) []string {
	args := []string{"mosquitto_rr", "-V", "5", "-h", "127.0.0.1", "-p", e.Port, "-q", "1",
		"-t", wire.RequestTopic, "-e", "clients/bench/replies", "-D", "publish", "correlation-data", "0123456789abcdef",
		"-m", string(wire.AppendRequest(nil, wire.VerbGet, "k"))}
	if e.CA != "" {
		args = append(args, "--cafile", e.CA)
	}
	return args
}
