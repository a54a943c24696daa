//go:build unix

package child

import (
	"bufio"
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

// An instant is a point in time that two processes understand alike.
type instant struct {
	up   time.Duration // stands still at no time, and nobody sets it
	wall int64         // nanoseconds; goes on while a virtual machine is paused
}

// at is the instant of a time. If something holds us up meanwhile, it is too early.
func at(t time.Time) instant {
	up := uptime()
	return instant{up + time.Until(t), t.UnixNano()}
}

func (i instant) passed() bool {
	return uptime() >= i.up || time.Now().UnixNano() >= i.wall
}

// left is the time to an instant, if neither clock is set meanwhile.
func (i instant) left() time.Duration {
	return min(i.up-uptime(), time.Duration(i.wall-time.Now().UnixNano()))
}

func (i instant) words() []string {
	return []string{strconv.FormatInt(int64(i.up), 10), strconv.FormatInt(i.wall, 10)}
}

func parseInstant(words []string) (instant, error) {
	up, err := strconv.ParseInt(words[0], 10, 64)
	wall, err2 := strconv.ParseInt(words[1], 10, 64)
	return instant{time.Duration(up), wall}, errors.Join(err, err2)
}

// A Guarded command has a guard: a process of sscli between sscli and the command,
// which ends the command when it must end, and at once when sscli is gone.
type Guarded struct {
	o       GuardOptions
	guard   *exec.Cmd
	to      *os.File
	events  chan []string // what the guard says; closed when it has ended
	signals chan os.Signal
	overdue chan struct{}

	mu    sync.Mutex // guards what follows, and writing to the guard
	until instant
	timer *time.Timer // for overdue; nil before Stop

	// The rest is Run's.
	pid   int // of the command and its process group; 0 = unknown
	asked bool
	tty   *terminal
}

// NewGuarded finds the command and starts its guard; nothing runs yet. From now on
// the signals that ask for an end are kept for the command, see Run. The error is a
// *[StartError].
func NewGuarded(o GuardOptions) (*Guarded, error) {
	path, err := find(o.Args[0])
	if err != nil {
		return nil, err
	}
	g := &Guarded{o: o, events: make(chan []string, 4), signals: make(chan os.Signal, 16), overdue: make(chan struct{})}
	if err := g.startGuard(path); err != nil {
		return nil, &StartError{o.Args[0], CodeSetup, err}
	}
	for _, s := range []os.Signal{unix.SIGINT, unix.SIGTERM, unix.SIGHUP} {
		if !signal.Ignored(s) {
			signal.Notify(g.signals, s)
		}
	}
	return g, nil
}

func (g *Guarded) startGuard(path string) (err error) {
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
	g.to = to
	g.guard = &exec.Cmd{
		Path: self, Args: append([]string{guardName, path}, g.o.Args...),
		Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
		ExtraFiles: []*os.File{orders, events}, // 3 and 4
		// Whoever stops or kills our group shall not stop or kill the guard.
		SysProcAttr: &syscall.SysProcAttr{Setpgid: true},
	}
	err = g.guard.Start()
	if err := errors.Join(err, orders.Close(), events.Close()); err != nil {
		return errors.Join(err, to.Close(), from.Close())
	}
	go func() {
		defer close(g.events)
		lines := bufio.NewReader(from)
		for {
			line, err := lines.ReadString('\n')
			if err != nil {
				_ = from.Close()
				return
			}
			if words, err := parseLine(line); err == nil {
				g.events <- words
			}
		}
	}()
	return nil
}

// executable is the program that runs, also if its file was replaced meanwhile.
func executable() (string, error) {
	const self = "/proc/self/exe"
	if _, err := os.Stat(self); err == nil {
		return self, nil
	}
	return os.Executable()
}

// send tells the guard something. One that is gone is found out by its events, and
// one that hangs must not hang us.
func (g *Guarded) send(words ...string) {
	_ = g.to.SetWriteDeadline(time.Now().Add(time.Second))
	_, _ = g.to.Write(appendLine(nil, words...))
}

// Limit says when the command is told to end, and when it is killed. It may be
// called at any time; a limit that comes after the command was told to end does not
// count.
func (g *Guarded) Limit(term, kill time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	t, k := at(term), at(kill)
	g.until = k
	g.send(append(append([]string{"limit"}, t.words()...), k.words()...)...)
}

// Stop tells the command to end now, and has it killed after the grace or at its
// limit, whichever comes first.
func (g *Guarded) Stop() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.timer != nil {
		return
	}
	g.send("stop")
	// The guard is not late. If it hangs, we do its work.
	patience := max(0, min(g.o.Grace, g.until.left())) + 2*time.Second
	g.timer = time.AfterFunc(patience, func() { close(g.overdue) })
}

