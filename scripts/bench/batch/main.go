//go:build linux

// Command batch measures `sscli batch` into the emulator beside `redis-cli < file` into
// a Redis server, and its peak memory; and through a Mosquitto beside paho's client,
// which it becomes with the operands "paho ADDRESS". scripts/bench-batch.sh runs it.
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

	"github.com/sscli/sscli/scripts/bench/harness"
)

// The goals.
const (
	minOverPaho  = 1.2 // sets per second through Mosquitto, over paho's client
	minOverRedis = 5.0 // sets per second, over redis-cli
	maxGrowth    = 1.2 // peak memory of ten times as many sets
)

const inflight = 256

type bench struct {
	*harness.Bench
	rounds, sets, one, many int
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
	flag.IntVar(&b.sets, "sets", 100_000, "sets in a round")
	flag.IntVar(&b.one, "one", 20_000, "sets in a round with one in flight, and through Mosquitto")
	flag.IntVar(&b.many, "many", 1_000_000, "sets for the measurement of memory")
	harness.Main(time.Hour, []string{"mosquitto", "redis-server", "redis-cli"}, b.run)
}

func (b *bench) run(ctx context.Context, h *harness.Bench) error {
	b.Bench = h
	for _, n := range []int{b.sets, b.one, b.many} {
		if err := b.write(n); err != nil {
			return err
		}
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
	return b.memory(ctx, own)
}

func (b *bench) file(sets int) string { return filepath.Join(b.Dir, strconv.Itoa(sets)) }

// write writes a file of sets, each of a different key.
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

// A program sets keys from a file.
type program struct {
	name string
	sets int
	args []string
}

func (b *bench) batch(e harness.Endpoint, inflight, sets int) program {
	args := b.Args(e, "batch", "-", "--inflight", strconv.Itoa(inflight))
	return program{fmt.Sprintf("batch --inflight %d", inflight), sets, args}
}

// A result is what one run of a program took.
type result struct {
	rate float64 // sets per second
	peak float64 // memory, MiB
}

// measure runs a program once and discards its output.
func (b *bench) measure(ctx context.Context, p program) (r result, err error) {
	in, err := os.Open(b.file(p.sets))
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
	r = result{float64(p.sets) / took.Seconds(), float64(usage.Maxrss) / 1024}
	fmt.Printf("  %-28s %9d %10.0f %8.2f %10.2f %10.1f\n", p.name, p.sets, r.rate, took.Seconds(), cpu.Seconds(), r.peak)
	return r, nil
}

// title prints what is measured and the header of its rows.
func title(what string) {
	fmt.Println(what)
	fmt.Printf("  %-28s %9s %10s %8s %10s %10s\n", "", "sets", "per second", "seconds", "CPU s", "peak MiB")
}

// rates measures the sets per second of programs in turn.
func (b *bench) rates(ctx context.Context, programs ...program) ([]harness.Figures, error) {
	var contenders []harness.Contender
	for _, p := range programs {
		contenders = append(contenders, harness.Contender{Name: p.name, Measure: func() (float64, error) {
			r, err := b.measure(ctx, p)
			return r.rate, err
		}})
	}
	return harness.Rounds(b.rounds, contenders...)
}

func (b *bench) throughput(ctx context.Context, own, redis harness.Endpoint) error {
	title("throughput: every program sets each key once, results go to /dev/null")
	f, err := b.rates(ctx,
		b.batch(own, inflight, b.sets),
		program{"redis-cli < file", b.sets, []string{"redis-cli", "-p", redis.Port}},
		b.batch(own, 1, b.one))
	if err != nil {
		return err
	}
	fmt.Printf("  batch / one at a time, median of the rounds: %.2f x\n", f[0].Over(f[2]))
	b.AtLeast("batch / redis-cli < file, median of the rounds", f[0].Over(f[1]), minOverRedis)
	return nil
}

// mosquitto measures with a broker between the programs and the store.
func (b *bench) mosquitto(ctx context.Context, broker harness.Endpoint) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	title("through Mosquitto, without Nagle, to a store attached to it")
	f, err := b.rates(ctx,
		b.batch(broker, inflight, b.one),
		program{"paho, asynchronous", b.one, []string{self, "paho", broker.Address()}})
	if err != nil {
		return err
	}
	b.AtLeast("batch / paho, median of the rounds", f[0].Over(f[1]), minOverPaho)
	return nil
}

func (b *bench) memory(ctx context.Context, own harness.Endpoint) error {
	title(fmt.Sprintf("memory: peaks of batch --inflight %d", inflight))
	few, err := b.measure(ctx, b.batch(own, inflight, b.sets))
	if err != nil {
		return err
	}
	many, err := b.measure(ctx, b.batch(own, inflight, b.many))
	if err != nil {
		return err
	}
	b.AtMost(fmt.Sprintf("peak of %d sets / of %d", b.many, b.sets), many.peak/few.peak, maxGrowth)
	return nil
}
