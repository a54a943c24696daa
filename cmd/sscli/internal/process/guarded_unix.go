//go:build unix

package process

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sscli/sscli/cmd/sscli/internal/signals"
)

// A Guarded command runs under a guard, a process between sscli and the command. The guard ends
// the command at its deadline, and at once when sscli dies. sscli also kills the command at its
// deadline, because the guard may be stopped or hang.
type Guarded struct {
	o GuardOptions
	guardLink

	mu      sync.Mutex // guards the fields below, and writing to orders
	killAt  instant
	stopped bool // Stop was called

	// Used by Run only.
	job
	killSent bool
	giveUpAt instant // when to kill a guard that has not reported the end of the command
}

// NewGuarded finds the command and starts its guard, but not the command. It catches SIGINT,
// SIGTERM and SIGHUP and queues them for Run. The error is a *[StartError].
func NewGuarded(o GuardOptions) (*Guarded, error) {
	path, err := find(o.Args[0])
	if err != nil {
		return nil, err
	}
	g := &Guarded{o: o}
	g.job = job{signals: make(chan os.Signal, 16), suspended: o.Suspended,
		sendSignal: func(s syscall.Signal) { g.send(order{Signal: s}) }}
	if err := g.startGuard(path, o.Args, os.Stdin, os.Stdout, os.Stderr); err != nil {
		return nil, &StartError{o.Args[0], CodeSetup, err}
	}
	if o.Secret != "" {
		g.send(order{Secret: []byte(o.Secret)})
	}
	catch(g.signals, unix.SIGINT, unix.SIGTERM, unix.SIGHUP)
	return g, nil
}

// A guardLink is a guard process and the pipes to and from it.
type guardLink struct {
	guard  *exec.Cmd
	orders *os.File
	events chan event // from the guard; closed when the guard has ended
}

// startGuard starts a guard for the program at path. The guard and its command have the given
// standard streams.
func (g *guardLink) startGuard(path string, args []string, stdin, stdout, stderr *os.File) error {
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
	g.orders, g.events = to, make(chan event, 4)
	g.guard = &exec.Cmd{
		Path: self, Args: append([]string{guardName, path}, args...),
		Stdin: stdin, Stdout: stdout, Stderr: stderr,
		ExtraFiles: []*os.File{orders, events}, // descriptors 3 and 4
		// A signal to sscli's group must not reach the guard.
		SysProcAttr: &syscall.SysProcAttr{Setpgid: true},
	}
	err = g.guard.Start()
	if err := errors.Join(err, orders.Close(), events.Close()); err != nil {
		return errors.Join(err, to.Close(), from.Close())
	}
	go func() {
		receive(from, g.events)
		_ = from.Close()
	}()
	return nil
}

// executable returns a path that runs this program, on Linux even if its file was replaced.
func executable() (string, error) {
	const self = "/proc/self/exe"
	if _, err := os.Stat(self); err == nil {
		return self, nil
	}
	return os.Executable()
}

func (g *Guarded) send(o order) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.write(o)
}

// write sends an order to the guard. One goroutine at a time may call it. It ignores errors: if
// the guard has died, its events end. The write deadline keeps a guard that hangs from hanging
// sscli.
func (g *guardLink) write(o order) {
	_ = g.orders.SetWriteDeadline(time.Now().Add(time.Second))
	_ = json.NewEncoder(g.orders).Encode(o)
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
	g.write(order{Limit: &l})
}

// Stop sends TERM to the command now. KILL follows after the grace period or at the deadline,
// whichever comes first.
func (g *Guarded) Stop() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.stopped {
		return
	}
	g.stopped = true
	g.killAt = g.killAt.earlier(at(time.Now().Add(g.o.Grace)))
	g.write(order{Stop: true})
}

// Run runs the command to its end and forwards signals to it. Call Limit before Run. The error is
// a *[StartError], [ErrLate], [ErrGuardDied], or an *[signals.Interrupted] if INT, TERM or HUP
// came before the command was started.
func (g *Guarded) Run(env []string) (End, error) {
	defer signal.Stop(g.signals)
	select {
	case s := <-g.signals:
		return End{}, &signals.Interrupted{Signal: s.(syscall.Signal)}
	default:
	}
	catch(g.signals, forwarded()...)
	if !signal.Ignored(unix.SIGTTOU) {
		// While the command has the terminal, sscli is in the background. With SIGTTOU
		// ignored it can still write to the terminal and take it back.
		signal.Ignore(unix.SIGTTOU)
		defer signal.Reset(unix.SIGTTOU)
	}
	adoptOrphans(true) // if the guard is killed, its children become ours
	defer adoptOrphans(false)
	g.tty = stdinTerminal()
	defer g.tty.takeBack()
	s := start{Grace: g.o.Grace}
	for _, kv := range env {
		s.Env = append(s.Env, []byte(kv))
	}
	if g.tty.isOurs() {
		g.tty.given = true
		s.Foreground = g.tty.group
	}
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
			_ = g.guard.Process.Kill() // so that its children become ours
		}
		g.killAll()
		return End{Code: 128 + int(unix.SIGKILL), Killed: true}, ErrGuardDied
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

// left returns the time until the deadline.
func (g *Guarded) left() time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.killAt.left()
}

// isOverdue kills the command once its deadline has passed. It returns true if the guard has not
// reported the end of the command within killTimeout.
func (g *Guarded) isOverdue() bool {
	if g.left() > 0 {
		return false
	}
	if !g.killSent {
		g.killSent = true
		g.giveUpAt = at(time.Now().Add(killTimeout))
	}
	guard := g.guard.Process.Pid
	// Once the guard has waited for the command, the pid may belong to another process.
	if g.pid != 0 && hasParent(g.pid, guard) {
		_ = unix.Kill(-g.pid, unix.SIGKILL)
	}
	for _, pid := range descendants(guard, listProcesses(), 0) {
		_ = unix.Kill(-pid, unix.SIGKILL) // in case it leads a group
		_ = unix.Kill(pid, unix.SIGKILL)
	}
	return g.giveUpAt.passed()
}

// killAll kills the command after its guard died, and waits at most killTimeout until the
// command's processes are gone. Processes outside the command's group, and a command whose guard
// died before it reported the start, are found only on Linux.
func (g *Guarded) killAll() {
	guard := g.guard.Process.Pid
	for deadline := time.Now().Add(killTimeout); time.Now().Before(deadline); time.Sleep(reapInterval) {
		gone := g.pid == 0 || unix.Kill(-g.pid, unix.SIGKILL) == unix.ESRCH
		table := listProcesses()
		// As the first process of a container, sscli also adopts orphans from other sessions.
		for _, pid := range append(childrenOf(guard, table, false), childrenOf(os.Getpid(), table, true)...) {
			if pid == guard {
				continue
			}
			_ = unix.Kill(-pid, unix.SIGKILL) // in case it leads a group
			_ = unix.Kill(pid, unix.SIGKILL)
			_, _ = syscall.Wait4(pid, nil, syscall.WNOHANG, nil) // in case it is our child
			gone = false
		}
		if gone {
			return
		}
	}
}

// Close ends the guard, which kills a command that still runs. Close may be called without Run.
func (g *Guarded) Close() error {
	signal.Stop(g.signals)
	g.mu.Lock()
	err := g.orders.Close()
	g.mu.Unlock()
	patience := time.AfterFunc(5*time.Second, func() { _ = g.guard.Process.Kill() })
	defer patience.Stop()
	for range g.events {
	}
	_ = g.guard.Wait() // the exit status does not matter
	return err
}
