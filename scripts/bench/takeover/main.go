// Command takeover measures how long the next holder of a lock waits, for `sscli lock
// run` on the emulator and for `etcdctl lock` on etcd. scripts/bench-takeover.sh runs
// it.
package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sscli/sscli/scripts/harness"
)

const ttl = 5 // seconds

// The bash scripts that the holder and the next holder run under the lock. Both connect to port
// $0. The holder sends "up", waits for a line, and sends the time. The next holder sends the time
// at which it started.
const (
	holding = `exec 3<>/dev/tcp/127.0.0.1/$0; echo up >&3; read -r _ <&3; echo "$EPOCHREALTIME" >&3`
	next    = `now=$EPOCHREALTIME; exec 3<>/dev/tcp/127.0.0.1/$0; echo "$now" >&3`
)

func main() {
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "usage: takeover [FLAGS] [RELEASES [DEATHS]]")
		flag.PrintDefaults()
	}
	harness.Main(time.Hour, []string{"bash", "etcd", "etcdctl"}, run)
}

func run(ctx context.Context, b *harness.Bench) error {
	rounds := [2]int{10, 5} // releases, deaths
	for i, arg := range flag.Args() {
		n, err := strconv.Atoi(arg)
		if err != nil || n < 1 || i >= len(rounds) {
			return fmt.Errorf("operand %q: want RELEASES and DEATHS, two numbers over 0", arg)
		}
		rounds[i] = n
	}
	store, err := b.Serve(ctx)
	if err != nil {
		return err
	}
	etcd, err := etcd(ctx, b)
	if err != nil {
		return err
	}
	contenders := []struct {
		name string
		lock func(script, port string) *exec.Cmd // a command that runs a script under the lock
	}{
		{"sscli", func(script, port string) *exec.Cmd {
			return b.Command(ctx, store, "lock", "run", "takeover", "--ttl", fmt.Sprintf("%ds", ttl), "--", "bash", "-c", script, port)
		}},
		{"etcdctl", func(script, port string) *exec.Cmd {
			cmd := exec.CommandContext(ctx, "etcdctl", "lock", "--ttl", strconv.Itoa(ttl), "takeover", "--", "bash", "-c", script, port)
			cmd.Env = append(os.Environ(), "ETCDCTL_API=3", "ETCDCTL_ENDPOINTS="+etcd)
			return cmd
		}},
	}
	fmt.Printf("TTL %ds; milliseconds from the end of one holder to the start of the next\n", ttl)
	fmt.Printf("%-8s %-8s %8s %8s %8s\n", "end", "of", "min", "median", "max")
	for i, end := range []string{"release", "SIGKILL"} {
		var measured []harness.Contender
		for _, c := range contenders {
			measured = append(measured, harness.Contender{Name: c.name, Measure: func() (float64, error) {
				return takeover(ctx, c.lock, end == "SIGKILL")
			}})
		}
		f, err := harness.Rounds(rounds[i], measured...)
		if err != nil {
			return fmt.Errorf("%s: %w", end, err)
		}
		for k, c := range contenders {
			fmt.Printf("%-8s %-8s %8.1f %8.1f %8.1f  (%d rounds)\n", end, c.name, slices.Min(f[k]), f[k].Median(), slices.Max(f[k]), rounds[i])
		}
	}
	return nil
}

// etcd starts an etcd server and returns the URL for its clients.
func etcd(ctx context.Context, b *harness.Bench) (string, error) {
	var urls [2]string
	for i := range urls {
		port, err := harness.FreePort()
		if err != nil {
			return "", err
		}
		urls[i] = "http://127.0.0.1:" + port
	}
	cmd := exec.CommandContext(ctx, "etcd", "--data-dir", b.Dir+"/etcd",
		"--listen-client-urls", urls[0], "--advertise-client-urls", urls[0],
		"--listen-peer-urls", urls[1], "--initial-advertise-peer-urls", urls[1], "--initial-cluster", "default="+urls[1])
	return urls[0], b.Start(cmd, "serving insecure client requests")
}

// takeover returns the milliseconds between the end of one holder and the start of the
// next. With kill, the process that holds the lock is killed; otherwise its command ends.
func takeover(ctx context.Context, lock func(script, port string) *exec.Cmd, kill bool) (ms float64, err error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer ln.Close()
	_, port, err := net.SplitHostPort(ln.Addr().String())
	if err != nil {
		return 0, err
	}

	first, err := start(lock(holding, port))
	if err != nil {
		return 0, err
	}
	defer first.end()
	holder, err := accept(ln, first)
	if err != nil {
		return 0, err
	}
	defer holder.Close() // ends a command that outlives its lock
	lines := bufio.NewReader(holder)
	if _, err := lines.ReadString('\n'); err != nil { // "up"
		return 0, err
	}
	second, err := start(lock(next, port))
	if err != nil {
		return 0, err
	}
	defer second.end()
	// Meanwhile the second process waits for the lock, and the first one renews it.
	select {
	case <-time.After(time.Second + rand.N(time.Second)):
	case <-ctx.Done():
		return 0, ctx.Err()
	}

	var from float64
	if kill {
		from = float64(time.Now().UnixMicro()) / 1e6
		err = first.cmd.Process.Kill()
	} else {
		if _, err = fmt.Fprintln(holder); err == nil {
			from, err = readTime(lines)
		}
	}
	if err != nil {
		return 0, err
	}
	taken, err := accept(ln, second)
	if err != nil {
		return 0, err
	}
	defer taken.Close()
	to, err := readTime(bufio.NewReader(taken))
	return (to - from) * 1000, err
}

// readTime reads a line with a Unix time, in seconds.
func readTime(lines *bufio.Reader) (float64, error) {
	line, err := lines.ReadString('\n')
	if err != nil {
		return 0, err
	}
	return strconv.ParseFloat(strings.TrimSpace(line), 64)
}

// A locker is a process that runs a command under the lock.
type locker struct {
	cmd  *exec.Cmd
	said *strings.Builder
}

func start(cmd *exec.Cmd) (locker, error) {
	l := locker{cmd, new(strings.Builder)}
	cmd.Stderr = l.said
	cmd.WaitDelay = time.Second // a command that outlives its lock keeps stderr open
	return l, cmd.Start()
}

// end kills the process if it is still running.
func (l locker) end() {
	_ = l.cmd.Process.Kill() // it may have ended
	_ = l.cmd.Wait()         // an error is expected after the signal
}

// accept waits for the connection of the command that l runs.
func accept(ln net.Listener, l locker) (net.Conn, error) {
	err := ln.(*net.TCPListener).SetDeadline(time.Now().Add(time.Minute))
	if err != nil {
		return nil, err
	}
	conn, err := ln.Accept()
	if err != nil {
		l.end()
		return nil, errors.Join(fmt.Errorf("%s got no lock: %s", l.cmd.Args[0], l.said), err)
	}
	return conn, nil
}
