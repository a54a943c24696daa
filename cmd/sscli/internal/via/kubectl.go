package via

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/sscli/sscli/cmd/sscli/internal/config"
	"github.com/sscli/sscli/cmd/sscli/internal/process"
)

const (
	// maxOutput limits how many bytes of kubectl's output are kept. A config map has at most
	// 1 MiB.
	maxOutput = 2 << 20

	// callLimit is how long a kubectl may run before it is stopped, so that a later attempt can
	// start another. It leaves the user time to log in.
	callLimit = 2 * time.Minute

	// promptDelay is how often a running kubectl's new lines on standard error are shown to the
	// user: they may ask for a login. If kubectl ends sooner, its lines become part of the error.
	promptDelay = time.Second
)

// commandLine returns the command line of kubectl for a target.
func commandLine(target config.Via, words ...string) []string {
	args := []string{"kubectl"}
	if target.KubeContext != "" {
		args = append(args, "--context="+target.KubeContext)
	}
	return append(append(args, "--namespace="+target.Namespace), words...)
}

// environ returns the environment of kubectl; nil = sscli's. Most of kubectl's CPU time is its start.
// With a garbage collector that starts later, that takes a sixth less.
func environ() []string {
	if _, set := os.LookupEnv("GOGC"); set {
		return nil
	}
	return process.Environ(map[string]string{"GOGC": "400"})
}

// A call is one run of kubectl. Several goroutines may wait for it to end.
type call struct {
	words  string // kubectl and its arguments, or a command line with the same effect, for messages
	stdout buffer
	stderr buffer
	done   chan struct{}
	err    error // valid when done is closed
}

// start runs kubectl. w.mu must be held.
func (w *Way) start(words ...string) *call {
	return w.startAs("kubectl "+strings.Join(words[:min(3, len(words))], " "), words...)
}

// startAs runs kubectl. name stands for the command line in messages. w.mu must be held.
func (w *Way) startAs(name string, words ...string) *call {
	c := &call{words: name, done: make(chan struct{})}
	if w.ctx.Err() != nil {
		c.err = errClosed
		close(c.done)
		return c
	}
	w.wg.Go(func() {
		defer close(c.done)
		c.err = w.run(c, words)
	})
	return c
}

func (w *Way) run(c *call, words []string) error {
	child, err := process.StartBackground(process.BackgroundOptions{
		Args: commandLine(w.o.Target, words...), Env: environ(), Stdout: &c.stdout, Stderr: &c.stderr, Temp: w.o.Temp,
	})
	if err != nil {
		return missing(c.words, err)
	}
	limit := time.NewTimer(callLimit)
	defer limit.Stop()
	prompts := time.NewTicker(promptDelay)
	defer prompts.Stop()
	shown := 0
	for {
		select {
		case <-child.Done():
			code, err := child.Wait()
			if err != nil {
				return missing(c.words, err)
			}
			if code != 0 {
				return explain(c.words, w.o.Target, c.stderr.String())
			}
			return nil
		case <-prompts.C:
			shown = w.showPrompts(c.stderr.String(), shown)
		case <-limit.C:
			child.Stop()
			return &Error{Call: c.words, Kind: Unreachable, Why: fmt.Sprintf("no answer in %v", callLimit), Hint: hintUnreachable}
		case <-w.ctx.Done():
			child.Stop()
			return errClosed
		}
	}
}

// showPrompts shows the complete lines after the first shown bytes of text, and returns the new
// number of bytes shown.
func (w *Way) showPrompts(text string, shown int) int {
	end := strings.LastIndexByte(text, '\n') + 1
	if end <= shown {
		return shown
	}
	for line := range strings.Lines(text[shown:end]) {
		w.o.Inform("kubectl: " + strings.TrimSpace(line))
	}
	return end
}

// wait waits until kubectl ends, and returns its standard output.
func (c *call) wait(ctx context.Context) ([]byte, error) {
	select {
	case <-c.done:
		return c.stdout.Bytes(), c.err
	case <-ctx.Done():
		return nil, fmt.Errorf("%s: %w", c.words, context.Cause(ctx))
	}
}

// ended reports whether kubectl has ended.
func (c *call) ended() bool {
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}

// failed reports whether kubectl has ended with an error.
func (c *call) failed() bool { return c.ended() && c.err != nil }

// A buffer keeps the first maxOutput bytes written to it and discards the rest. Its methods may be
// called concurrently.
type buffer struct {
	mu   sync.Mutex
	data bytes.Buffer
}

// Write implements [io.Writer].
func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.data.Write(p[:min(len(p), maxOutput-b.data.Len())])
	return len(p), nil
}

// Bytes returns a copy of the bytes kept.
func (b *buffer) Bytes() []byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	return bytes.Clone(b.data.Bytes())
}

// String returns the bytes kept, as text.
func (b *buffer) String() string { return string(b.Bytes()) }
