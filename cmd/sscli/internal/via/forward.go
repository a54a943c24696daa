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

	"github.com/sscli/sscli/cmd/sscli/internal/suggest"
)

// A forward is a kubectl port-forward. New connections use a forward until it is worn out, which
// happens when
//
//   - kubectl has ended or reported an error;
//   - a connection could not be opened, or was closed before it received anything; or
//   - a connection was closed more than [silence] after its last write, which was still unanswered.
//
// In the last two cases, the pod may be gone: some versions of kubectl keep running without their
// pod.
type forward struct {
	call    // err is set before ready is closed, if kubectl ended first
	way     *Way
	stop    context.CancelCauseFunc // stops kubectl
	ready   chan struct{}           // closed when address or err is set
	address string                  // of kubectl's listener, on the loopback interface

	mu       sync.Mutex
	lastErr  string        // the last error that kubectl reported
	erredAt  time.Time     // time of lastErr
	reported chan struct{} // closed when lastErr is first set
	wornOut  bool
	conns    int  // number of open connections
	retired  bool // stop kubectl when the last connection is closed
}

// silence is the maximum time that the last write on a connection may be unanswered when the connection
// is closed. If the time was longer, the forward is worn out. A working connection is closed right
// after its DISCONNECT, which has no answer.
const silence = 500 * time.Millisecond

// pause returns the minimum time between the starts of two forwards. failures is the number of
// consecutive failures so far.
func pause(failures int) time.Duration {
	const first, longest = 200 * time.Millisecond, 10 * time.Second
	if failures == 0 {
		return 0
	}
	return min(first<<min(failures-1, 10), longest)
}

// podTimeout returns how long kubectl may wait for a running pod: 80 % of the time until the
// deadline of ctx, and at least 1 s, so that the caller gets kubectl's error before its own
// timeout.
func podTimeout(ctx context.Context) time.Duration {
	deadline, ok := ctx.Deadline()
	if !ok {
		return time.Minute // kubectl's default
	}
	return max(time.Second, (time.Until(deadline) / 5 * 4).Round(time.Millisecond))
}

// startForward makes a new forward the current one, and starts its kubectl after a delay. The deadline
// of ctx limits how long kubectl waits for a pod. w.mu must be held.
func (w *Way) startForward(ctx context.Context, delay time.Duration) *forward {
	f := &forward{way: w, ready: make(chan struct{}), reported: make(chan struct{})}
	f.name, f.done = "kubectl port-forward "+w.o.Target.Resource, make(chan struct{})
	f.stdout.line, f.stderr.line = f.stdoutLine, f.stderrLine
	running, stop := context.WithCancelCause(w.ctx)
	f.stop = stop
	if w.forward != nil {
		w.forward.retire()
	}
	w.forward, w.started = f, time.Now().Add(delay)
	w.failures++ // reset when a connection receives something
	timeout := podTimeout(ctx)
	w.wg.Go(func() {
		defer close(f.done)
		defer stop(nil)
		f.finish(f.run(running, delay, timeout))
	})
	return f
}

// run waits for delay, then runs kubectl until kubectl or ctx ends, and returns the reason for the end.
// timeout limits how long kubectl waits for a running pod.
func (f *forward) run(ctx context.Context, delay, timeout time.Duration) error {
	select {
	case <-time.After(delay):
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	target := f.way.o.Target
	err := f.way.run(ctx, &f.call, []string{
		"port-forward", "--address=127.0.0.1", "--pod-running-timeout=" + timeout.String(), target.Resource, ":" + target.Port,
	}, f.ready)
	if err == nil {
		err = classify(f.name, target, f.stderr.String())
	}
	return err
}

// finish marks the forward as worn out after kubectl has ended. Callers that still wait for the
// forward to become ready get err.
func (f *forward) finish(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.wornOut = true
	if !isClosed(f.ready) {
		f.err = err
		close(f.ready)
	}
}

// stdoutLine handles a line of kubectl's standard output. It sets f.address from a line such as
// "Forwarding from 127.0.0.1:41234 -> 18883".
func (f *forward) stdoutLine(line string) {
	address, ok := forwardedFrom(line)
	f.mu.Lock()
	defer f.mu.Unlock()
	if ok && !isClosed(f.ready) {
		f.address = address
		close(f.ready)
	}
}

// forwardedFrom returns the local address of a port-forward. ok is false if the line does not contain
// it.
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

// stderrLine handles a line of kubectl's standard error. An error after the forward became ready is
// recorded, and wears the forward out.
func (f *forward) stderrLine(line string) {
	why := cleanLine(line)
	f.mu.Lock()
	defer f.mu.Unlock()
	if !isClosed(f.ready) || !strings.Contains(strings.ToLower(why), "error") && !strings.Contains(why, "lost connection") {
		return
	}
	if f.lastErr == "" {
		close(f.reported)
	}
	f.lastErr, f.erredAt, f.wornOut = why, time.Now(), true
}

// openForward waits until the newest forward is ready, and returns it. If the newest forward is worn
// out, openForward starts a new one.
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
		return nil, fmt.Errorf("%s: %w", f.name, context.Cause(ctx))
	}
}

