package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/gob"
	"fmt"
	"io"
	"os"
	"os/exec"
	"reflect"
	"slices"
	"sync"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// workerName is the argv[0] of a worker.
const workerName = "sscli-test-worker"

// workers are processes that run command lines for scripts, each process one after the other. A command line has its
// own App, directory, environment and streams, so it cannot tell a worker from its own process, but it starts in a
// tenth of the time.
type workers struct {
	mu   sync.Mutex
	idle []*worker
	all  []*worker
}

type worker struct {
	cmd *exec.Cmd
	in  io.Closer
	enc *gob.Encoder
	dec *gob.Decoder
}

// newWorkers returns an empty pool. A worker starts when all others are busy, and ends with the test.
func newWorkers(t *testing.T) *workers {
	p := &workers{}
	t.Cleanup(func() {
		for _, w := range p.all {
			_ = w.in.Close() // ends the worker
			if err := w.cmd.Wait(); err != nil {
				t.Errorf("a worker: %v", err)
			}
		}
	})
	return p
}

type commandLine struct {
	Dir       string
	Env, Args []string
}

type commandResult struct {
	Code           int
	Stdout, Stderr string
}

// run runs a command line in an idle worker.
func (p *workers) run(c commandLine) (r commandResult, err error) {
	w, err := p.take()
	if err != nil {
		return r, err
	}
	if err := cmp.Or(w.enc.Encode(c), w.dec.Decode(&r)); err != nil {
		return r, fmt.Errorf("the worker ended, see its standard error: %w", err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.idle = append(p.idle, w)
	return r, nil
}

func (p *workers) take() (*worker, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if last := len(p.idle) - 1; last >= 0 {
		w := p.idle[last]
		p.idle = p.idle[:last]
		return w, nil
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(self)
	cmd.Args[0] = workerName
	cmd.Env = append(os.Environ(), "GORACE=atexit_sleep_ms=0 halt_on_error=1")
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	w := &worker{cmd, in, gob.NewEncoder(in), gob.NewDecoder(out)}
	p.all = append(p.all, w)
	return w, nil
}

// workerMain is the main function of a worker process.
func workerMain() {
	lines := make(chan commandLine)
	in, out := gob.NewDecoder(os.Stdin), gob.NewEncoder(os.Stdout)
	go func() {
		for {
			var c commandLine
			if in.Decode(&c) != nil {
				os.Exit(0) // the test has ended, even if a command line has not
			}
			lines <- c
		}
	}()
	for c := range lines {
		r, err := c.run()
		if err := cmp.Or(err, out.Encode(r)); err != nil {
			fmt.Fprintln(os.Stderr, workerName+":", err)
			os.Exit(1)
		}
	}
}

// run runs the command line in this process, like run in main.go, but without signals.
func (c commandLine) run() (r commandResult, err error) {
	if err := os.Chdir(c.Dir); err != nil {
		return r, err
	}
	os.Clearenv()
	for _, variable := range c.Env {
		name, value := cutVariable(variable)
		if err := os.Setenv(name, value); err != nil {
			return r, err
		}
	}
	stderr := os.Stderr
	defer func(in, out *os.File) { os.Stdin, os.Stdout, os.Stderr = in, out, stderr }(os.Stdin, os.Stdout)
	stdin, nothing, err := os.Pipe()
	if err != nil {
		return r, err
	}
	nothing.Close()
	defer stdin.Close()
	os.Stdin = stdin
	var reading sync.WaitGroup
	for stream, text := range map[**os.File]*string{&os.Stdout: &r.Stdout, &os.Stderr: &r.Stderr} {
		from, to, err := os.Pipe()
		if err != nil {
			return r, err
		}
		*stream = to
		reading.Go(func() {
			var all bytes.Buffer
			_, _ = all.ReadFrom(from)
			from.Close()
			*text = all.String()
		})
	}
	ctx, cancel := context.WithCancel(context.Background())
	a := hintingApp()
	r.Code = a.Report(runLine(ctx, a, c.Args[0], c.Args[1:]))
	cancel()
	os.Stdout.Close()
	os.Stderr.Close()
	reading.Wait()
	return r, nil
}

// cutVariable splits NAME=VALUE. On Windows, some names begin with "=".
func cutVariable(variable string) (name, value string) {
	i := 1 + slices.Index([]byte(variable[1:]), '=')
	return variable[:i], variable[i+1:]
}

// inWorker reports whether a worker can run a command of a script: a command line of sscli that starts no program on
// its own streams, and gets no input from the script.
func inWorker(ts *testscript.TestScript, command []string) bool {
	if !slices.Contains([]string{"sscli", "statestore-cli", "kubectl-sscli"}, command[0]) || slices.Contains(command, "--") || slices.Contains(command, "edit") {
		return false
	}
	return field(ts, "stdin").String() == "" && field(ts, "ttyin").String() == ""
}

// scriptEnv returns the environment of a script.
func scriptEnv(ts *testscript.TestScript) (env []string) {
	for _, v := range field(ts, "env").Seq2() {
		env = append(env, v.String())
	}
	return append(env, "PWD="+ts.MkAbs("."))
}

// field returns an unexported field of a script: testscript has no method for it.
func field(ts *testscript.TestScript, name string) reflect.Value {
	return reflect.ValueOf(ts).Elem().FieldByName(name)
}
