//go:build linux

// Command batch measures the speed, the CPU time and the peak memory of `sscli batch`. On the
// emulator, it compares batch with `redis-cli < file` and `redis-cli --pipe` on a Redis server.
// Through Mosquitto, it compares batch with paho's client. For that, this program runs itself as a
// child process with the operands "paho ADDRESS".
// scripts/bench-batch.sh runs it.
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
	"strconv"
	"syscall"
	"time"

	"github.com/sscli/sscli/scripts/harness"
)

// The goals.
const (
	minOverPaho  = 1.15 // sets per second through Mosquitto, relative to paho's client
	maxCPU       = 5.0  // microseconds of CPU per set on the emulator
	minOverRedis = 4.0  // sets per second, relative to redis-cli
	maxOverPipe  = 2.6  // time of many sets, relative to redis-cli --pipe
	maxGrowth    = 1.2  // peak memory with ten times as many sets, relative to the peak with few
)

const inflight = 256

type bench struct {
	*harness.Bench
	few harness.Figures // peak memory of batch in the throughput rounds, MiB

	rounds, manyRounds, sets, one, many int
}

func main() {
	if len(os.Args) == 3 && os.Args[1] == "paho" {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
		defer cancel()
		if err := pahoSets(ctx, os.Args[2], inflight); err != nil {
			fmt.Fprintln(os.Stderr, "paho:", err)
			os.Exit(2)
		}
		return
	}
	var b bench
	flag.IntVar(&b.rounds, "rounds", 5, "rounds of throughput")
	flag.IntVar(&b.manyRounds, "many-rounds", 2, "rounds of many sets")
	flag.IntVar(&b.sets, "sets", 100_000, "sets in a round")
	flag.IntVar(&b.one, "one", 20_000, "sets in a round with one in flight, and through Mosquitto")
	flag.IntVar(&b.many, "many", 1_000_000, "sets for redis-cli --pipe and the measurement of memory")
	harness.Main(time.Hour, []string{"mosquitto", "redis-server", "redis-cli"}, b.run)
}

func (b *bench) run(ctx context.Context, h *harness.Bench) error {
	b.Bench = h
	for _, n := range []int{b.sets, b.one, b.many} {
		if err := write(b.file(n), "set key%07d %0100d\n", n); err != nil {
			return err
		}
	}
	if err := write(b.protocol(), "*3\r\n$3\r\nSET\r\n$10\r\nkey%07d\r\n$100\r\n%0100d\r\n", b.many); err != nil {
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
	broker, err := b.Mosquitto(ctx, harness.Unlimited+harness.NoDelay)
	if err != nil {
		return err
	}
	if err := b.throughput(ctx, own, redis); err != nil {
		return err
	}
	if err := b.mosquitto(ctx, broker); err != nil {
		return err
	}
	return b.pipe(ctx, own, redis)
}

func (b *bench) file(sets int) string { return filepath.Join(b.Dir, strconv.Itoa(sets)) }

// protocol returns the name of the file for redis-cli --pipe, with the sets in the Redis protocol.
func (b *bench) protocol() string { return b.file(b.many) + ".resp" }

// write writes a file of sets, each of a different key, with values of 100 bytes. set is a format
// string; its two operands are both the number of the set.
func write(name, set string, sets int) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	w := bufio.NewWriter(f)
	for n := range sets {
		fmt.Fprintf(w, set, n, n)
	}
	return errors.Join(w.Flush(), f.Close())
}

// A program sets keys from a file.
type program struct {
	name  string
	sets  int
	input string // file
	args  []string
}

func (b *bench) batch(e harness.Endpoint, inflight, sets int) program {
	args := b.Args(e, "batch", "-", "--inflight", strconv.Itoa(inflight))
	return program{fmt.Sprintf("batch --inflight %d", inflight), sets, b.file(sets), args}
}

// A result holds the measurements of one run of a program.
type result struct {
	rate float64 // sets per second
	cpu  float64 // microseconds per set
	peak float64 // memory, MiB
}