func (f *forward) isWornOut() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.wornOut
}

// retire ends the forward as soon as it has no open connections.
func (f *forward) retire() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.retired = true
	f.endUnused()
}

// endUnused ends the forward if it is retired and has no open connections. f.mu must be held.
func (f *forward) endUnused() {
	if f.retired && f.conns == 0 {
		f.stop(errClosed)
	}
}

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
		return nil, f.classify(err)
	}
	return &conn{Conn: nc, forward: f}, nil
}

// release records that a connection was closed. If wornOut is true, new connections do not use the
// forward.
func (f *forward) release(wornOut bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.conns--
	f.wornOut = f.wornOut || wornOut
	f.endUnused()
}

// classify returns the error for a connection that ended before it received anything.
func (f *forward) classify(err error) error {
	if reported, _ := f.report(); reported != "" {
		return classify(f.name, f.way.o.Target, reported)
	}
	return &Error{Call: f.name, Kind: Unreachable, Why: "the connection ended before the broker answered: " + err.Error(), Hint: suggest.Try(hintPod)}
}

// explainLoss returns the error for a connection that ended after it received something: the reason
// why the forward failed, if it did, or else err.
func (f *forward) explainLoss(err error) error {
	reported, ended := f.report()
	switch {
	case reported != "":
		return errors.New(f.name + ": " + reported)
	case ended:
		return errors.New(f.name + ": kubectl ended")
	}
	return err
}

// report returns the last error that kubectl reported, and whether kubectl has ended. kubectl may
// report an error, or end, slightly after it closes a connection, so report waits up to 300 ms for
// an error or the end. It ignores an error older than 1 s, which was about another connection.
func (f *forward) report() (reported string, ended bool) {
	select {
	case <-f.reported:
	case <-f.done:
		ended = true
	case <-time.After(300 * time.Millisecond):
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if time.Since(f.erredAt) > time.Second {
		return "", ended
	}
	return f.lastErr, ended
}

// A conn is a connection through a forward.
type conn struct {
	net.Conn
	forward    *forward
	received   atomic.Bool               // whether any bytes were read
	unanswered atomic.Pointer[time.Time] // time of the last write; nil = none, or bytes were read since
	closed     sync.Once
}

// Read implements [net.Conn]. It returns [net.ErrClosed] and [os.ErrDeadlineExceeded] unchanged.
// Any other error before the first byte is an *[Error]. After the first byte, the error is the
// reason why the forward failed. If the forward did not fail, the error is unchanged.
func (c *conn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n > 0 {
		c.unanswered.Store(nil)
	}
	if n > 0 && !c.received.Load() && !c.received.Swap(true) {
		c.forward.way.mu.Lock()
		c.forward.way.failures = 0
		c.forward.way.mu.Unlock()
	}
	switch {
	case err == nil || n > 0 || errors.Is(err, net.ErrClosed) || errors.Is(err, os.ErrDeadlineExceeded):
		return n, err
	case c.received.Load():
		return 0, c.forward.explainLoss(err)
	}
	return 0, c.forward.classify(err)
}

func (c *conn) Write(p []byte) (int, error) {
	now := time.Now()
	c.unanswered.Store(&now)
	return c.Conn.Write(p)
}

func (c *conn) Close() error {
	err := c.Conn.Close()
	since := c.unanswered.Load()
	wornOut := !c.received.Load() || since != nil && time.Since(*since) > silence
	c.closed.Do(func() { c.forward.release(wornOut) })
	return err
}
