//go:build linux

// Command redis compares the Redis port of `sscli serve` with a Redis server.
// scripts/bench-redis.sh runs it.
package main

import (
	"bufio"
	"context"
	"encoding/csv"
	"flag"
	"fmt"
	"io"
	"net"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/sscli/sscli/scripts/harness"
)

// The goals. All but maxExpiry are relative to redis-server.
const (
	minSingle   = 0.85
	minManySet  = 1.0
	minManyGet  = 1.2
	minNotified = 0.95
	maxMemory   = 1.2

	maxExpiry = 200 * time.Millisecond // until all notifications of 20,000 keys that expire at once have arrived
	expiring  = 20_000
)

type bench struct {
	*harness.Bench
	rounds, requests, keys int
}

// A server is the Redis port of `sscli serve` or a redis-server.
type server struct {
	name, port string
	pid        int
}

func main() {
	var b bench
	flag.IntVar(&b.rounds, "rounds", 5, "rounds of each measurement")
	flag.IntVar(&b.requests, "n", 100_000, "requests of a round; ten times as many in pipelines")
	flag.IntVar(&b.keys, "keys", 1_000_000, "keys for the measurement of memory, with values of 100 bytes")
	harness.Main(time.Hour, []string{"redis-server", "redis-cli", "redis-benchmark"}, b.run)
}

func (b *bench) run(ctx context.Context, h *harness.Bench) error {
	b.Bench = h
	own, err := b.own(ctx)
	if err != nil {
		return err
	}
	redis, err := b.Redis(ctx)
	if err != nil {
		return err
	}
	both := []server{own, {"redis-server", redis.Port, redis.PID}}
	for _, m := range []struct {
		what     string
		pipeline int
		test     string
		goal     float64
	}{
		{"SET, one at a time", 1, "set", minSingle}, {"GET, one at a time", 1, "get", minSingle},
		{"SET, pipelines of 64", 64, "set", minManySet}, {"GET, pipelines of 64", 64, "get", minManyGet},
	} {
		if err := b.compare(ctx, both, m.what, m.pipeline, m.test, m.goal); err != nil {
			return err
		}
	}
	if err := b.notified(ctx, both); err != nil {
		return err
	}
	if err := b.expiry(ctx, own); err != nil {
		return err
	}
	return b.memory(ctx, both)
}

func (b *bench) own(ctx context.Context) (server, error) {
	port, err := harness.FreePort()
	if err != nil {
		return server{}, err
	}
	cmd := exec.CommandContext(ctx, b.SSCLI, "serve", "--listen", "127.0.0.1:0", "--redis", "127.0.0.1:"+port, "-o", "human")
	err = b.Start(cmd, "redis://")
	if err != nil {
		return server{}, err
	}
	return server{"sscli", port, cmd.Process.Pid}, nil
}

// rate runs redis-benchmark once and returns the requests per second.
func (b *bench) rate(ctx context.Context, s server, pipeline int, test string, more ...string) (float64, error) {
	n := b.requests
	if pipeline > 1 {
		n *= 10
	}
	cmd := exec.CommandContext(ctx, "redis-benchmark", append([]string{"-p", s.port, "-n", strconv.Itoa(n), "-P", strconv.Itoa(pipeline), "-t", test, "-r", "100000", "--csv"}, more...)...)
	before, err := harness.CPU(s.pid)
	if err != nil {
		return 0, err
	}
	out, err := cmd.Output()
	if err != nil {
		return 0, err
	}
	after, err := harness.CPU(s.pid)
	if err != nil {
		return 0, err
	}
	rows, err := csv.NewReader(strings.NewReader(string(out))).ReadAll()
	if err != nil {
		return 0, err
	}
	if len(rows) != 2 {
		return 0, fmt.Errorf("redis-benchmark printed %q", out)
	}
	perSecond, err := strconv.ParseFloat(rows[1][1], 64)
	fmt.Printf("  %-14s %12.0f per second, %6.2f µs of the server's CPU a request\n", s.name, perSecond, (after-before)*1e6/float64(n))
	return perSecond, err
}