// Run runs the command to its end, with Limit called before. Signals that come
// meanwhile are passed on to it. The error is a *[StartError], [ErrLate],
// [ErrGuardDied], or an *[InterruptedError] if a signal came that asks for an end
// before there was a command to pass it to.
func (g *Guarded) Run(env []string) (End, error) {
	defer signal.Stop(g.signals)
	select {
	case s := <-g.signals:
		return End{}, &InterruptedError{s}
	default:
	}
	for _, s := range append(passedOn(), unix.SIGTSTP) {
		if !signal.Ignored(s) {
			signal.Notify(g.signals, s)
		}
	}
	if !signal.Ignored(unix.SIGTTOU) {
		// While the command has the terminal we are in its background. We may write
		// to it all the same, and take it back.
		signal.Ignore(unix.SIGTTOU)
		defer signal.Reset(unix.SIGTTOU)
	}
	adopt(true) // what a guard leaves behind that is killed
	defer adopt(false)
	g.tty = ownTerminal()
	defer g.tty.takeBack()
	foreground := "0" // the group that the terminal goes back to
	if g.tty.ours() {
		g.tty.gave = true
		foreground = strconv.Itoa(g.tty.group)
	}
	g.order(append([]string{"start", foreground, strconv.FormatInt(int64(g.o.Grace), 10), g.o.Secret}, env...)...)
	for {
		select {
		case s := <-g.signals:
			g.pass(s)
		case e, ok := <-g.events:
			if !ok {
				g.killGroup()
				return End{Code: 128 + int(unix.SIGKILL), Killed: true}, ErrGuardDied
			}
			if end, over, err := g.hear(e); over {
				return end, err
			}
		case <-g.overdue:
			g.killGroup()
			return End{Code: 128 + int(unix.SIGKILL), Killed: true}, ErrGuardDied
		}
	}
}

func (g *Guarded) order(words ...string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.send(words...)
}

// hear takes in what the guard says; over tells that the command has ended, or did
// not start.
func (g *Guarded) hear(words []string) (end End, over bool, err error) {
	number := func(i int) int {
		if i >= len(words) {
			return 0
		}
		n, err := strconv.Atoi(words[i])
		if err != nil {
			return 0
		}
		return n
	}
	switch words[0] {
	case "started":
		g.pid = number(1)
	case "refused":
		errno := syscall.Errno(number(1))
		return End{}, true, &StartError{g.o.Args[0], startCode(errno), errno}
	case "late":
		return End{}, true, ErrLate
	case "stopped":
		g.suspend(syscall.Signal(number(1)))
	case "ended":
		return End{Code: number(1), Killed: number(2) != 0, Left: number(3)}, true, nil
	}
	return End{}, false, nil
}

func (g *Guarded) pass(s os.Signal) {
	switch s {
	case unix.SIGTSTP:
		g.asked = true
	case unix.SIGCONT:
		g.asked = false
		g.tty.give(g.pid) // as after bg and fg
	}
	g.order("signal", strconv.Itoa(int(s.(syscall.Signal))))
}

