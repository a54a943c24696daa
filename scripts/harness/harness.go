// Package harness has the shared parts of the benchmarks and the attacks: it builds the program
// under test, starts servers on loopback and stops them.
package harness

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/sscli/sscli/internal/testkit/freeport"
)

// A Bench is one run of a program that measures sscli.
type Bench struct {
	SSCLI string // path of the program under test
	Dir   string // scratch directory, removed at the end

	missed  bool // a goal was missed
	servers []*exec.Cmd
}

// A failure is an error that ends the run; see [Check].
type failure struct{ error }

// Check ends the run if err is not nil: it panics, and [Try] or [Main] recovers. It must be called
// on the goroutine that they called.
func Check(err error) {
	if err != nil {
		panic(failure{err})
	}
}

// Must returns v, and ends the run if err is not nil, as [Check] does.
func Must[T any](v T, err error) T {
	Check(err)
	return v
}

// Try calls f and returns the error of a [Check] that failed in it.
func Try(f func()) (err error) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case failure:
			err = r.error
		default:
			panic(r)
		}
	}()
	f()
	return nil
}

// Main parses the flags, calls run for at most limit, which the flag -limit overrides, and
// stops the servers it started. It exits with 2 if the run failed, and with 1 if it missed a goal.
func Main(limit time.Duration, run func(context.Context, *Bench) error) {
	sscli := flag.String("sscli", "", "sscli to measure (default: built from the current directory)")
	flag.DurationVar(&limit, "limit", limit, "give up after this time")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	b := Bench{SSCLI: *sscli}
	if err := b.run(ctx, run); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", filepath.Base(os.Args[0]), err)
		os.Exit(2)
	}
	if b.missed {
		os.Exit(1)
	}
}

func (b *Bench) run(ctx context.Context, run func(context.Context, *Bench) error) (err error) {
	if b.Dir, err = os.MkdirTemp("", "bench"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(b.Dir)) }()
	if b.SSCLI == "" {
		b.SSCLI = filepath.Join(b.Dir, "sscli")
		if err := Build(ctx, "", b.SSCLI, "./cmd/sscli"); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithCancel(ctx)
	defer func() {
		cancel() // terminates the servers
		for _, cmd := range b.servers {
			_ = cmd.Wait() // an error is expected after the signal
		}
	}()
	if failed := Try(func() { err = run(ctx, b) }); failed != nil {
		return failed
	}
	return err
}

// Build builds a program from a Go package or file of the module in dir, with the flags of a release. An
// empty dir is the current directory.
//
// The program is a copy of what the linker has written, as an installed program is: the kernel caches that in
// small pages, and starts it up to a quarter slower.
func Build(ctx context.Context, dir, program, source string) error {
	cmd := exec.CommandContext(ctx, "go", "build", "-buildvcs=false", "-trimpath", "-tags", "nethttpomithttp2", "-ldflags", "-s -w -X main.buildVersion=bench", "-o", program+".linked", source)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if _, err := Run(cmd); err != nil {
		return err
	}
	_, err := Run(exec.CommandContext(ctx, "cp", program+".linked", program))
	return err
}

// Run runs a command and returns how long it took. The error includes what the command
// wrote to standard error.
func Run(cmd *exec.Cmd) (time.Duration, error) {
	var stderr strings.Builder
	cmd.Stderr = &stderr
	begin := time.Now()
	err := cmd.Run()
	took := time.Since(begin)
	if err != nil {
		return took, fmt.Errorf("%s: %w: %s", strings.Join(cmd.Args, " "), err, stderr.String())
	}
	return took, nil
}

// Start starts a server and waits until it prints a line that contains the text in ready. The
// server is terminated by [Stop], or at the end of the run. Start discards what the server
// prints later, except for standard error if cmd.Stderr is set.
func (b *Bench) Start(cmd *exec.Cmd, ready string) error {
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 10 * time.Second
	read, write, err := os.Pipe()
	if err != nil {
		return err
	}
	cmd.Stdout = write
	if cmd.Stderr == nil {
		cmd.Stderr = write
	}
	err = cmd.Start()
	write.Close()
	if err != nil {
		read.Close()
		return err
	}
	b.servers = append(b.servers, cmd)
	var said strings.Builder
	lines := bufio.NewScanner(read)
	for lines.Scan() {
		said.WriteString(lines.Text() + "\n")
		if strings.Contains(lines.Text(), ready) {
			go func() { // ends with the server
				_, _ = io.Copy(io.Discard, read)
				read.Close()
			}()
			return nil
		}
	}
	err = lines.Err()
	read.Close()
	if err != nil {
		return fmt.Errorf("%s: %w", cmd.Args[0], err)
	}
	return fmt.Errorf("%s ended: %s", cmd.Args[0], said.String())
}

// Stop terminates a server and waits for its end.
func Stop(cmd *exec.Cmd) {
	_ = cmd.Process.Signal(syscall.SIGTERM) // it may have ended already
	_ = cmd.Wait()                          // an error is expected after the signal
}

// Memory returns a memory field of /proc/PID/status, such as VmHWM, in MiB.
func Memory(pid int, field string) (float64, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, fmt.Errorf("memory needs Linux's /proc: %w", err)
	}
	_, rest, _ := strings.Cut(string(status), field+":")
	var kB float64
	if _, err := fmt.Sscanf(rest, "%f kB", &kB); err != nil {
		return 0, fmt.Errorf("%s of process %d: %w", field, pid, err)
	}
	return kB / 1024, nil
}

// CPU returns the CPU time that a process has used, with a resolution of 10 ms.
func CPU(pid int) (time.Duration, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, fmt.Errorf("CPU time needs Linux's /proc: %w", err)
	}
	// The second field, the name in parentheses, may contain spaces.
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	// In proc(5), utime is field 14 and stime field 15, and fields[0] is field 3. Times are in
	// hundredths of a second.
	const utime, stime, tick = 14 - 3, 15 - 3, 10 * time.Millisecond
	user, err := strconv.Atoi(fields[utime])
	if err != nil {
		return 0, err
	}
	system, err := strconv.Atoi(fields[stime])
	return time.Duration(user+system) * tick, err
}

// FreePort returns a port on which nothing listens, for servers that cannot choose one.
func FreePort() (string, error) {
	ln, err := freeport.Find()
	if err != nil {
		return "", err
	}
	defer ln.Close()
	_, port, err := net.SplitHostPort(ln.Addr().String())
	return port, err
}

// Miss records a missed goal.
func (b *Bench) Miss() { b.missed = true }