func (b *bench) compare(ctx context.Context, both []server, what string, pipeline int, test string, goal float64) error {
	fmt.Println(what)
	var contenders []harness.Contender
	for _, s := range both {
		contenders = append(contenders, harness.Contender{Name: s.name, Measure: func() (float64, error) { return b.rate(ctx, s, pipeline, test) }})
	}
	f, err := harness.Rounds(b.rounds, contenders...)
	if err != nil {
		return err
	}
	b.AtLeast("P12", "Redis port, requests a second, "+what+" / redis-server", f[0], f[1], goal)
	return nil
}

// do sends a command to a server on a new connection, which the caller must close. It reads the
// first line of the reply and returns an error for an error reply.
func do(s server, words ...string) (net.Conn, *bufio.Reader, error) {
	nc, err := net.Dial("tcp", "127.0.0.1:"+s.port)
	if err != nil {
		return nil, nil, err
	}
	if _, err := fmt.Fprintf(nc, "%s\r\n", strings.Join(words, " ")); err != nil {
		return nil, nil, err
	}
	r := bufio.NewReaderSize(nc, 1<<16)
	line, err := r.ReadString('\n')
	if err == nil && line[0] == '-' {
		err = fmt.Errorf("%q: %s", words, line)
	}
	return nc, r, err
}

// notified measures SETs with a subscriber that reads all notifications.
func (b *bench) notified(ctx context.Context, both []server) error {
	var subscribers []net.Conn
	defer func() {
		for _, nc := range subscribers {
			nc.Close()
		}
	}()
	for _, s := range both {
		nc, _, err := do(s, "config", "set", "notify-keyspace-events", "KEA")
		if err != nil {
			return err
		}
		nc.Close()
		sub, r, err := do(s, "psubscribe", "__key*__:*")
		if err != nil {
			return err
		}
		subscribers = append(subscribers, sub)
		go func() { _, _ = io.Copy(io.Discard, r) }() // ends when sub is closed
	}
	return b.compare(ctx, both, "SET with KEA and one subscriber, pipelines of 64", 64, "set", minNotified)
}

// expiry measures how long it takes to deliver the notifications of many keys that expire at once.
func (b *bench) expiry(_ context.Context, s server) error {
	sub, r, err := do(s, "subscribe", "__keyevent@0__:expired")
	if err != nil {
		return err
	}
	defer sub.Close()
	at := time.Now().Add(3 * time.Second).Truncate(time.Millisecond)
	setter, err := net.Dial("tcp", "127.0.0.1:"+s.port)
	if err != nil {
		return err
	}
	defer setter.Close()
	w := bufio.NewWriter(setter)
	for i := range expiring {
		fmt.Fprintf(w, "set expiring:%d v pxat %d\r\n", i, at.UnixMilli())
	}
	if err := w.Flush(); err != nil {
		return err
	}
	go func() { _, _ = io.Copy(io.Discard, setter) }()
	for notified := 0; notified < expiring; {
		line, err := r.ReadString('\n')
		if err != nil {
			return err
		}
		if strings.HasPrefix(line, "expiring:") {
			notified++
		}
	}
	b.AtMost("P12", fmt.Sprintf("Redis port, seconds until %d keys that expire at once are notified", expiring),
		harness.Figures{time.Since(at).Seconds()}, nil, maxExpiry.Seconds())
	return nil
}

// memory compares the resident memory of both servers with many keys.
func (b *bench) memory(ctx context.Context, both []server) error {
	var resident []float64
	value := strings.Repeat("v", 100)
	for _, s := range both {
		nc, _, err := do(s, "flushall")
		if err != nil {
			return err
		}
		nc.Close()
		cmd := exec.CommandContext(ctx, "redis-cli", "-p", s.port, "--pipe")
		if err := harness.Feed(cmd, b.keys, "*3\r\n$3\r\nSET\r\n$10\r\nkey%07d\r\n$100\r\n%s\r\n", value); err != nil {
			return err
		}
		kib, err := harness.Memory(s.pid, "VmRSS")
		if err != nil {
			return err
		}
		fmt.Printf("  %-14s %8.1f MiB with %d keys\n", s.name, kib/1024, b.keys)
		resident = append(resident, kib)
	}
	b.AtMost("P12", fmt.Sprintf("Redis port, MB resident with %d keys of 100 bytes / redis-server", b.keys),
		harness.Figures{resident[0] / 1000}, harness.Figures{resident[1] / 1000}, maxMemory)
	return nil
}
