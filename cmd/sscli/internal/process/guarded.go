package process

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/sscli/sscli/cmd/sscli/internal/signals"
)

// A Guarded command runs under a guard, a process between sscli and the command. The guard ends
// the command at the command's deadline, and immediately when sscli dies. sscli also kills the command
// at the deadline, because the guard may be stopped or hang.
//
// On Windows the guard has the only handle to a job object that holds the command and its
// descendants, so Windows ends them all when the guard ends. Windows has no TERM: the command gets
// Ctrl-Break instead. A command without a console cannot get Ctrl-Break and is killed immediately. When
// the console is closing, or the user's session ends, the command gets Ctrl-Break and is killed
// after at most two seconds.
type Guarded struct {
	o GuardOptions
	guardLink

	mu      sync.Mutex // guards killAt and stopped
	killAt  instant
	stopped bool // Stop was called

	// Used by Run only.
	control
	signals  chan os.Signal
	killSent bool
	giveUpAt instant // when to kill a guard that has not reported the end of the command
}

// NewGuarded finds the command and starts its guard, but not the command. It catches the signals
// that end sscli (SIGINT, SIGTERM and SIGHUP, or Ctrl-C, Ctrl-Break and the closing of the console)
// and queues them for Run. The error is a *[StartError].
func NewGuarded(o GuardOptions) (*Guarded, error) {
	path, err := find(o.Args[0])
	if err != nil {
		return nil, err
	}
	g := &Guarded{o: o, signals: make(chan os.Signal, 16)}
	if err := g.startGuard(path, o.Args, os.Stdin, os.Stdout, os.Stderr); err != nil {
		return nil, &StartError{o.Args[0], CodeSetup, err}
	}
	if o.Secret != "" {
		g.send(order{Secret: []byte(o.Secret)})
	}
	catch(g.signals, ending()...)
	return g, nil
}

// Limit sets the times at which the command gets TERM and KILL. It may be called at any time,
// but has no effect once TERM is sent.
func (g *Guarded) Limit(term, kill time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	l := limit{at(term), at(kill)}
	if !g.stopped {
		g.killAt = l.Kill
	}
	g.send(order{Limit: &l})
}

// Stop sends TERM to the command now. KILL follows after the grace period, after within, or at the
// deadline, whichever comes first.
func (g *Guarded) Stop(within time.Duration) {
	grace := min(g.o.Grace, within)
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.stopped {
		return
	}
	g.stopped = true
	g.killAt = g.killAt.earlier(at(time.Now().Add(grace)))
	g.send(order{Stop: true, Within: grace})
}

// Run runs the command, forwards signals to it, and waits for it to exit. Call Limit before Run. The
// error is a *[StartError], [ErrLate], [ErrGuardDied], or a *[signals.Interrupted] if a signal came
// before Run.
func (g *Guarded) Run(env []string) (End, error) {
	defer signal.Stop(g.signals)
	select {
	case s := <-g.signals:
		return End{}, &signals.Interrupted{Signal: s.(syscall.Signal)}
	default:
	}
	s := start{Grace: g.o.Grace}
	for _, kv := range env {
		s.Env = append(s.Env, []byte(kv))
	}
	defer g.prepareRun(&s)()
	g.send(order{Start: &s})
	for {
		select {
		case s := <-g.signals:
			g.forward(s)
			continue
		case e, ok := <-g.events:
			if ok {
				if end, over, err := g.handleEvent(e); over {
					return end, err
				}
				continue
			}
		case <-g.wake():
			if !g.isOverdue() {
				continue
			}
		}
		_ = g.guard.Process.Kill() // so that sscli adopts the guard's children
		g.killAll()
		return End{Code: codeKilled, Killed: true}, ErrGuardDied
	}
}