// measure runs a program once and discards its output.
func (b *bench) measure(ctx context.Context, p program) (r result, err error) {
	in, err := os.Open(p.input)
	if err != nil {
		return r, err
	}
	defer in.Close()
	cmd := exec.CommandContext(ctx, p.args[0], p.args[1:]...)
	cmd.Stdin = in
	took, err := harness.Run(cmd)
	if err != nil {
		return r, err
	}
	usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	if !ok {
		return r, errors.New("the system does not report the use of memory")
	}
	cpu := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	r = result{float64(p.sets) / took.Seconds(), cpu.Seconds() * 1e6 / float64(p.sets), float64(usage.Maxrss) / 1024}
	fmt.Printf("  %-28s %9d %10.0f %8.2f %10.2f %10.1f\n", p.name, p.sets, r.rate, took.Seconds(), cpu.Seconds(), r.peak)
	return r, nil
}

// title prints a title and the headers of the columns.
func title(what string) {
	fmt.Println(what)
	fmt.Printf("  %-28s %9s %10s %8s %10s %10s\n", "", "sets", "per second", "seconds", "CPU s", "peak MiB")
}

// rates measures the sets per second of several programs in turn. It also returns all results of the
// first program.
func (b *bench) rates(ctx context.Context, rounds int, programs ...program) ([]harness.Figures, []result, error) {
	var first []result // of the first program
	var contenders []harness.Contender
	for _, p := range programs {
		contenders = append(contenders, harness.Contender{Name: p.name, Measure: func() (float64, error) {
			r, err := b.measure(ctx, p)
			if p.name == programs[0].name {
				first = append(first, r)
			}
			return r.rate, err
		}})
	}
	f, err := harness.Rounds(rounds, contenders...)
	return f, first, err
}

func (b *bench) throughput(ctx context.Context, own, redis harness.Endpoint) error {
	title("throughput: every program sets each key once, results go to /dev/null")
	f, results, err := b.rates(ctx, b.rounds,
		b.batch(own, inflight, b.sets),
		program{"redis-cli < file", b.sets, b.file(b.sets), []string{"redis-cli", "-p", redis.Port}},
		b.batch(own, 1, b.one))
	if err != nil {
		return err
	}
	fmt.Printf("  batch / one at a time, median of the rounds: %.2f x\n", f[0].Over(f[2]))
	var cpu harness.Figures
	for _, r := range results {
		b.few = append(b.few, r.peak)
		cpu = append(cpu, r.cpu)
	}
	b.AtMost("P6", "µs of CPU a set, `batch --inflight 256` into the emulator", cpu, nil, maxCPU)
	b.AtLeast("P9", fmt.Sprintf("sets a second, `batch --inflight 256` of %d / `redis-cli < file`", b.sets), f[0], f[1], minOverRedis)
	return nil
}

// mosquitto measures programs that reach the store through Mosquitto.
func (b *bench) mosquitto(ctx context.Context, broker harness.Endpoint) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	title("through Mosquitto, without Nagle, to a store attached to it")
	f, _, err := b.rates(ctx, b.rounds,
		b.batch(broker, inflight, b.one),
		program{"paho, asynchronous", b.one, b.file(b.one), []string{self, "paho", broker.Address()}})
	if err != nil {
		return err
	}
	b.AtLeast("P6", "sets a second through Mosquitto with nodelay, `batch --inflight 256` / paho's client, asynchronous", f[0], f[1], minOverPaho)
	return nil
}

// pipe compares batch with redis-cli --pipe, which sends without waiting for replies, and measures
// the peak memory of batch.
func (b *bench) pipe(ctx context.Context, own, redis harness.Endpoint) error {
	title("many sets")
	f, results, err := b.rates(ctx, b.manyRounds,
		b.batch(own, inflight, b.many),
		program{"redis-cli --pipe", b.many, b.protocol(), []string{"redis-cli", "-p", redis.Port, "--pipe"}})
	if err != nil {
		return err
	}
	var took, pipe, peaks harness.Figures
	for i, r := range results {
		took, pipe = append(took, float64(b.many)/f[0][i]), append(pipe, float64(b.many)/f[1][i])
		peaks = append(peaks, r.peak)
	}
	b.AtMost("P9", fmt.Sprintf("seconds, `batch --inflight 256` of %d sets / `redis-cli --pipe`", b.many), took, pipe, maxOverPipe)
	b.AtMost("P10", fmt.Sprintf("peak MiB of `batch`, %d sets / %d", b.many, b.sets),
		harness.Figures{peaks.Median()}, harness.Figures{b.few.Median()}, maxGrowth)
	return nil
}
