package process

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/windows"

	"github.com/sscli/sscli/cmd/sscli/internal/signals"
)

// A Guarded command runs under a guard, a process between sscli and the command. The guard has the
// only handle of a job object that holds the command and its descendants, so Windows ends them all
// when the guard ends. The guard ends the job at the deadline, and at once when sscli dies.
//
// Windows has no TERM. The command gets Ctrl-Break instead. A command without a console cannot
// get Ctrl-Break and is killed at once. When the console is closing, or the user's session ends, the
// command gets Ctrl-Break and is killed after at most two seconds.
type Guarded struct {
	o       GuardOptions
	guard   *exec.Cmd
	signals chan os.Signal
	orders  chan order // to the guard
	events  chan event // from the guard; closed when the guard has ended

	mu     sync.Mutex // guards the fields below, and sending to orders
	killAt instant
	timer  *time.Timer // kills the guard; nil before Stop
	closed bool
}

// maxOrders is the length of the queue of orders. A full queue means that the guard hangs.
const maxOrders = 16

// NewGuarded finds the command and starts its guard, but not the command. It catches Ctrl-C,
// Ctrl-Break and the closing of the console and queues them for Run. The error is a *[StartError].
func NewGuarded(o GuardOptions) (*Guarded, error) {
	path, err := find(o.Args[0])
	if err != nil {
		return nil, err
	}
	g := &Guarded{o: o, signals: make(chan os.Signal, 16), orders: make(chan order, maxOrders), events: make(chan event, 4)}
	if err := g.startGuard(path); err != nil {
		return nil, &StartError{o.Args[0], CodeSetup, err}
	}
	if o.Secret != "" {
		g.send(order{Secret: []byte(o.Secret)})
	}
	signal.Notify(g.signals, os.Interrupt, syscall.SIGTERM)
	return g, nil
}

func (g *Guarded) startGuard(path string) error {
	self, err := os.Executable()
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
	words := []string{guardName}
	var handles []syscall.Handle
	for _, f := range []*os.File{orders, events} {
		err = errors.Join(err, windows.SetHandleInformation(windows.Handle(f.Fd()), windows.HANDLE_FLAG_INHERIT, windows.HANDLE_FLAG_INHERIT))
		handles = append(handles, syscall.Handle(f.Fd()))
		words = append(words, strconv.FormatUint(uint64(f.Fd()), 10))
	}
	g.guard = &exec.Cmd{
		Path: self, Args: append(append(words, path), g.o.Args...),
		Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
		// Ctrl-C for sscli's group must not reach the guard.
		SysProcAttr: &syscall.SysProcAttr{CreationFlags: windows.CREATE_NEW_PROCESS_GROUP, AdditionalInheritedHandles: handles},
	}
	if err == nil {
		err = g.guard.Start()
	}
	if err := errors.Join(err, orders.Close(), events.Close()); err != nil {
		return errors.Join(err, to.Close(), from.Close())
	}
	go func() {
		receive(from, g.events)
		_ = from.Close()
	}()
	go func() {
		for o := range g.orders {
			_ = json.NewEncoder(to).Encode(o) // fails if the guard has died; its events end then
		}
		_ = to.Close()
	}()
	return nil
}

// send queues an order for the guard. It never waits: if the queue is full, it kills the guard.
// The caller holds g.mu.
func (g *Guarded) send(o order) {
	if g.closed {
		return
	}
	select {
	case g.orders <- o:
	default:
		_ = g.guard.Process.Kill()
	}
}

// Limit sets the times at which the command gets Ctrl-Break and is killed. It may be called at any
// time, but has no effect once Ctrl-Break is sent.
func (g *Guarded) Limit(term, kill time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	l := limit{at(term), at(kill)}
	g.killAt = l.Kill
	g.send(order{Limit: &l})
}

// Stop sends Ctrl-Break to the command now. The command is killed after the grace period or at
// the deadline, whichever comes first.
func (g *Guarded) Stop() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.timer != nil {
		return
	}
	g.send(order{Stop: true})
	patience := max(0, min(g.o.Grace, g.killAt.left())) + killTimeout
	g.timer = time.AfterFunc(patience, func() { _ = g.guard.Process.Kill() }) // the guard hangs
}

// Run runs the command to its end and forwards signals to it, as Ctrl-Break. Call Limit before
// Run. The error is a *[StartError], [ErrLate], [ErrGuardDied], or an *[signals.Interrupted] if a
// signal came before the command was started.
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
	g.mu.Lock()
	g.send(order{Start: &s})
	g.mu.Unlock()
	for {
		select {
		case s := <-g.signals:
			g.mu.Lock()
			g.send(order{Signal: s.(syscall.Signal)})
			g.mu.Unlock()
		case e, ok := <-g.events:
			switch {
			case !ok:
				// The guard had the only handle of the job, so the command ended with the guard.
				_ = g.guard.Process.Kill()
				return End{Code: codeKilled, Killed: true}, ErrGuardDied
			case e.Refused != 0:
				return End{}, newStartError(g.o.Args[0], e.Refused)
			case e.Late:
				return End{}, ErrLate
			case e.Ended != nil:
				return *e.Ended, nil
			}
		}
	}
}

// Close ends the guard, which kills a command that still runs. Close may be called without Run.
func (g *Guarded) Close() error {
	signal.Stop(g.signals)
	g.mu.Lock()
	if g.timer != nil {
		g.timer.Stop()
	}
	if !g.closed {
		g.closed = true
		close(g.orders)
	}
	g.mu.Unlock()
	patience := time.AfterFunc(5*time.Second, func() { _ = g.guard.Process.Kill() })
	defer patience.Stop()
	for range g.events {
	}
	_ = g.guard.Wait() // the exit status does not matter
	return nil
}
