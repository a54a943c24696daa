//go:build linux

package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/sscli/sscli/internal/wire"
	"github.com/sscli/sscli/scripts/harness"
)

// flightRows returns the rows about how connections begin.
func flightRows(b *bench) []row {
	rows := []row{{number: "P1", what: "round trips after TCP, `get` 1, `set` 2, one more with TLS 1.3: tests that failed",
		ours: func(s *side) float64 {
			var said string
			err := harness.Try(func() { said = s.output("go", "test", "-v", "-count=1", "-run", "^TestFlights$", "./client") })
			if !strings.Contains(said, "--- PASS: TestFlights") { // the test may also be missing
				fmt.Fprintln(os.Stderr, said, err)
				return 1
			}
			return 0
		}, goal: most(0), times: 0.2, alone: true}}
	for _, kind := range []string{"stock", "nodelay", "tls", "emulator"} {
		rows = append(rows, row{number: "P1", what: fmt.Sprintf("single `get`s that fail, of %d, %s", b.n(1000), broker(kind)),
			ours: func(s *side) float64 { return s.fly(kind) }, goal: most(0), times: 0.2, alone: true})
	}
	return append(rows, row{number: "P5", what: "gets a second, one after the other, stock Mosquitto / paho's client",
		ours: func(s *side) float64 { return s.benchRate(s.mosquitto("stock"), "--mix", "get=1", "--for", "2s") },
		peer: func(s *side) float64 { return pahoRate(s.ctx, s.mosquitto("stock"), "k", 2*time.Second) }, goal: least(100), times: 0.6})
}

func broker(kind string) string {
	return map[string]string{"stock": "Mosquitto", "nodelay": "Mosquitto with nodelay", "tls": "Mosquitto with TLS 1.3", "emulator": "emulator"}[kind]
}

// fly reads a key repeatedly, each time with a new command, and returns how many commands failed.
func (s *side) fly(kind string) float64 {
	e := s.emulator()
	if kind == "emulator" {
		s.run(s.args(e, "set", "k", "v")...)
	} else {
		e = s.mosquitto(kind)
	}
	trace := filepath.Join(s.dir, "trace-"+kind)
	var failed float64
	var took []time.Duration
	for range s.n(1000) {
		begin := time.Now()
		var out string
		err := harness.Try(func() { out = s.output(s.args(e, "get", "k", "-o", "raw", "--trace-file", trace)...) })
		took = append(took, time.Since(begin))
		harness.Check(s.ctx.Err())
		if err != nil || out != "v" {
			failed++
			fmt.Fprintf(os.Stderr, "%s: got %q, %v\n", broker(kind), out, err)
		}
	}
	slices.Sort(took)
	again := strings.Count(string(harness.Must(os.ReadFile(trace))), "-> PUBLISH") - len(took)
	fmt.Fprintf(os.Stderr, "  %-24s asked twice: %d, ms p50 %.3f, p99 %.3f\n", broker(kind), again, ms(took[len(took)/2]), ms(took[len(took)*99/100]))
	return failed
}

