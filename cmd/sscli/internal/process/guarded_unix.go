//go:build unix

package process

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
	overdue chan struct{}

	mu    sync.Mutex // guards what follows, and writing to the guard
	until instant
	timer *time.Timer // for overdue; nil before Stop

	job // Run's
}

// NewGuarded finds the command and starts its guard; nothing runs yet. From now on
// the signals that ask for an end are kept for the command, see Run. The error is a
// *[StartError].
func NewGuarded(o GuardOptions) (*Guarded, error) {
	path, err := find(o.Args[0])
	if err != nil {
		return nil, err
	}
	g := &Guarded{o: o, events: make(chan []string, 4), overdue: make(chan struct{})}
	g.job = job{signals: make(chan os.Signal, 16), suspended: o.Suspended, resumed: o.Resumed,
		send: func(s syscall.Signal) { g.order("signal", strconv.Itoa(int(s))) }}
	if err := g.startGuard(path); err != nil {
		return nil, &StartError{o.Args[0], CodeSetup, err}
	}
	catch(g.signals, unix.SIGINT, unix.SIGTERM, unix.SIGHUP)
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
// [ErrGuardDied], or an *[signals.Interrupted] if a signal came that asks for an end
// before there was a command to pass it to.
func (g *Guarded) Run(env []string) (End, error) {
	defer signal.Stop(g.signals)
	select {
	case s := <-g.signals:
		return End{}, interrupted(s)
	default:
	}
	catch(g.signals, passedOn()...)
	if !signal.Ignored(unix.SIGTTOU) {
		// While the command has the terminal we are in its background. We may write
		// to it all the same, and take it back.
		signal.Ignore(unix.SIGTTOU)
		defer signal.Reset(unix.SIGTTOU)
	}
	adopt(true) // so that what a killed guard leaves is ours
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
		return End{Code: number(1), Killed: number(2) != 0, Left: number(3) != 0}, true, nil
	}
	return End{}, false, nil
}

// killGroup does the guard's work, and waits until nothing of the group is left. What
// has left the group is found only if the system makes orphans ours. So is a command
// whose guard died before it reported the command.
func (g *Guarded) killGroup() {
	for deadline := time.Now().Add(2 * time.Second); time.Now().Before(deadline); time.Sleep(settle) {
		gone := g.pid == 0 || unix.Kill(-g.pid, unix.SIGKILL) == unix.ESRCH
		for _, pid := range orphansOf(processes(), g.guard.Process.Pid) {
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
