//go:build linux

// Command batch measures `sscli batch` into a store, beside `redis-cli < file` into
// a Redis server, and its peak memory; and through a Mosquitto beside paho's client,
// which it is too. scripts/bench-batch.sh starts the servers, builds sscli and runs
// this.
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
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/sscli/sscli/scripts/bench/goal"
)

// The goals.
const (
	minOverPaho  = 1.2 // sets a second through Mosquitto with 256 under way, of paho's
	minOverRedis = 5.0 // sets a second with 256 under way, of redis-cli's
	maxGrowth    = 1.2 // peak memory of ten times as many sets
)

const underWay = 256

type bench struct {
	sscli, store, redisPort string
	broker                  string
	rounds, sets, one, many int
	dir                     string
	goals                   goal.Goals
}

func main() {
	var b bench
	flag.StringVar(&b.sscli, "sscli", "sscli", "the sscli to measure")
	flag.StringVar(&b.store, "store", "mqtt://127.0.0.1:1883", "URL of the store")
	flag.StringVar(&b.redisPort, "redis-port", "6379", "port of the Redis server")
	flag.StringVar(&b.broker, "broker", "", "host:port of a Mosquitto with a store; none: not measured")
	paho := flag.String("paho", "", "host:port: be paho's client, and set the keys of standard input")
	flag.IntVar(&b.rounds, "rounds", 5, "rounds of throughput")
	flag.IntVar(&b.sets, "sets", 100_000, "sets of a round")
	flag.IntVar(&b.one, "one", 20_000, "sets of a round with one at a time")
	flag.IntVar(&b.many, "many", 1_000_000, "sets for the measurement of memory")
	limit := flag.Duration("limit", time.Hour, "give up after so long")
	flag.Parse()
	if *paho != "" {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
		defer cancel()
		if err := pahoSets(ctx, *paho, underWay); err != nil {
			fmt.Fprintln(os.Stderr, "bench:", err)
			os.Exit(2)
		}
		return
	}
	b.goals.Main(*limit, b.run)
}

// A program sets keys from a file.
type program struct {
	name string
	sets int
	args []string
}

// A result is how a program did.
type result struct {
	rate float64 // sets a second
	cpu  time.Duration
	peak float64 // of memory, MiB
}

func (b *bench) run(ctx context.Context) (err error) {
	if b.dir, err = os.MkdirTemp("", "bench-batch"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(b.dir)) }()
	for _, n := range []int{b.sets, b.one, b.many} {
		if err := b.write(n); err != nil {
			return err
		}
	}
	if err := b.throughput(ctx); err != nil {
		return err
	}
	if b.broker != "" {
		if err := b.mosquitto(ctx); err != nil {
			return err
		}
	}
	return b.memory(ctx)
}

func (b *bench) file(sets int) string { return filepath.Join(b.dir, fmt.Sprint(sets)) }

// write makes the file of so many sets, each of a key of its own.
func (b *bench) write(sets int) error {
	f, err := os.Create(b.file(sets))
	if err != nil {
		return err
	}
	w := bufio.NewWriter(f)
	for n := range sets {
		fmt.Fprintf(w, "set key%07d value-%07d\n", n, n)
	}
	return errors.Join(w.Flush(), f.Close())
}

func (b *bench) batch(inflight, sets int) program {
	return program{fmt.Sprintf("batch --inflight %d", inflight), sets,
		[]string{b.sscli, "-u", b.store, "batch", "-", "--inflight", fmt.Sprint(inflight)}}
}

// measure runs a program once, its results go nowhere.
func (b *bench) measure(ctx context.Context, p program) (r result, err error) {
	in, err := os.Open(b.file(p.sets))
	if err != nil {
		return r, err
	}
	defer in.Close()
	cmd := exec.CommandContext(ctx, p.args[0], p.args[1:]...)
	var stderr strings.Builder
	cmd.Stdin, cmd.Stderr = in, &stderr
	begin := time.Now()
	if err := cmd.Run(); err != nil {
		return r, fmt.Errorf("%s: %w: %s", p.name, err, stderr.String())
	}
	took := time.Since(begin)
	usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	if !ok {
		return r, errors.New("no usage of resources is known")
	}
	r = result{float64(p.sets) / took.Seconds(), cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(), float64(usage.Maxrss) / 1024}
	fmt.Printf("  %-28s %9d %10.0f %8.2f %10.2f %10.1f\n", p.name, p.sets, r.rate, took.Seconds(), r.cpu.Seconds(), r.peak)
	return r, nil
}

// inRounds measures all programs in each round, and lets each begin as often as the
// others. The rates are by the programs' names, in the order of the rounds.
func (b *bench) inRounds(ctx context.Context, programs []program) (map[string][]float64, error) {
	rates := make(map[string][]float64)
	for range b.rounds {
		for _, p := range programs {
			r, err := b.measure(ctx, p)
			if err != nil {
				return nil, err
			}
			rates[p.name] = append(rates[p.name], r.rate)
		}
		slices.Reverse(programs)
	}
	return rates, nil
}

const header = "  %-28s %9s %10s %8s %10s %10s\n"

func (b *bench) throughput(ctx context.Context) error {
	fmt.Println("throughput: every program sets each key once, results go to /dev/null")
	fmt.Printf(header, "", "sets", "per second", "seconds", "CPU s", "peak MiB")
	programs := []program{
		b.batch(underWay, b.sets),
		{"redis-cli < file", b.sets, []string{"redis-cli", "-p", b.redisPort}},
		b.batch(1, b.one),
	}
	rates, err := b.inRounds(ctx, programs)
	if err != nil {
		return err
	}
	batch := rates[b.batch(underWay, 0).name]
	fmt.Printf("  %.2f x one at a time (median of the rounds)\n", goal.MedianRatio(batch, rates[b.batch(1, 0).name]))
	ratio := goal.MedianRatio(batch, rates["redis-cli < file"])
	b.goals.Verdict(ratio >= minOverRedis, "%.2f x redis-cli < file (median of the rounds), goal at least %.2f x", ratio, minOverRedis)
	return nil
}

// mosquitto measures both programs with a broker between them and the store.
func (b *bench) mosquitto(ctx context.Context) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	fmt.Println("through Mosquitto, without Nagle, to a store attached to it")
	fmt.Printf(header, "", "sets", "per second", "seconds", "CPU s", "peak MiB")
	batch := b.batch(underWay, b.one)
	batch.args[2] = "mqtt://" + b.broker
	programs := []program{batch, {"paho, asynchronous", b.one, []string{self, "-paho", b.broker}}}
	rates, err := b.inRounds(ctx, programs)
	if err != nil {
		return err
	}
	ratio := goal.MedianRatio(rates[batch.name], rates["paho, asynchronous"])
	b.goals.Verdict(ratio >= minOverPaho, "%.2f x paho (median of the rounds), goal at least %.2f x", ratio, minOverPaho)
	return nil
}

func (b *bench) memory(ctx context.Context) error {
	fmt.Println("memory: peaks of batch --inflight 256")
	fmt.Printf(header, "", "sets", "per second", "seconds", "CPU s", "peak MiB")
	few, err := b.measure(ctx, b.batch(underWay, b.sets))
	if err != nil {
		return err
	}
	many, err := b.measure(ctx, b.batch(underWay, b.many))
	if err != nil {
		return err
	}
	growth := many.peak / few.peak
	b.goals.Verdict(growth <= maxGrowth, "peak of %d sets: %.2f x that of %d, goal at most %.2f x", b.many, growth, b.sets, maxGrowth)
	return nil
}