// handleEvent handles an event from the guard. over is true if the command has ended or will
// not start.
func (g *Guarded) handleEvent(e event) (end End, over bool, err error) {
	switch {
	case e.Started != 0:
		g.pid = e.Started
	case e.Refused != 0:
		return End{}, true, newStartError(g.o.Args[0], e.Refused)
	case e.Late:
		return End{}, true, ErrLate
	case e.Stopped != 0:
		g.suspend(e.Stopped)
	case e.Ended != nil:
		end = *e.Ended
		end.Killed = end.Killed || g.killSent
		if g.killSent && end.Code == codeKilled {
			end.Left = false // a guard that was slow did not read Stop before the command, killed by sscli, had ended
		}
		return end, true, nil
	}
	return End{}, false, nil
}

// wake returns a channel that fires when isOverdue must be called again.
func (g *Guarded) wake() <-chan time.Time {
	if g.killSent {
		return time.After(reapInterval)
	}
	return time.After(max(0, min(clockInterval, g.left())))
}

func (g *Guarded) left() time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.killAt.left()
}

// isOverdue kills the command once its deadline has passed. It returns true when killTimeout has
// passed since the first kill, and the guard has still not reported the end of the command.
func (g *Guarded) isOverdue() bool {
	if g.left() > 0 {
		return false
	}
	if !g.killSent {
		g.killSent = true
		g.giveUpAt = at(time.Now().Add(killTimeout))
	}
	g.killCommand()
	return g.giveUpAt.passed()
}

// Close ends the guard, which kills a command that is still running. Close may be called without
// Run, and more than once.
func (g *Guarded) Close() {
	signal.Stop(g.signals)
	g.close()
}

// A guardLink is a guard process and the pipes to and from it.
type guardLink struct {
	guard  *exec.Cmd
	events chan event // from the guard; closed when the guard has ended

	sending sync.Mutex // held while writing to orders
	orders  *os.File
}

// sendTimeout is how long the guard may take to read an order when the pipe is full.
const sendTimeout = time.Second

// startGuard starts a guard for the program at path. The guard and its command have the given
// standard streams, as in an [exec.Cmd].
func (l *guardLink) startGuard(path string, args []string, stdin io.Reader, stdout, stderr io.Writer) error {
	self, err := executable()
	if err != nil {
		return err
	}
	orders, to, err := os.Pipe()
	if err != nil {
		return err
	}
	from, events, err := os.Pipe()
	if err != nil {
		return errors.Join(err, orders.Close(), to.Close())
	}
	l.guard = &exec.Cmd{Path: self, Stdin: stdin, Stdout: stdout, Stderr: stderr, WaitDelay: outputDelay}
	copies, err := passPipes(l.guard, orders, events)
	if err == nil {
		l.guard.Args = append(append(l.guard.Args, path), args...)
		err = l.guard.Start()
	}
	for _, f := range append(copies, orders, events) {
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		return errors.Join(err, to.Close(), from.Close())
	}
	l.orders, l.events = to, make(chan event, 4)
	go func() {
		receive(from, l.events)
		_ = from.Close()
	}()
	return nil
}

// send sends an order to the guard. It kills the guard if the guard does not read the order within
// sendTimeout. It ignores errors: if the guard has died, l.events is closed.
func (l *guardLink) send(o order) {
	l.sending.Lock()
	defer l.sending.Unlock()
	hung := time.AfterFunc(sendTimeout, func() { _ = l.guard.Process.Kill() })
	defer hung.Stop()
	_ = json.NewEncoder(l.orders).Encode(o)
}

// close closes the pipe to the guard, which ends the guard, and waits until the guard has ended. It kills
// a guard that does not end within five seconds.
func (l *guardLink) close() {
	l.sending.Lock()
	_ = l.orders.Close() // fails if it is closed already
	l.sending.Unlock()
	hung := time.AfterFunc(5*time.Second, func() { _ = l.guard.Process.Kill() })
	defer hung.Stop()
	for range l.events {
	}
	_ = l.guard.Wait() // the exit status does not matter
}