// suspend stops us too when the command was stopped by the terminal or because we
// were asked to. The shell that waits for us would else never have its turn.
func (g *Guarded) suspend(by syscall.Signal) {
	terminal := g.tty != nil && g.tty.gave || by == unix.SIGTTIN || by == unix.SIGTTOU
	if !terminal && !g.asked {
		return // somebody stopped the command alone
	}
	g.asked = false
	if g.o.Suspended != nil {
		g.o.Suspended()
	}
	g.tty.takeBack()
	switch {
	case g.continuedAlready():
		// as by a hasty fg
	case terminal:
		// All of our group is stopped, as the terminal does it, but not by SIGTSTP:
		// the Go runtime never gives back the handler of a signal that it was asked
		// for.
		_ = unix.Kill(0, unix.SIGTTIN)
	default:
		_ = unix.Kill(unix.Getpid(), unix.SIGSTOP)
	}
	// Here we are stopped, unless there is no shell to continue us. Then the system
	// leaves out stops by a terminal.
	continued := g.awaitContinue(200 * time.Millisecond)
	if !continued && (by == unix.SIGTTIN || by == unix.SIGTTOU) {
		return // it would stop again at once
	}
	g.tty.give(g.pid)
	if g.o.Resumed != nil {
		g.o.Resumed()
	}
	g.pass(unix.SIGCONT)
}

// continuedAlready tells whether a SIGCONT has come in the meantime, and leaves it to
// be found again.
func (g *Guarded) continuedAlready() bool {
	for {
		select {
		case s := <-g.signals:
			if s == unix.SIGCONT {
				g.signals <- s
				return true
			}
			g.pass(s)
		default:
			return false
		}
	}
}

func (g *Guarded) awaitContinue(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	for {
		select {
		case s := <-g.signals:
			if s == unix.SIGCONT {
				return true
			}
			g.pass(s)
		case <-timer.C:
			select { // both may have come while we were stopped
			case s := <-g.signals:
				if s == unix.SIGCONT {
					return true
				}
				g.pass(s)
			default:
			}
			return false
		}
	}
}

// killGroup does the guard's work, and waits until nothing of the group is left. What
// has left the group is found only if the system makes orphans ours. So is a command
// whose guard had no time to tell of it.
func (g *Guarded) killGroup() {
	for deadline := time.Now().Add(2 * time.Second); time.Now().Before(deadline); time.Sleep(settle) {
		gone := g.pid == 0 || unix.Kill(-g.pid, unix.SIGKILL) == unix.ESRCH
		for _, pid := range orphansOf(g.guard.Process.Pid) {
			_ = unix.Kill(-pid, unix.SIGKILL) // if it leads a group
			_ = unix.Kill(pid, unix.SIGKILL)
			_, _ = syscall.Wait4(pid, nil, syscall.WNOHANG, nil) // if it is ours
			gone = false
		}
		if gone {
			return
		}
	}
}

// Close ends the guard, and with it a command that still runs. It may be called
// without Run.
func (g *Guarded) Close() error {
	signal.Stop(g.signals)
	g.mu.Lock()
	if g.timer != nil {
		g.timer.Stop()
	}
	err := g.to.Close()
	g.mu.Unlock()
	patience := time.AfterFunc(5*time.Second, func() { _ = g.guard.Process.Kill() })
	defer patience.Stop()
	for range g.events {
	}
	_ = g.guard.Wait() // how it ended says nothing
	return err
}

// A terminal is that of standard input; nil is none.
type terminal struct {
	fd    int
	group int  // ours
	gave  bool // it is the command's
}

func ownTerminal() *terminal {
	fd := int(os.Stdin.Fd())
	if !term.IsTerminal(fd) {
		return nil
	}
	return &terminal{fd: fd, group: unix.Getpgrp()}
}

// ours tells whether we are in the foreground.
func (t *terminal) ours() bool {
	if t == nil {
		return false
	}
	group, err := unix.IoctlGetInt(t.fd, unix.TIOCGPGRP)
	return err == nil && group == t.group
}

// give puts the command in the foreground, if we are there.
func (t *terminal) give(pid int) {
	if t.ours() && pid > 0 {
		t.gave = true
		t.set(pid)
	}
}

// takeBack puts us in the foreground again.
func (t *terminal) takeBack() {
	if t != nil && t.gave {
		t.gave = false
		t.set(t.group)
	}
}

// set wants SIGTTOU to be ignored. An error means that the terminal is gone; there
// is nobody to tell.
func (t *terminal) set(group int) { _ = unix.IoctlSetPointerInt(t.fd, unix.TIOCSPGRP, group) }
