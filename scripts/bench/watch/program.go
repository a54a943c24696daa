package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/sscli/sscli/client/wire"
)

const (
	watcher = "bench-watcher" // client id of sscli
	oneKey  = "bench/key"

	watchName     = "sscli watch"
	subscribeName = "mosquitto_sub"

	// probe is sent until a program prints it. It is no number of a measurement.
	probe = 1<<64 - 1
)

// A program prints a line for each notification.
type program struct {
	name   string
	args   []string
	before string // stands in a line right before the value
}

func (b *bench) watch() program {
	return program{
		name:   watchName,
		args:   []string{b.sscli, "watch", "-u", "mqtt://" + b.broker, "-i", watcher, "-o", "json", "--keys-from", "-"},
		before: `"value":"`,
	}
}

func (b *bench) subscribe() program {
	host, port, _ := net.SplitHostPort(b.broker)
	return program{
		name: subscribeName,
		args: []string{"mosquitto_sub", "-V", "5", "-h", host, "-p", port, "-i", "bench-sub", "-q", "1",
			"-t", wire.NotifyFilter(watcher), "-F", "%j"},
		before: `$16\r\n`, // the value within the payload
	}
}

// A running is a program that prints.
type running struct {
	program
	cmd   *exec.Cmd
	lines *bufio.Reader
	ended bool
}

// start runs a program and waits until it prints what is published, for the last
// of keys; sscli is done with the others then too.
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
				// The first that is not a probe is behind the last one.
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

// next is the number in the next line that has one.
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
			continue // an initial of a missing key
		}
		return strconv.ParseUint(string(rest[:16]), 16, 64)
	}
}

// end kills the program: that it would end by itself is not what is measured.
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

// cpu is the processor time that the program took, if it has ended.
func (r *running) cpu() time.Duration {
	return r.cmd.ProcessState.UserTime() + r.cmd.ProcessState.SystemTime()
}

// peakMemory is the largest resident set that the program had so far, in MiB.
func (r *running) peakMemory() (float64, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", r.cmd.Process.Pid))
	if err != nil {
		return 0, fmt.Errorf("only Linux tells of memory: %w", err)
	}
	_, rest, _ := strings.Cut(string(status), "VmHWM:")
	var kib float64
	if _, err := fmt.Sscanf(rest, "%f kB", &kib); err != nil {
		return 0, fmt.Errorf("VmHWM of the process: %w", err)
	}
	return kib / 1024, nil
}
