//go:build linux

package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/sscli/sscli/scripts/harness"
)

// batchRows returns the rows about commands with very many keys.
func batchRows(b *bench) []row {
	few, many, slow := b.n(100_000), b.n(1_000_000), b.n(20_000)
	perSecond := func(n int, u usage) float64 { return float64(n) / u.took.Seconds() }
	sets := func(n, inflight int) func(*side) usage {
		return func(s *side) usage { return s.batch(s.emulator(), inflight, n, setLine) }
	}
	self := harness.Must(os.Executable())
	return []row{
		{number: "P6", what: "µs of CPU a set, `batch --inflight 256` into the emulator",
			ours: func(s *side) float64 { return sets(few, inflight)(s).cpu.Seconds() * 1e6 / float64(few) }, goal: most(6.5)},
		{number: "P6", what: "sets a second through Mosquitto with nodelay, `batch --inflight 256` / paho's client, asynchronous",
			ours: func(s *side) float64 {
				return perSecond(slow, s.batch(s.mosquitto("nodelay"), inflight, slow, setLine))
			},
			peer: func(s *side) float64 {
				return perSecond(slow, s.runWith(s.file(slow, setLine), self, "paho", s.mosquitto("nodelay").address()))
			}, goal: least(1.1)},
		{number: "P9", what: fmt.Sprintf("sets a second, `batch --inflight 256` of %d / `redis-cli < file`", few),
			ours: func(s *side) float64 { return perSecond(few, sets(few, inflight)(s)) },
			peer: func(s *side) float64 {
				return perSecond(few, s.runWith(s.file(few, setLine), "redis-cli", "-p", s.redisServer().redis))
			}, goal: least(4)},
		{number: "P9", what: fmt.Sprintf("seconds, `batch --inflight 256` of %d sets / `redis-cli --pipe`", many),
			ours: func(s *side) float64 { return sets(many, inflight)(s).took.Seconds() },
			peer: func(s *side) float64 { return s.pipe(s.redisServer(), many, setWords).took.Seconds() }, goal: most(3.8), times: 0.4},
		{what: "sets a second, `batch --inflight 1` / `--inflight 256`",
			ours: func(s *side) float64 { return perSecond(slow, sets(slow, 1)(s)) },
			peer: func(s *side) float64 { return perSecond(few, sets(few, inflight)(s)) }, goal: more, times: 0.6},
		{number: "P10", what: fmt.Sprintf("MB at the peak of `batch`, %d sets / %d", many, few),
			ours: func(s *side) float64 { return sets(many, inflight)(s).memory() },
			peer: func(s *side) float64 { return sets(few, inflight)(s).memory() }, sizes: true, growth: true, goal: most(1.2), times: 0.4},
	}
}

// transferRows returns the rows about export, diff and apply of a whole store.
func transferRows(b *bench) []row {
	n := b.n(1_000_000)
	seconds := func(u usage) float64 { return u.took.Seconds() }
	gets := func(s *side) float64 { return seconds(s.batch(s.loaded(n), inflight, n, getLine)) }
	export := func(s *side) float64 {
		return seconds(s.run(s.args(s.loaded(n), "export", "-f", filepath.Join(s.dir, "again.jsonl"))...))
	}
	return []row{
		{number: "P16", what: fmt.Sprintf("seconds, `export` of %d keys / `batch --inflight 256` that gets them", n),
			ours: export, peer: gets, goal: most(2), times: 0.6},
		{number: "P16", what: fmt.Sprintf("seconds, `diff FILE` of %d keys / `batch --inflight 256` that gets them", n),
			ours: func(s *side) float64 { return seconds(s.run(s.args(s.loaded(n), "diff", s.exported(n))...)) },
			peer: gets, goal: most(2.5), times: 0.6},
		{number: "P18", what: "seconds, `apply FILE` that changes nothing / `export`",
			ours: func(s *side) float64 { return seconds(s.run(s.args(s.loaded(n), "apply", s.exported(n))...)) },
			peer: export, goal: most(1.6), times: 0.6},
	}
}
