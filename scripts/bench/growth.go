//go:build linux

package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/creack/pty"

	"github.com/sscli/sscli/internal/wire"
	"github.com/sscli/sscli/scripts/harness"
)

// growthRows returns rows that measure the same work at two sizes.
func growthRows(b *bench) []row {
	// at returns a row that measures f at both sizes. The goal applies to the larger size.
	at := func(what string, large, small int, g goal, f func(s *side, n int) float64) row {
		return row{number: "P20", what: fmt.Sprintf("%s: %d / %d", what, large, small), sizes: true, goal: g, times: 0.2,
			ours: func(s *side) float64 { return f(s, large) }, peer: func(s *side) float64 { return f(s, small) }}
	}
	growth := func(r row) row {
		r.growth = true
		return r
	}
	many, few := b.n(1_000_000), b.n(100_000)
	peak := func(args func(s *side, n int) []string) func(*side, int) float64 {
		return func(s *side, n int) float64 { return s.run(s.args(s.loaded(n), args(s, n)...)...).memory() }
	}
	words := func(words ...string) func(*side, int) []string {
		return func(*side, int) []string { return words }
	}
	large := b.n(250_000_000)
	return append(contestRows(b),
		growth(at("hand-overs a second of `lock run`, waiters", 250, 10, least(0.5), (*side).crowd)),
		at("ms, the worst GET while keys expire in one moment, keys", many, few, most(100), (*side).stall),
		growth(at("MB resident of `watch --match` after keys that came and went, keys", few, few/10, most(1.2), (*side).churn)),
		growth(at("seconds until `watch --match` has said which keys were refused, keys", 12_000, 4_000, most(4.5), (*side).refused)),
		at("MB at the peak of `lock list`, keys", many, few, most(150), peak(words("lock", "list", "-o", "raw"))),
		at("MB at the peak of `diff`, keys", many, few, most(150), peak(func(s *side, n int) []string { return []string{"diff", s.exported(n)} })),
		at("MB at the peak of `apply`, keys", many, few, most(150), peak(func(s *side, n int) []string { return []string{"apply", s.exported(n)} })),
		at("MB at the peak of `del --match`, keys", many, few, most(150), func(s *side, n int) float64 {
			e := s.serve()
			defer harness.Stop(e.cmd)
			s.batch(e, inflight, n, setLine)
			return s.run(s.args(e, "del", "--match", "key*", "--yes")...).memory()
		}),
		at("seconds until `top` shows a key, keys", many, few, most(0.3), (*side).top),
		row{number: "P20", what: fmt.Sprintf("MB resident a minute after %d of %d keys are deleted / redis-server", many/10*9, many), goal: most(1.5), times: 0.2,
			ours: func(s *side) float64 { return s.shrunk(s.serveRedis(), many) },
			peer: func(s *side) float64 { return s.shrunk(s.startRedis(), many) }},
		row{number: "P20", what: fmt.Sprintf("MB of a `--data` file after %d of %d keys are deleted, and a restart, relative to before", many/10*9, many), goal: most(0.5), times: 0.2,
			ours: func(s *side) float64 { return s.shrunkFile(many) }},
		row{number: "P20", what: fmt.Sprintf("MB resident after `scan`, `export` and `diff` of %d keys / redis-server with these keys", many), goal: most(1.2), times: 0.2,
			ours: func(s *side) float64 { return s.read(many) },
			peer: func(s *side) float64 {
				e := s.startRedis()
				defer harness.Stop(e.cmd)
				s.pipe(e, many, setWords)
				return e.resident()
			}},
		at("MB at the peak of `set` of one value, bytes", large, large/10, most(float64(large)*1.2/1e6), func(s *side, n int) float64 {
			client, _ := s.setLarge(n)
			return client
		}),
		at("MB at the peak of the server for `set` of one value, bytes", large, large/10, most(float64(3*large)/1e6), func(s *side, n int) float64 {
			_, server := s.setLarge(n)
			return server
		}),
		at("MB more than at the start, a minute after six `set`s of one key and `del`, bytes", large/5*2, large/25, most(float64(large/5)/1e6), (*side).remaining),
		at("ms that a context file adds to `get`, contexts", 1000, 100, most(5), (*side).contexts),
	)
}

