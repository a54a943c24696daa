//go:build linux

package main

import (
	"bufio"
	"encoding/csv"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	bolt "go.etcd.io/bbolt"

	"github.com/sscli/sscli/internal/wire"
	"github.com/sscli/sscli/scripts/harness"
)

// emulatorRows returns the rows about the emulator as an MQTT server.
func emulatorRows(b *bench) []row {
	var rows []row
	for _, verb := range []string{wire.VerbSet, wire.VerbGet} {
		for _, test := range []struct {
			depth int
			goal  float64
		}{{1, 0.8}, {16, 0.7}, {64, 0.45}, {256, 0.45}} {
			rows = append(rows, row{number: "P8", what: fmt.Sprintf("%ss a second, %d in flight, emulator / redis-server", verb, test.depth),
				ours: func(s *side) float64 { return s.requestRate(s.emulator(), verb, test.depth) },
				peer: func(s *side) float64 { return s.redisRate(verb, test.depth) }, goal: least(test.goal)})
		}
	}
	n := b.n(1_000_000)
	return append(rows,
		row{number: "P8", what: "SETs a second, 64 in flight, emulator / store attached to a Mosquitto with nodelay",
			ours: func(s *side) float64 { return s.requestRate(s.emulator(), wire.VerbSet, 64) },
			peer: func(s *side) float64 { return s.requestRate(s.mosquitto("nodelay"), wire.VerbSet, 64) }, goal: least(10), times: 0.6, alone: true},
		row{number: "P11", what: fmt.Sprintf("MB resident with %d keys of 100 bytes, emulator / redis-server", n),
			ours: func(s *side) float64 {
				e := s.serve()
				defer harness.Stop(e.cmd)
				s.batch(e, inflight, n, setLine)
				return e.resident()
			},
			peer: func(s *side) float64 {
				e := s.startRedis()
				defer harness.Stop(e.cmd)
				s.pipe(e, n, setWords)
				return e.resident()
			}, goal: most(1.2), times: 0.2})
}

const long = 700 * time.Millisecond // duration of the measurement of a rate

// requestRate returns the requests per second on one connection. Like redis-benchmark, it repeatedly
// sends depth requests at once and waits for all replies.
func (s *side) requestRate(e endpoint, verb string, depth int) (perSecond float64) {
	c, r := dialStore(e)
	defer c.conn.Close()
	words, ending := []string{verb, "bench", value}, "+OK\r\n"
	if verb == wire.VerbGet {
		c.send(r.packets(1, wire.VerbSet, "bench", value))
		c.await(1, 1, ending)
		words, ending = words[:2], value+"\r\n"
	}
	made, sent := r.packets(depth, words...), 0
	var server float64
	sender := cpuOf(os.Getpid(), func() {
		server = cpuOf(e.pid(), func() {
			perSecond = float64(depth) * rate(long, func() {
				sent += depth
				c.send(made)
				c.await(depth, depth, ending)
			})
		})
	})
	detail("sscli", perSecond, sent, server, sender)
	return perSecond
}

// redisRate returns the requests per second that redis-benchmark measures on one connection.
func (s *side) redisRate(verb string, depth int) float64 {
	name := fmt.Sprint("requests", verb, depth)
	n := once(s, name, func() int { // enough requests for about the duration long
		return int(s.redisBenchmark(s.redisServer(), verb, 10_000*min(depth, 10), depth, "-c", "1", "-d", "100") * long.Seconds())
	})
	return s.redisBenchmark(s.redisServer(), verb, max(n, depth), depth, "-c", "1", "-d", "100")
}

