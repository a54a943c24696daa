package via

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sscli/sscli/cmd/sscli/internal/process"
)

// A forward is a kubectl port-forward. It is worn out, and not used for new connections, when kubectl
// has ended or reported an error, or when a connection through it was closed that had received
// nothing, or whose last bytes were unanswered for a while: its pod may be gone, although some
// versions of kubectl keep running.
type forward struct {
	way     *Way
	words   string
	ready   chan struct{} // closed when address or err is set
	address string        // on the loopback interface
	err     error
	ended   chan struct{} // closed when kubectl has ended

	mu      sync.Mutex
	said    string        // the last error that kubectl reported
	saidAt  time.Time     // when kubectl reported it
	told    chan struct{} // closed when said is first set
	wornOut bool
	conns   int           // open connections
	unused  chan struct{} // closed when the forward is retired and its last connection is closed
	retired bool
}

// silence is how long the last bytes on a connection must have been unanswered when the connection is
// closed, for its forward to be worn out. A connection in use sends its farewell just before.
const silence = 500 * time.Millisecond

// pause returns the minimum time between the starts of two forwards, after a number of failures in
// a row.
func pause(failures int) time.Duration {
	const first, longest = 200 * time.Millisecond, 10 * time.Second
	if failures == 0 {
		return 0
	}
	return min(first<<min(failures-1, 10), longest)
}

// podTimeout returns how long a new forward waits for a running pod: 80 % of what remains of ctx, so
// that kubectl's error still reaches the caller.
func podTimeout(ctx context.Context) time.Duration {
	deadline, ok := ctx.Deadline()
	if !ok {
		return time.Minute // kubectl's default
	}
	return max(time.Second, (time.Until(deadline) / 5 * 4).Round(time.Millisecond))
}

// startForward makes a new forward the current one, after a delay. ctx is the context of the caller,
// who waits for it. w.mu must be held.
func (w *Way) startForward(ctx context.Context, delay time.Duration) *forward {
	f := &forward{way: w, words: "kubectl port-forward " + w.o.Target.Resource, ready: make(chan struct{}),
		ended: make(chan struct{}), told: make(chan struct{}), unused: make(chan struct{})}
	if w.forward != nil {
		w.forward.retire()
	}
	w.forward, w.started = f, time.Now().Add(delay)
	w.failures++ // reset when a connection receives something
	patience := podTimeout(ctx)
	w.wg.Go(func() {
		defer close(f.ended)
		f.run(delay, patience)
	})
	return f
}

// run runs kubectl, after a delay, until it ends, the forward is retired, or the way is closed. kubectl
// waits for a running pod as long as patience.
func (f *forward) run(delay, patience time.Duration) {
	w := f.way
	select {
	case <-time.After(delay):
	case <-w.ctx.Done():
		f.finish(errClosed)
		return
	}
	var errs buffer
	out := &lines{line: f.stdoutLine}
	report := &lines{line: func(line string) {
		_, _ = errs.Write([]byte(line + "\n")) // a buffer takes everything
		f.stderrLine(line)
	}}
	target := w.o.Target
	child, err := process.StartBackground(process.BackgroundOptions{
		Args:   commandLine(target, "port-forward", "--address=127.0.0.1", "--pod-running-timeout="+patience.String(), target.Resource, ":"+target.Port),
		Env:    environ(),
		Stdout: out, Stderr: report, Temp: w.o.Temp,
	})
	if err != nil {
		f.finish(missing(f.words, err))
		return
	}
	prompts := time.NewTicker(promptDelay)
	defer prompts.Stop()
	for shown := 0; ; {
		select {
		case <-child.Done():
			if _, err := child.Wait(); err != nil {
				f.finish(missing(f.words, err))
				return
			}
			f.finish(explain(f.words, target, errs.String()))
			return
		case <-prompts.C:
			if !f.isReady() {
				shown = w.showPrompts(errs.String(), shown)
			}
		case <-f.unused:
			child.Stop()
			f.finish(errClosed)
			return
		case <-w.ctx.Done():
			child.Stop()
			f.finish(errClosed)
			return
		}
	}
}

// finish marks the forward as worn out after kubectl ended. err is returned to callers that still
// wait for the forward to become ready.
func (f *forward) finish(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.wornOut = true
	if !f.isReady() {
		f.err = err
		close(f.ready)
	}
}

func (f *forward) isReady() bool {
	select {
	case <-f.ready:
		return true
	default:
		return false
	}
}

// stdoutLine takes the address from a line such as "Forwarding from 127.0.0.1:41234 -> 18883".
func (f *forward) stdoutLine(line string) {
	address, ok := forwardedFrom(line)
	f.mu.Lock()
	defer f.mu.Unlock()
	if ok && !f.isReady() {
		f.address = address
		close(f.ready)
	}
}

// forwardedFrom returns the local address of a port-forward, if the line contains it.
func forwardedFrom(line string) (address string, ok bool) {
	rest, ok := strings.CutPrefix(line, "Forwarding from ")
	if !ok {
		return "", false
	}
	address, _, ok = strings.Cut(rest, " -> ")
	if !ok || !strings.HasPrefix(address, "127.0.0.1:") {
		return "", false
	}
	_, err := net.ResolveTCPAddr("tcp", address)
	return address, err == nil
}

