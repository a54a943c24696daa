//go:build linux

// Command emulator compares the emulator with a Redis server: the requests per second on one
// connection, and the memory for many keys.
// scripts/bench-emulator.sh runs it.
package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/sscli/sscli/internal/wire"
	"github.com/sscli/sscli/scripts/harness"
)

// The goal for memory; minRate returns the goals for the rate.
const (
	maxMemory = 1.2 // resident memory, relative to redis-server
)

// minRate returns the goal for requests per second with depth requests in flight, relative to
// redis-benchmark.
func minRate(depth int) float64 {
	if depth > 16 {
		return 0.65
	}
	return 0.8
}

var (
	value  = strings.Repeat("x", 100)
	depths = []int{1, 16, 64, 256} // requests in flight
)

type bench struct {
	*harness.Bench
	rounds, keys int
	long         time.Duration
}

func main() {
	var b bench
	flag.IntVar(&b.rounds, "rounds", 5, "rounds of throughput")
	flag.DurationVar(&b.long, "for", 700*time.Millisecond, "time of a measurement of throughput")
	flag.IntVar(&b.keys, "keys", 1_000_000, "keys for the measurement of memory; 0: none")
	harness.Main(10*time.Minute, []string{"redis-server", "redis-cli", "redis-benchmark"}, b.run)
}

func (b *bench) run(ctx context.Context, h *harness.Bench) error {
	b.Bench = h
	if err := b.throughput(ctx); err != nil {
		return err
	}
	if b.keys == 0 {
		return nil
	}
	return b.memory(ctx)
}

func (b *bench) throughput(ctx context.Context) error {
	own, err := b.Serve(ctx)
	if err != nil {
		return err
	}
	redis, err := b.Redis(ctx)
	if err != nil {
		return err
	}
	for _, verb := range []string{wire.VerbSet, wire.VerbGet} {
		for _, depth := range depths {
			fmt.Printf("%s, %d in flight\n", verb, depth)
			// This rate only serves to choose a number of requests for about b.long.
			last, err := redisRate(ctx, redis, verb, depth, 10_000*min(depth, 10))
			if err != nil {
				return err
			}
			f, err := harness.Rounds(b.rounds,
				harness.Contender{Name: "emulator", Measure: func() (float64, error) { return b.requests(own, verb, depth) }},
				harness.Contender{Name: "redis-benchmark", Measure: func() (_ float64, err error) {
					if last, err = redisRate(ctx, redis, verb, depth, int(last*b.long.Seconds())); err != nil {
						return 0, err
					}
					return last, nil
				}})
			if err != nil {
				return err
			}
			b.AtLeast("P8", fmt.Sprintf("%ss a second, %d in flight, emulator / redis-server", verb, depth), f[0], f[1], minRate(depth))
		}
	}
	return nil
}

// requests returns the requests per second on one connection. Like redis-benchmark, it repeatedly
// sends depth requests at once and waits for all replies.
func (b *bench) requests(e harness.Endpoint, verb string, depth int) (float64, error) {
	const id = "bench-emulator"
	c, err := harness.DialRaw(e.Address(), id, wire.ResponseTopic(id))
	if err != nil {
		return 0, err
	}
	defer c.Close()
	words, ending := []string{verb, "bench", value}, "+OK\r\n"
	if verb == wire.VerbGet {
		words, ending = words[:2], value+"\r\n"
	}
	var made bytes.Buffer
	requests := harness.NewRequests(id)
	for i := range depth {
		request, err := requests.Request(words...)
		if err != nil {
			return 0, err
		}
		packet := request.Packet()
		packet.PacketID = uint16(i + 1)
		if _, err := packet.WriteTo(&made); err != nil {
			return 0, err
		}
	}
	before, err := harness.CPU(os.Getpid())
	if err != nil {
		return 0, err
	}
	var rate float64
	sent := 0
	server, err := cpuOf(e, func() (err error) {
		rate, err = harness.Rate(b.long, func() error {
			sent += depth
			if err := c.Send(made.Bytes()); err != nil {
				return err
			}
			return c.Await(depth, depth, ending)
		})
		return err
	})
	if err != nil {
		return 0, err
	}
	rate *= float64(depth)
	sender, err := harness.CPU(os.Getpid())
	if err != nil {
		return 0, err
	}
	report("emulator", rate, sent, server, sender-before)
	return rate, nil
}

// cpuOf calls meanwhile and returns the CPU time that a server uses during the call, in seconds.
func cpuOf(e harness.Endpoint, meanwhile func() error) (float64, error) {
	before, err := harness.CPU(e.PID)
	if err != nil {
		return 0, err
	}
	if err := meanwhile(); err != nil {
		return 0, err
	}
	after, err := harness.CPU(e.PID)
	return after - before, err
}

// report prints the rate of n requests, and the CPU time per request, which depends less on other
// load on the machine.
func report(name string, rate float64, n int, server, sender float64) {
	perRequest := func(seconds float64) float64 { return seconds * 1e6 / float64(n) }
	fmt.Printf("  %-14s %10.0f a second; µs of CPU a request: %6.2f server, %6.2f sender\n", name, rate, perRequest(server), perRequest(sender))
}

// redisRate returns the requests per second that redis-benchmark measures.
func redisRate(ctx context.Context, e harness.Endpoint, verb string, depth, n int) (float64, error) {
	n = max(n, depth)
	cmd := exec.CommandContext(ctx, "redis-benchmark", "-p", e.Port, "-c", "1", "-P", strconv.Itoa(depth), "-d", strconv.Itoa(len(value)),
		"-n", strconv.Itoa(n), "-t", strings.ToLower(verb), "--csv")
	var out []byte
	server, err := cpuOf(e, func() (err error) {
		out, err = cmd.Output()
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("redis-benchmark: %w", err)
	}
	for line := range strings.Lines(string(out)) {
		if fields := strings.Split(line, `"`); len(fields) > 3 && fields[1] == verb {
			rate, err := strconv.ParseFloat(fields[3], 64)
			report("redis-server", rate, n, server, (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds())
			return rate, err
		}
	}
	return 0, fmt.Errorf("redis-benchmark printed no rate of %s: %s", verb, out)
}

// memory measures the resident memory of both servers with the same keys.
func (b *bench) memory(ctx context.Context) error {
	const line = "set key%07d %s\n"
	own, err := b.Serve(ctx)
	if err != nil {
		return err
	}
	if err := harness.Feed(b.Command(ctx, own, "batch", "-", "--inflight", "256"), b.keys, line, value); err != nil {
		return err
	}
	ours, err := b.Resident()
	if err != nil {
		return err
	}
	redis, err := b.Redis(ctx)
	if err != nil {
		return err
	}
	if err := harness.Feed(exec.CommandContext(ctx, "redis-cli", "-p", redis.Port, "--pipe"), b.keys, line, value); err != nil {
		return err
	}
	peer, err := b.Resident()
	if err != nil {
		return err
	}
	b.AtMost("P11", fmt.Sprintf("MB resident with %d keys of %d bytes, emulator / redis-server", b.keys, len(value)),
		harness.Figures{ours}, harness.Figures{peer}, maxMemory)
	return nil
}
