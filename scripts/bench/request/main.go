// Command request measures what single requests cost: commands of sscli beside those of
// Mosquitto and Redis, start-up beside a Go program that does nothing, requests one after
// the other beside paho's client, and the emulator beside a Mosquitto with a store
// attached. scripts/bench-request.sh runs it.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"github.com/sscli/sscli/client/wire"
	"github.com/sscli/sscli/scripts/bench/harness"
)

const throughputRounds = 5

type bench struct {
	*harness.Bench
	rounds   int // of a pair of commands
	requests int // in a round of throughput
}

func main() {
	var b bench
	flag.IntVar(&b.rounds, "rounds", 200, "runs of each command; a tenth for commands over 40 ms")
	flag.IntVar(&b.requests, "requests", 40_000, "requests in a round of throughput")
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
	own, err := b.Serve(ctx)
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
	for _, broker := range []harness.Endpoint{stock, quick, secure, own} {
		if _, err := harness.Run(b.Command(ctx, broker, "set", "k", "v")); err != nil {
			return err
		}
	}
	if _, err := harness.Run(exec.CommandContext(ctx, "redis-cli", "-p", redis.Port, "set", "k", "v")); err != nil {
		return err
	}

	get := func(e harness.Endpoint) []string { return b.Args(e, "get", "k") }
	fmt.Printf("%-4s %-46s %10s %10s %8s %8s\n", "", "", "sscli ms", "peer ms", "ratio", "goal")
	for _, p := range []pair{
		{"P2", "get / mosquitto_rr, stock Mosquitto", get(stock), roundTrip(stock), 0.08, b.rounds / 10},
		{"P2", "get / mosquitto_rr, stock Mosquitto, TLS", get(secure), roundTrip(secure), 0.09, b.rounds / 10},
		{"P3", "get / mosquitto_rr, Mosquitto with nodelay", get(quick), roundTrip(quick), 1.05, b.rounds},
		{"P3", "get / redis-cli get", get(quick), []string{"redis-cli", "-p", redis.Port, "get", "k"}, 0.65, b.rounds},
		{"P4", "sscli version / hello world in Go", []string{b.SSCLI, "version"}, []string{hello}, 1.9, b.rounds},
	} {
		if err := b.compare(ctx, p); err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
	}
	if err := b.sequence(ctx, stock); err != nil {
		return fmt.Errorf("requests in sequence: %w", err)
	}
	if err := b.emulator(ctx, own, quick); err != nil {
		return fmt.Errorf("emulator: %w", err)
	}
	return nil
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
	b.report(p.number, p.name, f, "<=", p.goal)
	return nil
}

// sequence sends one request after the other to a stock Mosquitto.
func (b *bench) sequence(ctx context.Context, e harness.Endpoint) error {
	f, err := harness.Rounds(throughputRounds,
		harness.Contender{Name: "sscli", Measure: func() (float64, error) { return b.gets(ctx, e, 4000, 1) }},
		harness.Contender{Name: "paho", Measure: func() (float64, error) { return harness.PahoRate(ctx, e, "k", 2*time.Second) }})
	if err != nil {
		return err
	}
	b.report("P5", "gets in sequence per second / paho's", f, ">=", 100)
	return nil
}

// emulator compares the emulator with a Mosquitto that has a store attached.
func (b *bench) emulator(ctx context.Context, own, attached harness.Endpoint) error {
	f, err := harness.Rounds(throughputRounds,
		harness.Contender{Name: "emulator", Measure: func() (float64, error) { return b.gets(ctx, own, b.requests, 64) }},
		harness.Contender{Name: "Mosquitto", Measure: func() (float64, error) { return b.gets(ctx, attached, b.requests, 64) }})
	if err != nil {
		return err
	}
	b.report("P8", "emulator / Mosquitto with a store, 64 in flight", f, ">=", 2.5)
	return nil
}

// report prints a row: the medians of both contenders, and their ratio with its goal.
func (b *bench) report(number, name string, f []harness.Figures, sign string, goal float64) {
	ratio := f[0].Over(f[1])
	met := ratio <= goal
	if sign == ">=" {
		met = ratio >= goal
	}
	verdict := ""
	if !met {
		verdict = "  missed"
		b.Miss()
	}
	fmt.Printf("%-4s %-46s %10.2f %10.2f %8.3f %2s %5.4g%s\n", number, name, f[0].Median(), f[1].Median(), ratio, sign, goal, verdict)
}

// gets returns the GETs per second that `sscli bench` measures.
func (b *bench) gets(ctx context.Context, e harness.Endpoint, requests, inflight int) (float64, error) {
	out, err := b.Command(ctx, e, "bench", "-n", strconv.Itoa(requests), "--inflight", strconv.Itoa(inflight),
		"--keys", "100", "--mix", "get", "-o", "json").Output()
	if err != nil {
		return 0, fmt.Errorf("sscli bench: %w", err)
	}
	var result struct {
		PerSecond float64 `json:"per_second"`
	}
	err = json.Unmarshal(out, &result)
	return result.PerSecond, err
}

// hello builds a Go program that prints one word.
func (b *bench) hello(ctx context.Context) (string, error) {
	source, program := filepath.Join(b.Dir, "hello.go"), filepath.Join(b.Dir, "hello")
	if err := os.WriteFile(source, []byte("package main\n\nimport \"fmt\"\n\nfunc main() { fmt.Println(\"hello\") }\n"), 0o600); err != nil {
		return "", err
	}
	return program, harness.Build(ctx, program, source)
}

// roundTrip is a GET by mosquitto_rr, which exits after the reply.
func roundTrip(e harness.Endpoint) []string {
	args := []string{"mosquitto_rr", "-V", "5", "-h", "127.0.0.1", "-p", e.Port, "-q", "1",
		"-t", wire.RequestTopic, "-e", "clients/bench/replies", "-D", "publish", "correlation-data", "0123456789abcdef",
		"-m", string(wire.AppendRequest(nil, wire.VerbGet, "k"))}
	if e.CA != "" {
		args = append(args, "--cafile", e.CA)
	}
	return args
}