// stderrLine notes an error of a forward that is ready.
func (f *forward) stderrLine(line string) {
	why := cleanLine(line)
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.isReady() || !strings.Contains(strings.ToLower(why), "error") && !strings.Contains(why, "lost connection") {
		return
	}
	if f.said == "" {
		close(f.told)
	}
	f.said, f.saidAt, f.wornOut = why, time.Now(), true
}

// openForward returns a forward that is ready. It starts a new one if the newest is worn out.
func (w *Way) openForward(ctx context.Context) (*forward, error) {
	w.mu.Lock()
	if w.ctx.Err() != nil {
		w.mu.Unlock()
		return nil, errClosed
	}
	f := w.forward
	if f.isWornOut() {
		f = w.startForward(ctx, max(0, pause(w.failures)-time.Since(w.started)))
	}
	w.mu.Unlock()
	select {
	case <-f.ready:
		return f, f.err
	case <-ctx.Done():
		return nil, fmt.Errorf("%s: %w", f.words, context.Cause(ctx))
	}
}

func (f *forward) isWornOut() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.wornOut
}

// retire makes the forward end once it has no connections.
func (f *forward) retire() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.retired = true
	f.endUnused()
}

// endUnused ends a retired forward that has no connections. f.mu must be held.
func (f *forward) endUnused() {
	if f.retired && f.conns == 0 {
		f.retired = false // close unused only once
		close(f.unused)
	}
}

// dial connects through the forward.
func (f *forward) dial(ctx context.Context) (net.Conn, error) {
	f.mu.Lock()
	f.conns++
	f.mu.Unlock()
	nc, err := (&net.Dialer{}).DialContext(ctx, "tcp", f.address)
	if err != nil {
		f.release(true)
		if ctx.Err() != nil {
			return nil, err
		}
		return nil, f.explain(err)
	}
	return &conn{Conn: nc, forward: f}, nil
}

// release records that a connection has ended, and whether that wears the forward out.
func (f *forward) release(wornOut bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.conns--
	f.wornOut = f.wornOut || wornOut
	f.endUnused()
}

// explain returns the error for a connection that ended before it received anything.
func (f *forward) explain(err error) error {
	if said, _ := f.report(); said != "" {
		return explain(f.words, f.way.o.Target, said)
	}
	return &Error{Call: f.words, Kind: Unreachable, Why: "the connection ended before the broker answered: " + err.Error(), Hint: hintPod}
}

// explainLoss returns the error for a connection that ended after it received something: err, or why
// the forward ended.
func (f *forward) explainLoss(err error) error {
	said, ended := f.report()
	switch {
	case said != "":
		return errors.New(f.words + ": " + said)
	case ended:
		return errors.New(f.words + ": kubectl ended")
	}
	return err
}

// report waits a moment for kubectl to report an error or to end, which it may do slightly after it
// closed a connection. report returns the last error, unless it is about an earlier connection, and
// whether kubectl has ended.
func (f *forward) report() (said string, ended bool) {
	const moment, recent = 300 * time.Millisecond, time.Second
	select {
	case <-f.told:
	case <-f.ended:
		ended = true
	case <-time.After(moment):
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if time.Since(f.saidAt) > recent {
		return "", ended
	}
	return f.said, ended
}

// A conn is a connection through a forward.
type conn struct {
	net.Conn
	forward *forward
	brought atomic.Bool               // something was read
	waiting atomic.Pointer[time.Time] // the last write; nil = something was read since
	closed  sync.Once
}

// Read implements [net.Conn]. An error before the first byte is an *[Error]. A later error says why
// the forward ended, if it did.
func (c *conn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n > 0 {
		c.waiting.Store(nil)
	}
	if n > 0 && !c.brought.Load() && !c.brought.Swap(true) {
		c.forward.way.mu.Lock()
		c.forward.way.failures = 0
		c.forward.way.mu.Unlock()
	}
	switch {
	case err == nil || n > 0 || errors.Is(err, net.ErrClosed) || errors.Is(err, os.ErrDeadlineExceeded):
		return n, err
	case c.brought.Load():
		return 0, c.forward.explainLoss(err)
	}
	return 0, c.forward.explain(err)
}

// Write implements [net.Conn].
func (c *conn) Write(p []byte) (int, error) {
	now := time.Now()
	c.waiting.Store(&now)
	return c.Conn.Write(p)
}

// Close implements [net.Conn].
func (c *conn) Close() error {
	err := c.Conn.Close()
	since := c.waiting.Load()
	wornOut := !c.brought.Load() || since != nil && time.Since(*since) > silence
	c.closed.Do(func() { c.forward.release(wornOut) })
	return err
}

// lines is a writer that calls line with each whole line. It must not be written to concurrently.
type lines struct {
	line func(string)
	rest string
}

// Write implements [io.Writer].
func (l *lines) Write(p []byte) (int, error) {
	text := l.rest + string(p)
	for {
		line, rest, found := strings.Cut(text, "\n")
		if !found {
			const longest = 64 << 10
			l.rest = text[:min(len(text), longest)]
			return len(p), nil
		}
		l.line(strings.TrimRight(line, "\r"))
		text = rest
	}
}
