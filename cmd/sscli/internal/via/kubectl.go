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
	"github.com/sscli/sscli/cmd/sscli/internal/suggest"
)

const (
	// maxOutput is the maximum number of bytes that a call keeps of kubectl's standard output, and
	// of its standard error. A config map is at most 1 MiB in size.
	maxOutput = 2 << 20

	// callTimeout is the time after which a kubectl is stopped, so that a later attempt can start
	// another. Two minutes leave the user time to log in.
	callTimeout = 2 * time.Minute

	// promptInterval is the interval at which sscli shows the user the new lines of a running kubectl's
	// standard error, because they may ask for a login. If kubectl fails before the lines are shown,
	// its error contains them.
	promptInterval = time.Second
)

func commandLine(target config.Via, words ...string) []string {
	args := []string{"kubectl"}
	if target.KubeContext != "" {
		args = append(args, "--context="+target.KubeContext)
	}
	return append(append(args, "--namespace="+target.Namespace), words...)
}

// environ returns the environment of kubectl; nil = sscli's own. GOGC=400 saves a sixth of the CPU
// time that kubectl takes to start.
func environ() []string {
	if _, set := os.LookupEnv("GOGC"); set {
		return nil
	}
	return process.Environ(map[string]string{"GOGC": "400"})
}

// A call is one run of kubectl. Several goroutines may wait for it to end.
type call struct {
	name   string // a short command line for messages, such as kubectl create token default
	stdout output
	stderr output
	done   chan struct{} // closed when kubectl has ended
	err    error         // valid when done is closed
}

// start starts kubectl. Messages show its first three arguments. w.mu must be held.
func (w *Way) start(words ...string) *call {
	return w.startAs("kubectl "+strings.Join(words[:min(3, len(words))], " "), words...)
}

// startAs starts kubectl. Messages show name in place of the command line. w.mu must be held.
func (w *Way) startAs(name string, words ...string) *call {
	c := &call{name: name, done: make(chan struct{})}
	if w.ctx.Err() != nil {
		c.err = errClosed
		close(c.done)
		return c
	}
	w.wg.Go(func() {
		defer close(c.done)
		late := &Error{Call: name, Kind: Unreachable, Why: fmt.Sprintf("no answer in %v", callTimeout), Hint: suggest.Try(hintUnreachable)}
		ctx, cancel := context.WithTimeoutCause(w.ctx, callTimeout, late)
		defer cancel()
		c.err = w.run(ctx, c, words, nil)
	})
	return c
}

// run runs kubectl until kubectl or ctx ends. If ctx ends first, the error is the cause of ctx. Until
// quiet is closed, the user sees what kubectl writes to standard error.
func (w *Way) run(ctx context.Context, c *call, words []string, quiet <-chan struct{}) error {
	child, err := process.StartBackground(process.BackgroundOptions{
		Args: commandLine(w.o.Target, words...), Env: environ(), Stdout: &c.stdout, Stderr: &c.stderr, Temp: w.o.Temp,
	})
	if err != nil {
		return missing(c.name, err)
	}
	prompts := time.NewTicker(promptInterval)
	defer prompts.Stop()
	shown := 0
	for {
		select {
		case <-child.Done():
			code, err := child.Wait()
			if err != nil {
				return missing(c.name, err)
			}
			if code != 0 {
				return classify(c.name, w.o.Target, c.stderr.String())
			}
			return nil
		case <-quiet:
			prompts.Stop()
			quiet = nil
		case <-prompts.C:
			shown = w.showPrompts(c.stderr.String(), shown)
		case <-ctx.Done():
			child.Stop()
			return context.Cause(ctx)
		}
	}
}

// showPrompts shows the user the complete lines in text[shown:]. The text before them was shown
// earlier. It returns the new value of shown.
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

// wait waits until kubectl or ctx ends, and returns the standard output of kubectl.
func (c *call) wait(ctx context.Context) ([]byte, error) {
	select {
	case <-c.done:
		return c.stdout.bytes(), c.err
	case <-ctx.Done():
		return nil, fmt.Errorf("%s: %w", c.name, context.Cause(ctx))
	}
}

func (c *call) ended() bool { return isClosed(c.done) }

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func (c *call) failed() bool { return c.ended() && c.err != nil }

// An output keeps the first maxOutput bytes written to it, and discards the rest. One goroutine may
// write while others read.
type output struct {
	line func(string) // called with each complete line; may be nil
	rest string       // the beginning of an incomplete line

	mu   sync.Mutex
	data bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	o.data.Write(p[:min(len(p), maxOutput-o.data.Len())])
	o.mu.Unlock()
	if o.line == nil {
		return len(p), nil
	}
	text := o.rest + string(p)
	for {
		line, rest, found := strings.Cut(text, "\n")
		if !found {
			const longest = 64 << 10
			o.rest = text[:min(len(text), longest)]
			return len(p), nil
		}
		o.line(strings.TrimRight(line, "\r"))
		text = rest
	}
}

func (o *output) bytes() []byte {
	o.mu.Lock()
	defer o.mu.Unlock()
	return bytes.Clone(o.data.Bytes())
}

// String returns the bytes that the output has kept, as text.
func (o *output) String() string { return string(o.bytes()) }
