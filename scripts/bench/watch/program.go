//go:build linux

package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/sscli/sscli/internal/wire"
	"github.com/sscli/sscli/scripts/harness"
)

const (
	watcher = "bench-watcher" // client id of sscli
	oneKey  = "bench/key"

	// probe is sent until a program prints it. No measurement uses this number.
	probe = 1<<64 - 1
)

// A program prints a line for each notification.
type program struct {
	name   string
	args   []string
	before string // the text before the value in a line
}

func (b *bench) watch() program {
	return program{
		name:   "sscli watch",
		args:   b.Args(b.broker, "watch", "-i", watcher, "-o", "json", "--keys-from", "-"),
		before: `"value":"`,
	}
}

func (b *bench) subscribe() program {
	return program{
		name: "mosquitto_sub",
		args: []string{"mosquitto_sub", "-V", "5", "-h", "127.0.0.1", "-p", b.broker.Port, "-i", "bench-sub", "-q", "1",
			"-t", wire.NotifyFilter(watcher), "-F", "%j"},
		before: `$16\r\n`, // in the payload, the length of the value
	}
}

// A running is a started program.
type running struct {
	program
	cmd   *exec.Cmd
	lines *bufio.Reader
	ended bool
}

// start runs a program and waits until it prints a notification of the last of keys. By
// then sscli watches the other keys too.
func (b *bench) start(ctx context.Context, p program, keys ...string) (*running, error) {
	cmd := exec.CommandContext(ctx, p.args[0], p.args[1:]...)
	cmd.Stdin = strings.NewReader(strings.Join(keys, "\n"))
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	r := &running{program: p, cmd: cmd, lines: bufio.NewReaderSize(out, 1<<16)}
	seen := make(chan struct{})
	published := b.publisher.begin(func() error {
		again := time.NewTicker(20 * time.Millisecond)
		defer again.Stop()
		for {
			err := b.publisher.publish(ctx, keys[len(keys)-1], probe)
			if err != nil {
				return err
			}
			select {
			case <-again.C:
			case <-seen:
				// The reader below discards probes until this number.
				return b.publisher.publish(ctx, keys[len(keys)-1], probe-1)
			}
		}
	})
	got, err := r.next()
	close(seen)
	for ; err == nil && got == probe; got, err = r.next() {
	}
	if err := errors.Join(err, published()); err != nil {
		return nil, errors.Join(err, r.end())
	}
	return r, nil
}

// next returns the number in the next line that has one.
func (r *running) next() (uint64, error) {
	for {
		line, err := r.lines.ReadSlice('\n')
		if err == io.EOF {
			return 0, errors.New("it ended")
		}
		if err != nil {
			return 0, err
		}
		_, rest, found := bytes.Cut(line, []byte(r.before))
		if !found || len(rest) < 16 {
			continue // the initial event of a missing key
		}
		return strconv.ParseUint(string(rest[:16]), 16, 64)
	}
}

// end kills the program. If the program had already ended, end returns an error.
func (r *running) end() error {
	if r.ended {
		return nil
	}
	r.ended = true
	_ = r.cmd.Process.Kill() // it may have ended
	err := r.cmd.Wait()
	if r.cmd.ProcessState.Exited() {
		return fmt.Errorf("it ended by itself: %w", err)
	}
	return nil
}

// cpu returns the CPU time of the program. It must not be called before end.
func (r *running) cpu() time.Duration {
	return r.cmd.ProcessState.UserTime() + r.cmd.ProcessState.SystemTime()
}

// peakMemory returns the largest resident set of the program so far, in MiB.
func (r *running) peakMemory() (float64, error) {
	kib, err := harness.Memory(r.cmd.Process.Pid, "VmHWM")
	return kib / 1024, err
}
