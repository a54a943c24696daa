//go:build unix

package process

import (
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

// A job is a command in its own process group, with the job control of a shell: signals are
// forwarded to the group, the group has the terminal while it runs, and sscli is stopped and
// continued together with it. A job is used by one goroutine.
type job struct {
	pid        int                  // of the command and its process group; 0 = not known yet
	signals    chan os.Signal       // that sscli gets
	sendSignal func(syscall.Signal) // to the command
	tty        *terminal            // nil = standard input is not a terminal
	stopSent   bool                 // a SIGTSTP was forwarded, and no SIGCONT since
	suspended  func()               // called before sscli is stopped; may be nil
}

// forwarded lists the signals that are forwarded to the command.
func forwarded() []os.Signal {
	return []os.Signal{unix.SIGINT, unix.SIGTERM, unix.SIGHUP, unix.SIGQUIT, unix.SIGUSR1, unix.SIGUSR2, unix.SIGWINCH, unix.SIGCONT, unix.SIGTSTP}
}

// catch sends signals to c. It leaves out signals that sscli ignores, because the command must
// inherit what nohup(1) ignores.
func catch(c chan<- os.Signal, signals ...os.Signal) {
	for _, s := range signals {
		if !signal.Ignored(s) {
			signal.Notify(c, s)
		}
	}
}

// forward forwards a signal to the command.
func (j *job) forward(s os.Signal) {
	switch s {
	case unix.SIGTSTP:
		j.stopSent = true
	case unix.SIGCONT:
		j.stopSent = false
		j.tty.give(j.pid) // as after bg and fg
	}
	j.sendSignal(s.(syscall.Signal))
}

// suspend stops sscli too when the terminal stopped the command, or when sscli was asked to
// stop. Otherwise the shell that waits for sscli would wait forever.
func (j *job) suspend(by syscall.Signal) {
	terminalAccess := by == unix.SIGTTIN || by == unix.SIGTTOU
	byTerminal := j.tty != nil && j.tty.given || terminalAccess
	if !byTerminal && !j.stopSent {
		return // only the command was stopped
	}
	j.stopSent = false
	if j.suspended != nil {
		j.suspended()
	}
	j.tty.takeBack()
	continued := j.awaitContinue(0) // a fast fg
	if !continued {
		if byTerminal {
			_ = unix.Kill(0, stopSignal) // the whole group, as the terminal does
		} else {
			_ = unix.Kill(unix.Getpid(), unix.SIGSTOP)
		}
		// sscli is stopped here, unless no shell could continue it: the system does not
		// let a terminal stop an orphaned process group.
		continued = j.awaitContinue(200 * time.Millisecond)
	}
	if !continued && terminalAccess {
		return // the command would stop again at once
	}
	j.tty.give(j.pid)
	j.forward(unix.SIGCONT)
}

// stopSignal stops sscli as SIGTSTP would. SIGTSTP has no effect once it was caught, because
// the Go runtime does not restore its default action.
const stopSignal = unix.SIGTTIN

// awaitContinue waits at most d for a SIGCONT and reports whether it came. It forwards other
// signals. When d is over, it still reads the signals that came while sscli was stopped.
func (j *job) awaitContinue(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	for over := false; !over || len(j.signals) > 0; {
		select {
		case s := <-j.signals:
			if s == unix.SIGCONT {
				return true
			}
			j.forward(s)
		case <-timer.C:
			over = true
		}
	}
	return false
}

// newGroup starts a command in its own process group. With foreground, the group gets the
// terminal that standard input is.
func newGroup(foreground bool) *syscall.SysProcAttr {
	if foreground {
		return &syscall.SysProcAttr{Foreground: true, Ctty: 0}
	}
	return &syscall.SysProcAttr{Setpgid: true}
}

// wait is wait4(2) without waiting, also for stopped processes.
func wait(pid int, status *syscall.WaitStatus) (int, error) {
	for {
		got, err := syscall.Wait4(pid, status, syscall.WNOHANG|syscall.WUNTRACED, nil)
		if err != syscall.EINTR {
			return got, err
		}
	}
}

// exitStatus returns the exit status that a shell would report.
func exitStatus(status syscall.WaitStatus) int {
	if status.Signaled() {
		return 128 + int(status.Signal())
	}
	return status.ExitStatus()
}

// A terminal is standard input as the controlling terminal. The methods of a nil terminal do
// nothing.
type terminal struct {
	fd    int
	group int  // the process group of sscli
	given bool // the command has the terminal
}

// stdinTerminal returns nil if standard input is not a terminal.
func stdinTerminal() *terminal {
	fd := int(os.Stdin.Fd())
	if !term.IsTerminal(fd) {
		return nil
	}
	return &terminal{fd: fd, group: unix.Getpgrp()}
}

// isOurs reports whether sscli is in the foreground.
func (t *terminal) isOurs() bool {
	if t == nil {
		return false
	}
	group, err := unix.IoctlGetInt(t.fd, unix.TIOCGPGRP)
	return err == nil && group == t.group
}

// give puts the command in the foreground, if sscli is there.
func (t *terminal) give(pid int) {
	if t.isOurs() && pid > 0 {
		t.given = true
		t.setForeground(pid)
	}
}

// takeBack puts sscli in the foreground again.
func (t *terminal) takeBack() {
	if t != nil && t.given {
		t.given = false
		t.setForeground(t.group)
	}
}

// setForeground requires that sscli ignores SIGTTOU, which would stop it in the background.
// An error means that the terminal is gone.
func (t *terminal) setForeground(group int) {
	_ = unix.IoctlSetPointerInt(t.fd, unix.TIOCSPGRP, group)
}
