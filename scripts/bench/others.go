//go:build linux

package main

import (
	"bufio"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/sscli/sscli/scripts/harness"
)

// attackRows returns the rows that run scripts/hostile, which has a bound for each attack.
func attackRows(b *bench) []row {
	form := "a tenth of each attack of scripts/hostile.sh"
	if b.full {
		form = "the attacks of scripts/hostile.sh"
	}
	return []row{
		{number: "P14", what: "ms, the slowest PING or GET of another client during " + form, goal: most(100), times: 0.2, alone: true,
			ours: func(s *side) float64 { return s.attacked().answer }},
		{number: "P15", what: "memory under attack, relative to the limit, the stored values and 64 MiB, " + form, goal: most(1), times: 0.2, alone: true,
			ours: func(s *side) float64 { return s.attacked().memory }},
	}
}

type attacked struct{ answer, memory float64 } // the worst figures of all attacks

// attacked runs the attacks, each of which prints a row of a Markdown table.
func (s *side) attacked() attacked {
	return once(s, "attacked", func() (worst attacked) {
		program := filepath.Join(s.dir, "hostile")
		harness.Check(harness.Build(s.ctx, "", program, "./scripts/hostile"))
		cmd := exec.CommandContext(s.ctx, program, "-sscli", s.sscli, fmt.Sprintf("-short=%v", !s.full))
		var out strings.Builder
		cmd.Stdout, cmd.Stderr = &out, os.Stderr
		err := cmd.Run()
		if cmd.ProcessState == nil || cmd.ProcessState.ExitCode() > 1 { // 1 = a bound is broken
			harness.Check(err)
		}
		for line := range strings.Lines(out.String()) {
			fmt.Fprint(os.Stderr, "  ", line)
			cells := strings.Split(line, " | ")
			if len(cells) < 3 {
				continue
			}
			answer, _ := strconv.ParseFloat(cells[2], 64) // the heading of the table has no number
			worst.answer = max(worst.answer, answer)
			var peak, bound float64
			if _, err := fmt.Sscanf(cells[1], "%f of %f", &peak, &bound); err == nil {
				worst.memory = max(worst.memory, peak/bound)
			}
		}
		return worst
	})
}

const ttl = 5 // TTL of a lease in seconds

// takeoverRows compares how long the next holder of a lock waits, for `sscli lock run` on the emulator and
// for `etcdctl lock` on etcd. Both renew a lease about three times per TTL.
func takeoverRows(*bench) []row {
	ours := func(s *side, script, port string) *exec.Cmd {
		args := s.args(s.emulator(), "lock", "run", "takeover", "--ttl", fmt.Sprintf("%ds", ttl), "--", "bash", "-c", script, port)
		return exec.CommandContext(s.ctx, args[0], args[1:]...)
	}
	peer := func(s *side, script, port string) *exec.Cmd {
		cmd := exec.CommandContext(s.ctx, "etcdctl", "lock", "--ttl", strconv.Itoa(ttl), "takeover", "--", "bash", "-c", script, port)
		cmd.Env = append(os.Environ(), "ETCDCTL_API=3", "ETCDCTL_ENDPOINTS="+once(s, "etcd", s.etcd))
		return cmd
	}
	both := func(what string, kill bool, times float64) row {
		return row{what: what, goal: less, times: times,
			ours: func(s *side) float64 { return s.takeover(ours, kill) }, peer: func(s *side) float64 { return s.takeover(peer, kill) }}
	}
	return []row{
		both("ms from the end of a holder's command to the next command, `lock run` / `etcdctl lock`", false, 2),
		both(fmt.Sprintf("ms from SIGKILL of a holder with a TTL of %d s to the next command, `lock run` / `etcdctl lock`", ttl), true, 1),
	}
}

// etcd starts an etcd server and returns the URL for its clients.
func (s *side) etcd() string {
	client, peer := "http://127.0.0.1:"+freePort(), "http://127.0.0.1:"+freePort()
	s.start(endpoint{}, "serving insecure client requests", "etcd", "--data-dir", filepath.Join(s.dir, "etcd"),
		"--listen-client-urls", client, "--advertise-client-urls", client,
		"--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--initial-cluster", "default="+peer)
	return client
}

// The bash scripts that the holder and the next holder run under the lock. Both connect to port
// $0. The holder sends "up", waits for a line, and sends the time. The next holder sends the time
// at which it started.
const (
	holding = `exec 3<>/dev/tcp/127.0.0.1/$0; echo up >&3; read -r _ <&3; echo "$EPOCHREALTIME" >&3`
	next    = `now=$EPOCHREALTIME; exec 3<>/dev/tcp/127.0.0.1/$0; echo "$now" >&3`
)