// requestRows returns the rows about the time of a single command.
func requestRows(b *bench) []row {
	const quick = 40 // a multiple of -rounds
	slow := 4.       // mosquitto_rr takes over 40 ms
	if b.builds {
		slow = quick // it does not run
	}
	get := func(kind string) func(*side) float64 {
		return func(s *side) float64 { return ms(s.run(s.args(s.mosquitto(kind), "get", "k")...).took) }
	}
	roundTrip := func(kind string) func(*side) float64 {
		return func(s *side) float64 { return ms(s.run(roundTripArgs(s.mosquitto(kind))...).took) }
	}
	hello := func(s *side) usage { return s.run(once(s, "hello", s.hello)) }
	version := func(s *side) usage { return s.run(s.sscli, "version") }
	return []row{
		{number: "P2", what: "ms, `get` on stock Mosquitto / `mosquitto_rr`", ours: get("stock"), peer: roundTrip("stock"), goal: most(0.13), times: slow},
		{number: "P2", what: "ms, `get` on stock Mosquitto with TLS / `mosquitto_rr`", ours: get("tls"), peer: roundTrip("tls"), goal: most(0.095), times: slow},
		{number: "P3", what: "ms, `get` on Mosquitto with nodelay / `mosquitto_rr`", ours: get("nodelay"), peer: roundTrip("nodelay"), goal: most(1.3), times: quick},
		{number: "P3", what: "ms, `get` on Mosquitto with nodelay / `redis-cli get`", ours: get("nodelay"),
			peer: func(s *side) float64 {
				return ms(s.run("redis-cli", "-p", once(s, "redis with k", s.redisWithKey).redis, "get", "k").took)
			}, goal: most(0.85), times: quick, alone: true},
		{number: "P4", what: "ms, `sscli version` / hello world in Go", ours: func(s *side) float64 { return ms(version(s).took) },
			peer: func(s *side) float64 { return ms(hello(s).took) }, goal: most(1.9), times: quick},
		{number: "P4", what: "page faults of `sscli version`", ours: func(s *side) float64 { return version(s).faults }, goal: most(430), times: slow},
		{number: "P4", what: "page faults of hello world in Go", ours: func(s *side) float64 { return hello(s).faults }, goal: less, alone: true},
		{number: "P4", what: "µs of the slowest package initialization outside the standard library", ours: (*side).initialization, goal: most(50), times: 0.2},
	}
}

// redisWithKey returns a Redis server that has the key k.
func (s *side) redisWithKey() endpoint {
	e := s.redisServer()
	redisDo(e, "set k v").Close()
	return e
}

// initialization returns the microseconds that the slowest package takes to initialize: the median of 21
// runs.
func (s *side) initialization() float64 {
	micros := map[string]figures{} // by package
	for range 21 {
		cmd := exec.CommandContext(s.ctx, s.sscli, "version")
		cmd.Env = append(os.Environ(), "GODEBUG=inittrace=1")
		var trace strings.Builder
		cmd.Stderr = &trace
		harness.Check(cmd.Run())
		for line := range strings.Lines(trace.String()) {
			var name string
			var at, took float64
			if _, err := fmt.Sscanf(line, "init %s @%f ms, %f ms clock", &name, &at, &took); err == nil {
				micros[name] = append(micros[name], took*1000)
			}
		}
	}
	slowest, most := "", 0.0
	for name, f := range micros {
		if first, _, _ := strings.Cut(name, "/"); strings.Contains(first, ".") && f.median() > most {
			slowest, most = name, f.median()
		}
	}
	if slowest == "" {
		harness.Check(errors.New("the program printed no trace of its initialization"))
	}
	fmt.Fprintf(os.Stderr, "  %s\n", slowest)
	return most
}

// hello builds a Go program that prints one word.
func (s *side) hello() string {
	source, program := filepath.Join(s.dir, "hello.go"), filepath.Join(s.dir, "hello")
	harness.Check(os.WriteFile(source, []byte("package main\n\nimport \"fmt\"\n\nfunc main() { fmt.Println(\"hello\") }\n"), 0o600))
	harness.Check(harness.Build(s.ctx, "", program, source))
	return program
}

// roundTripArgs returns the command line of a GET by mosquitto_rr, which exits after the reply.
func roundTripArgs(e endpoint) []string {
	args := []string{"mosquitto_rr", "-V", "5", "-h", "127.0.0.1", "-p", e.port, "-q", "1",
		"-t", wire.RequestTopic, "-e", "clients/bench/replies", "-D", "publish", "correlation-data", "0123456789abcdef",
		"-m", string(wire.AppendRequest(nil, wire.VerbGet, "k"))}
	if e.ca != "" {
		args = append(args, "--cafile", e.ca)
	}
	return args
}