// crowd returns the hand-overs per second of a lock that this number of clients compete for continuously.
func (s *side) crowd(waiters int) float64 {
	e := s.serve()
	defer harness.Stop(e.cmd)
	ctx, cancel := context.WithCancel(s.ctx)
	var all sync.WaitGroup
	defer all.Wait()
	defer cancel()
	lock := func(command ...string) *exec.Cmd {
		args := s.args(e, append([]string{"lock", "run", "crowd", "-q", "--"}, command...)...)
		return exec.CommandContext(ctx, args[0], args[1:]...)
	}
	first := lock("sh", "-c", "echo held; read _ || true")
	release := harness.Must(first.StdinPipe())
	held := harness.Must(first.StdoutPipe())
	harness.Check(first.Start())
	harness.Must(bufio.NewReader(held).ReadString('\n'))
	var mu sync.Mutex
	var waits figures // waiting times in seconds of the clients that got the lock
	for range waiters {
		all.Go(func() {
			for ctx.Err() == nil {
				begin := time.Now()
				if lock("true").Run() == nil {
					mu.Lock()
					waits = append(waits, time.Since(begin).Seconds())
					mu.Unlock()
				}
			}
		})
	}
	holders := func() figures {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(waits)
	}
	time.Sleep(time.Second + time.Duration(waiters)*15*time.Millisecond) // until most of them wait
	release.Close()
	harness.Check(first.Wait())
	time.Sleep(500 * time.Millisecond)
	const long = 4 * time.Second
	before := len(holders())
	time.Sleep(long)
	got := holders()[before:]
	if len(got) == 0 {
		return 0
	}
	fmt.Fprintf(os.Stderr, "  %d waiters: seconds of a wait, median %s, longest %s\n", waiters, figure(got.median()), figure(slices.Max(got)))
	return float64(len(got)) / long.Seconds()
}

// stall returns the time in milliseconds of the slowest GET on either port while n other keys expire.
func (s *side) stall(n int) float64 {
	e := s.serveRedis()
	defer harness.Stop(e.cmd)
	redis := redisDo(e, "set k v")
	defer redis.Close()
	ask := func(command string) string {
		harness.Must(fmt.Fprintf(redis, "%s\r\n", command))
		return redis.line()
	}
	c, r := dialStore(e)
	defer c.conn.Close()
	get := r.packets(1, wire.VerbGet, "k")
	at := s.setExpiring(e, n)
	time.Sleep(time.Until(at.Add(-100 * time.Millisecond)))
	gone := func() bool {
		return time.Since(at) > time.Second && ask("dbsize") == ":1\r\n" || time.Since(at) > time.Minute
	}
	return worst(gone, func() {
		c.send(get)
		c.await(1, 1, "v\r\n")
		ask("get k")
		redis.line()
	})
}

// A listing is a watch with raw output that this process counts.
type listing struct {
	cmd   *exec.Cmd
	lines *bufio.Scanner
}

// list starts `watch --match` with a pattern of all keys of the benchmark.
func (s *side) list(e endpoint) listing {
	args := s.args(e, "watch", "--match", "key*", "--rescan", "200ms", "-q", "-o", "raw")
	cmd := exec.CommandContext(s.ctx, args[0], args[1:]...)
	out := harness.Must(cmd.StdoutPipe())
	harness.Check(cmd.Start())
	return listing{cmd, bufio.NewScanner(out)}
}

// count reads until n events are deletions, or until n are not, according to deleted.
func (l listing) count(n int, deleted bool) {
	for n > 0 {
		if !l.lines.Scan() {
			harness.Check(fmt.Errorf("watch ended: %w", l.cmd.Wait()))
		}
		if strings.HasPrefix(l.lines.Text(), "delete\t") == deleted {
			n--
		}
	}
}

func (l listing) end() {
	_ = l.cmd.Process.Kill()
	_ = l.cmd.Wait() // an error is expected after the signal
}

// churn returns the memory of a watch after n keys were created and deleted, a few thousand at a time.
func (s *side) churn(n int) float64 {
	e := s.serve()
	defer harness.Stop(e.cmd)
	l := s.list(e)
	defer l.end()
	wave := min(n, 5000)
	for w := range n / wave {
		s.batch(e, inflight, wave, "set key"+strconv.Itoa(w)+"-%08d %s\n")
		l.count(wave, false)
		s.batch(e, inflight, wave, "del key"+strconv.Itoa(w)+"-%08d\n%.0s")
		l.count(wave, true)
	}
	time.Sleep(15 * time.Second) // a key is let go when it has been missing for ten seconds
	return endpoint{cmd: l.cmd}.resident()
}

// refused returns the seconds until a watch has reported each of n keys, of which the broker accepts about
// 2,000.
func (s *side) refused(n int) float64 {
	e := s.serve("--limit", "memory=1048576")
	defer harness.Stop(e.cmd)
	s.batch(e, inflight, n, setLine)
	begin := time.Now()
	l := s.list(e)
	defer l.end()
	l.count(n, false)
	return time.Since(begin).Seconds()
}