// takeover returns the milliseconds between the end of one holder and the start of the
// next. With kill, the process that holds the lock is killed; otherwise its command ends.
func (s *side) takeover(lock func(s *side, script, port string) *exec.Cmd, kill bool) float64 {
	ln := harness.Must(net.Listen("tcp", "127.0.0.1:0")).(*net.TCPListener)
	defer ln.Close()
	port := strconv.Itoa(ln.Addr().(*net.TCPAddr).Port)
	start := func(script string) listing {
		l := listing{cmd: lock(s, script, port)}
		l.cmd.Stderr = os.Stderr
		l.cmd.WaitDelay = time.Second // a command that outlives its lock keeps stderr open
		harness.Check(l.cmd.Start())
		return l
	}
	accept := func() (net.Conn, *bufio.Reader) { // waits for the connection of the next command
		harness.Check(ln.SetDeadline(time.Now().Add(time.Minute)))
		conn := harness.Must(ln.Accept())
		return conn, bufio.NewReader(conn)
	}
	first := start(holding)
	defer first.end()
	holder, lines := accept()
	defer holder.Close()                 // ends a command that outlives its lock
	harness.Must(lines.ReadString('\n')) // "up"
	second := start(next)
	defer second.end()
	// Meanwhile the second process waits for the lock, and the first one renews it.
	time.Sleep(time.Second + rand.N(time.Second))

	var from float64
	if kill {
		from = float64(time.Now().UnixMicro()) / 1e6
		harness.Check(first.cmd.Process.Kill())
	} else {
		harness.Must(fmt.Fprintln(holder))
		from = readTime(lines)
	}
	taken, lines := accept()
	defer taken.Close()
	return (readTime(lines) - from) * 1000
}

// readTime reads a line with a Unix time, in seconds.
func readTime(lines *bufio.Reader) float64 {
	return harness.Must(strconv.ParseFloat(strings.TrimSpace(harness.Must(lines.ReadString('\n'))), 64))
}

const namespace = "azure-iot-operations"

// viaRows compares `sscli --via kubectl get` with a `kubectl port-forward`, and with the three kubectl
// processes that sscli starts, run without sscli.
func viaRows(b *bench) []row {
	if os.Getenv("CLUSTER") == "" {
		harness.Check(errors.New("no cluster: use scripts/cluster.sh scripts/bench.sh via"))
	}
	forward := []string{"kubectl", "port-forward", "--namespace=" + namespace, "--address=127.0.0.1", "service/aio-broker", ":18883"}
	// sscli starts kubectl with the same environment variable and flag.
	kubectl := []string{"env", "GOGC=400", "kubectl", "--namespace=" + namespace}
	get := func(s *side) float64 {
		once(s, "via", func() usage { return s.run(s.sscli, "--via", "kubectl", "set", "k", "v") })
		return b.until("v", s.sscli, "--via", "kubectl", "get", "k")
	}
	alone := func(*side) float64 { return b.until("Forwarding from", forward...) }
	three := func(*side) float64 {
		return slowest(
			func() float64 { return b.until("Forwarding from", append(kubectl[:2:2], forward...)...) },
			func() float64 {
				return b.until("{", append(kubectl[:4:4], "get", "--raw", "/api/v1/namespaces/"+namespace+"/configmaps/azure-iot-operations-aio-ca-trust-bundle")...)
			},
			func() float64 {
				return b.until("ey", append(kubectl[:4:4], "create", "token", "default", "--audience=aio-internal")...)
			})
	}
	return []row{
		{number: "P17", what: "ms, `--via kubectl get` until its answer / `kubectl port-forward` until it is ready", ours: get, peer: alone, goal: most(1.6), times: 4},
		{what: "ms, the three kubectl processes of `--via kubectl`, without sscli / `kubectl port-forward` until it is ready", ours: three, peer: alone, goal: less, times: 4, alone: true},
	}
}

// slowest runs the measurements in parallel and returns the largest figure.
func slowest(measures ...func() float64) float64 {
	figures, errs := make([]float64, len(measures)), make([]error, len(measures))
	var all sync.WaitGroup
	for i, measure := range measures {
		all.Go(func() { errs[i] = harness.Try(func() { figures[i] = measure() }) })
	}
	all.Wait()
	harness.Check(errors.Join(errs...))
	return slices.Max(figures)
}

// until runs a command and returns the milliseconds until its standard output begins with text. It
// then interrupts the command and waits for its end.
func (b *bench) until(text string, args ...string) float64 {
	cmd := exec.CommandContext(b.ctx, args[0], args[1:]...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out := harness.Must(cmd.StdoutPipe())
	begin := time.Now()
	harness.Check(cmd.Start())
	got, _ := bufio.NewReaderSize(out, 64).Peek(len(text)) // after an error, got holds the bytes read before the error
	took := time.Since(begin)
	_ = cmd.Process.Signal(os.Interrupt) // fails if the command has ended
	_ = cmd.Wait()                       // its error is expected after the interrupt
	if string(got) != text {
		harness.Check(fmt.Errorf("%s: printed %q, want %q: %s", strings.Join(args, " "), got, text, &stderr))
	}
	return ms(took)
}