// redisBenchmark runs redis-benchmark and returns the requests per second.
func (s *side) redisBenchmark(e endpoint, verb string, n, pipeline int, flags ...string) float64 {
	cmd := exec.CommandContext(s.ctx, "redis-benchmark", append([]string{"-p", e.redis, "-n", strconv.Itoa(n), "-P", strconv.Itoa(pipeline),
		"-t", strings.ToLower(verb), "--csv"}, flags...)...)
	var out strings.Builder
	cmd.Stdout = &out
	server := cpuOf(e.pid(), func() { harness.Must(harness.Run(cmd)) })
	for _, fields := range harness.Must(csv.NewReader(strings.NewReader(out.String())).ReadAll()) {
		if fields[0] == verb {
			perSecond := harness.Must(strconv.ParseFloat(fields[1], 64))
			detail(filepath.Base(e.cmd.Args[0]), perSecond, n, server, (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds())
			return perSecond
		}
	}
	harness.Check(fmt.Errorf("redis-benchmark printed no rate of %s: %s", verb, &out))
	return 0
}

// redisRows returns the rows about the Redis port.
func redisRows(b *bench) []row {
	rateOf := func(server func(*side) endpoint, verb string, pipeline int) func(*side) float64 {
		n := b.n(100_000)
		if pipeline > 1 {
			n *= 10
		}
		return func(s *side) float64 { return s.redisBenchmark(server(s), verb, n, pipeline, "-r", "100000") }
	}
	// notified is rateOf with a subscriber that reads all notifications.
	notified := func(server func(*side) endpoint) func(*side) float64 {
		return func(s *side) float64 {
			redisDo(server(s), "config set notify-keyspace-events KEA").Close()
			sub := redisDo(server(s), "psubscribe __key*__:*")
			go func() { _, _ = io.Copy(io.Discard, sub) }() // ends when sub is closed
			defer sub.Close()
			defer func() { redisDo(server(s), "config set notify-keyspace-events ''").Close() }()
			return rateOf(server, "SET", 64)(s)
		}
	}
	n, expiring := b.n(1_000_000), b.n(20_000)
	memory := func(server func(*side) endpoint) func(*side) float64 {
		return func(s *side) float64 {
			e := server(s)
			defer harness.Stop(e.cmd)
			s.pipe(e, n, setWords)
			return e.resident()
		}
	}
	own, redis := (*side).redisPort, (*side).redisServer
	return []row{
		{number: "P12", what: "Redis port, SETs a second, one at a time / redis-server", ours: rateOf(own, "SET", 1), peer: rateOf(redis, "SET", 1), goal: least(0.85)},
		{number: "P12", what: "Redis port, GETs a second, one at a time / redis-server", ours: rateOf(own, "GET", 1), peer: rateOf(redis, "GET", 1), goal: least(0.85)},
		{number: "P12", what: "Redis port, SETs a second, pipelines of 64 / redis-server", ours: rateOf(own, "SET", 64), peer: rateOf(redis, "SET", 64), goal: least(1)},
		{number: "P12", what: "Redis port, GETs a second, pipelines of 64 / redis-server", ours: rateOf(own, "GET", 64), peer: rateOf(redis, "GET", 64), goal: least(1)},
		{number: "P12", what: "Redis port, SETs a second with KEA and one subscriber, pipelines of 64 / redis-server", ours: notified(own), peer: notified(redis), goal: least(0.95)},
		{number: "P12", what: fmt.Sprintf("Redis port, seconds until %d keys that expire at once are notified", expiring),
			ours: func(s *side) float64 { return s.expiry(expiring) }, goal: most(0.2), times: 0.2},
		{number: "P12", what: fmt.Sprintf("Redis port, MB resident with %d keys of 100 bytes / redis-server", n),
			ours: memory((*side).serveRedis), peer: memory((*side).startRedis), goal: most(1.2), times: 0.2},
	}
}

// A redisConn is a connection to a Redis port.
type redisConn struct {
	net.Conn
	*bufio.Reader
}

func (c redisConn) Read(b []byte) (int, error) { return c.Reader.Read(b) }

// line reads a line.
func (c redisConn) line() string { return harness.Must(c.ReadString('\n')) }

// redisDo sends a command on a new connection, which the caller must close. It reads the first line
// of the reply.
func redisDo(e endpoint, command string) redisConn {
	nc := harness.Must(net.Dial("tcp", "127.0.0.1:"+e.redis))
	c := redisConn{nc, bufio.NewReaderSize(nc, 1<<16)}
	harness.Must(fmt.Fprintf(c, "%s\r\n", command))
	if line := c.line(); line[0] == '-' {
		harness.Check(fmt.Errorf("%s: %s", command, line))
	}
	return c
}

// setExpiring sets n keys that expire at the same time, and returns this time.
func (s *side) setExpiring(e endpoint, n int) time.Time {
	at := time.Now().Add(2*time.Second + time.Duration(n)*10*time.Microsecond).Truncate(time.Millisecond)
	setter := redisDo(e, "PING")
	defer setter.Close()
	written := inBackground(func() {
		w := bufio.NewWriter(setter)
		for i := range n {
			fmt.Fprintf(w, "set expiring:%d v pxat %d\r\n", i, at.UnixMilli())
		}
		harness.Check(w.Flush())
	})
	for range n {
		setter.line()
	}
	harness.Check(<-written)
	if time.Now().After(at) {
		harness.Check(fmt.Errorf("this machine does not set %d keys in time", n))
	}
	return at
}

// expiry returns the seconds until all notifications have arrived when n keys expire at once.
func (s *side) expiry(n int) float64 {
	redisDo(s.redisPort(), "config set notify-keyspace-events KEA").Close()
	sub := redisDo(s.redisPort(), "subscribe __keyevent@0__:expired")
	defer sub.Close()
	at := s.setExpiring(s.redisPort(), n)
	for notified := 0; notified < n; {
		if strings.HasPrefix(sub.line(), "expiring:") {
			notified++
		}
	}
	return time.Since(at).Seconds()
}

// syncsOfCommit is how often bbolt syncs its file in a commit: after the pages, and after the page that names them.
const syncsOfCommit = 2

// dataRows returns the rows about `serve --data`.
func dataRows(b *bench) []row {
	n, writes := b.n(1_000_000), b.n(50_000)
	inFlight := func(s *side, flags ...string) float64 {
		e := s.serve(flags...)
		defer harness.Stop(e.cmd)
		return s.benchRate(e, "--mix", "set=1", "--inflight", "64", "-n", strconv.Itoa(writes))
	}
	// data measures writes to a new file, and returns their rate and the number of commits to the file.
	data := func(s *side) (perSecond float64, commits int) {
		file := filepath.Join(s.dir, "bench.db")
		defer os.Remove(file)
		perSecond = inFlight(s, "--data", file)
		db := harness.Must(bolt.Open(file, 0, &bolt.Options{ReadOnly: true}))
		defer db.Close()
		harness.Check(db.View(func(tx *bolt.Tx) error {
			commits = tx.ID()
			return nil
		}))
		return perSecond, commits
	}
	acknowledged := func(s *side) float64 {
		perSecond, _ := data(s)
		return perSecond
	}
	// A stored is a data file of n keys and the memory of the server that wrote it.
	type stored struct {
		file     string
		resident float64
	}
	filled := func(s *side) stored {
		return once(s, "filled", func() stored {
			file := filepath.Join(s.dir, "keys.db")
			e := s.serve("--data", file)
			defer harness.Stop(e.cmd)
			s.batch(e, inflight, n, setLine)
			return stored{file, e.resident()}
		})
	}
	restart := func(s *side, measure func(e endpoint, took time.Duration) float64) float64 {
		file := filled(s).file
		begin := time.Now()
		e := s.serve("--data", file)
		defer harness.Stop(e.cmd)
		return measure(e, time.Since(begin))
	}
	return []row{
		{number: "P13", what: "acknowledged writes a second with `--data`, 64 in flight / syncs of the disk", ours: acknowledged, peer: (*side).syncs, goal: least(4.5)},
		{number: "P13", what: "syncs a write with `--data`, 64 in flight", ours: func(s *side) float64 {
			_, commits := data(s)
			return float64(syncsOfCommit*commits) / float64(writes)
		}, goal: most(0.07), times: 0.6},
		{what: "acknowledged writes a second, 64 in flight, with `--data` / in memory", ours: acknowledged,
			peer: func(s *side) float64 { return inFlight(s) }, goal: more, times: 0.6, alone: true},
		{what: fmt.Sprintf("MB resident with %d keys of 100 bytes, `--data` / in memory", n), ours: func(s *side) float64 { return filled(s).resident },
			peer: func(s *side) float64 { return s.loaded(n).resident() }, goal: less, times: 0.2},
		{what: fmt.Sprintf("MB of the file of %d keys of 100 bytes", n), ours: func(s *side) float64 {
			return float64(harness.Must(os.Stat(filled(s).file)).Size()) / 1e6
		}, goal: less, times: 0.2},
		{what: fmt.Sprintf("ms until a store with %d keys in a file is ready", n), ours: func(s *side) float64 {
			return restart(s, func(_ endpoint, took time.Duration) float64 { return ms(took) })
		}, goal: less, times: 0.6},
		{what: fmt.Sprintf("MB resident after a start with %d keys in a file", n), ours: func(s *side) float64 {
			return restart(s, func(e endpoint, _ time.Duration) float64 { return e.resident() })
		}, goal: less, times: 0.2},
	}
}

// syncs returns how many sequential writes of 4 kB the disk confirms per second.
func (s *side) syncs() float64 {
	name := filepath.Join(s.dir, "sync")
	f := harness.Must(os.OpenFile(name, os.O_CREATE|os.O_WRONLY|syscall.O_DSYNC, 0o600))
	defer os.Remove(name)
	defer f.Close()
	block := make([]byte, 4096)
	return rate(500*time.Millisecond, func() { harness.Must(f.Write(block)) })
}