// top returns the seconds until top shows a key in a terminal.
func (s *side) top(n int) float64 {
	args := s.args(s.loaded(n), "top")
	cmd := exec.CommandContext(s.ctx, args[0], args[1:]...)
	cmd.Env = append(os.Environ(), "TERM=xterm")
	begin := time.Now()
	terminal := harness.Must(pty.StartWithSize(cmd, &pty.Winsize{Cols: 80, Rows: 24}))
	defer terminal.Close()
	defer listing{cmd: cmd}.end()
	var seen []byte
	for !bytes.Contains(seen, []byte("key0")) {
		part := make([]byte, 4096)
		got, err := terminal.Read(part)
		harness.Check(err)
		seen = append(seen, part[:got]...)
	}
	return time.Since(begin).Seconds()
}

// shrunk returns the memory of a server a minute after nine tenths of its n keys were deleted, and stops the
// server.
func (s *side) shrunk(e endpoint, n int) float64 {
	defer harness.Stop(e.cmd)
	s.pipe(e, n, setWords)
	s.pipe(e, n/10*9, delWords)
	return e.settled(time.Minute, 0)
}

// shrunkFile returns the size of a data file after nine tenths of its n keys were deleted and a server has
// restarted with it, relative to the size before.
func (s *side) shrunkFile(n int) float64 {
	file := filepath.Join(s.dir, "shrunk.db")
	defer os.Remove(file)
	e := s.serve("--data", file)
	s.batch(e, inflight, n, setLine)
	before := harness.Must(os.Stat(file)).Size()
	s.batch(e, inflight, n/10*9, delLine)
	harness.Stop(e.cmd)
	harness.Stop(s.serve("--data", file).cmd)
	return float64(harness.Must(os.Stat(file)).Size()) / float64(before)
}

// read returns the memory of a server after its n keys were read.
func (s *side) read(n int) float64 {
	e := s.serve()
	defer harness.Stop(e.cmd)
	s.batch(e, inflight, n, setLine)
	file := filepath.Join(s.dir, "read.jsonl")
	for _, words := range [][]string{{"scan"}, {"export", "-f", file}, {"diff", file}} {
		s.run(s.args(e, words...)...)
	}
	return e.resident()
}

// blob returns the name of a file of n bytes.
func (s *side) blob(n int) string {
	return once(s, fmt.Sprint("blob", n), func() string {
		name := filepath.Join(s.dir, fmt.Sprint("blob", n))
		f := harness.Must(os.Create(name))
		defer f.Close()
		piece := bytes.Repeat([]byte("v"), 1<<20)
		for left := n; left > 0; left -= len(piece) {
			harness.Must(f.Write(piece[:min(left, len(piece))]))
		}
		return name
	})
}

// setLarge sets a value of n bytes and returns the peak memory of both ends, in MB.
func (s *side) setLarge(n int) (client, server float64) {
	e := s.serve()
	defer harness.Stop(e.cmd)
	client = s.run(s.args(e, "set", "large", "-f", s.blob(n), "-t", "60s")...).memory()
	return client, harness.Must(harness.Memory(e.pid(), "VmHWM")) * (1 << 20) / 1e6
}

// remaining returns the memory in MB that a server keeps for a minute after a large value was deleted. It
// returns early when less than half of the value is kept.
func (s *side) remaining(n int) float64 {
	e := s.serve()
	defer harness.Stop(e.cmd)
	before := e.resident()
	for range 6 {
		s.run(s.args(e, "set", "large", "-f", s.blob(n), "-t", "60s")...)
	}
	s.run(s.args(e, "del", "large")...)
	return e.settled(time.Minute, before+float64(n)/2e6) - before
}

// contexts returns the milliseconds that a configuration file of n contexts adds to a command.
func (s *side) contexts(n int) float64 {
	e := s.emulator()
	s.run(s.args(e, "set", "k", "v")...)
	get := func(n int) func() float64 {
		name := filepath.Join(s.dir, fmt.Sprint(n, ".yaml"))
		f := harness.Must(os.Create(name))
		defer f.Close()
		harness.Must(io.WriteString(f, "contexts:\n"))
		for i := range n {
			harness.Must(fmt.Fprintf(f, "  context%d:\n    url: mqtt://%s\n", i, e.address()))
		}
		return func() float64 { return ms(s.run(s.sscli, "--config", name, "-c", "context0", "get", "k").took) }
	}
	f := rounds(s.ctx, 20, contender{"many", get(n)}, contender{"one", get(1)})
	return f[0].median() - f[1].median()
}
