// Command request measures what single requests cost: the commands of sscli beside
// those of Mosquitto and Redis, a start beside that of a Go program that does nothing,
// requests one after the other beside paho's client, and the emulator beside Mosquitto
// with a store attached to it. scripts/bench-request.sh builds sscli and runs this.
//
// It starts its servers, on loopback, and ends them. Each pair is measured in rotation;
// what counts is the median of the ratios of neighbours.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/sscli/sscli/scripts/bench/goal"
)

type bench struct {
	sscli    string
	rounds   int // of a pair of commands
	requests int // of a round of throughput

	goals goal.Goals
}

func main() {
	var b bench
	flag.StringVar(&b.sscli, "sscli", "sscli", "the sscli to measure")
	flag.IntVar(&b.rounds, "rounds", 200, "runs of each command, those over 40 ms a tenth of it")
	flag.IntVar(&b.requests, "requests", 40_000, "requests of a round of throughput")
	limit := flag.Duration("limit", 10*time.Minute, "give up after so long")
	flag.Parse()
	b.goals.Main(*limit, b.run)
}

func (b *bench) run(ctx context.Context) (err error) {
	dir, err := os.MkdirTemp("", "bench-request")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	s := &servers{ctx: ctx, sscli: b.sscli, dir: dir}
	defer func() { err = errors.Join(err, s.end()) }()

	stock, err := s.mosquitto("")
	if err != nil {
		return err
	}
	quick, err := s.mosquitto("set_tcp_nodelay true\n")
	if err != nil {
		return err
	}
	secure, authority, err := s.secure()
	if err != nil {
		return err
	}
	own, err := s.serve()
	if err != nil {
		return err
	}
	redis, err := s.redis()
	if err != nil {
		return err
	}
	hello, err := s.hello()
	if err != nil {
		return err
	}
	for _, broker := range []endpoint{stock, quick, own} {
		if err := s.command(b.sscli, "-u", broker.url(), "set", "k", "v").Run(); err != nil {
			return fmt.Errorf("set a key at %s: %w", broker.url(), err)
		}
	}
	if err := s.command("redis-cli", "-p", redis.port, "set", "k", "v").Run(); err != nil {
		return fmt.Errorf("set a key in Redis: %w", err)
	}

	get := func(e endpoint, flags ...string) []string {
		return append([]string{b.sscli, "-u", e.url(), "get", "k"}, flags...)
	}
	pairs := []pair{
		{"P2", "get / mosquitto_rr, stock Mosquitto", get(stock), roundTrip(stock), 0.08, b.rounds / 10},
		{"P2", "get / mosquitto_rr, stock Mosquitto, TLS", get(secure, "--ca-file", authority), roundTrip(secure, "--cafile", authority), 0.09, b.rounds / 10},
		{"P3", "get / mosquitto_rr, Mosquitto with nodelay", get(quick), roundTrip(quick), 1.05, b.rounds},
		{"P3", "get / redis-cli get", get(quick), []string{"redis-cli", "-p", redis.port, "get", "k"}, 0.65, b.rounds},
		{"P4", "sscli version / hello world in Go", []string{b.sscli, "version"}, []string{hello}, 1.9, b.rounds},
	}
	fmt.Printf("%-4s %-46s %10s %10s %8s %8s\n", "", "", "sscli ms", "peer ms", "ratio", "goal")
	for _, p := range pairs {
		if err := b.compare(s, p); err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
	}
	if err := b.sequence(ctx, s, stock); err != nil {
		return fmt.Errorf("requests in sequence: %w", err)
	}
	if err := b.emulator(s, own, quick); err != nil {
		return fmt.Errorf("the emulator: %w", err)
	}
	return nil
}

// A pair are two commands of which the first should take at most goal times as long
// as the second.
type pair struct {
	number, name string
	ours, peers  []string
	goal         float64
	rounds       int
}

func (b *bench) compare(s *servers, p pair) error {
	var ours, peers, ratios []float64
	for range max(p.rounds, 5) {
		a, err := s.time(p.ours)
		if err != nil {
			return err
		}
		z, err := s.time(p.peers)
		if err != nil {
			return err
		}
		ours, peers, ratios = append(ours, a.Seconds()*1000), append(peers, z.Seconds()*1000), append(ratios, a.Seconds()/z.Seconds())
	}
	b.report(p.number, p.name, goal.Median(ours), goal.Median(peers), goal.Median(ratios), p.goal, false)
	return nil
}

// report prints a line. More is better where least is set.
func (b *bench) report(number, name string, ours, peers, ratio, limit float64, least bool) {
	sign, met := "<=", ratio <= limit
	if least {
		sign, met = ">=", ratio >= limit
	}
	verdict := ""
	if !met {
		verdict = "  missed"
		b.goals.Miss()
	}
	fmt.Printf("%-4s %-46s %10.2f %10.2f %8.3f %2s %5.4g%s\n", number, name, ours, peers, ratio, sign, limit, verdict)
}
