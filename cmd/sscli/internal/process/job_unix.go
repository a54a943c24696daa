//go:build unix

package process

import (
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"github.com/sscli/sscli/internal/wait"
)

// A job is a command in its own process group, under the job control of sscli, which acts like a
// shell: sscli forwards signals to the group, gives it the terminal while it runs, and stops and
// continues together with it. A job must not be used by several goroutines at the same time.
type job struct {
	pid        int                  // process id of the command and its group; 0 = not known yet
	signals    chan os.Signal       // the signals that sscli gets
	sendSignal func(syscall.Signal) // sends a signal to the command
	tty        *terminal            // nil = standard input is not a terminal
	stopSent   bool                 // SIGTSTP was forwarded, and no SIGCONT since
	suspended  func()               // called before sscli is stopped; may be nil
}

func forwarded() []os.Signal {
	return []os.Signal{unix.SIGINT, unix.SIGTERM, unix.SIGHUP, unix.SIGQUIT, unix.SIGUSR1, unix.SIGUSR2, unix.SIGWINCH, unix.SIGCONT, unix.SIGTSTP}
}

// catch delivers signals to c, except signals that sscli ignores. If nohup(1) made sscli ignore a signal,
// the command must inherit the ignored signal.
func catch(c chan<- os.Signal, signals ...os.Signal) {
	for _, s := range signals {
		if !signal.Ignored(s) {
			signal.Notify(c, s)
		}
	}
}

func (j *job) forward(s os.Signal) {
	switch s {
	case unix.SIGTSTP:
		j.stopSent = true
	case unix.SIGCONT:
		j.stopSent = false
		j.tty.give(j.pid) // fg may have put sscli in the foreground
	}
	j.sendSignal(s.(syscall.Signal))
}

// suspend is called when the command was stopped; by is the signal that stopped it. If the terminal
// stopped the command, or sscli forwarded SIGTSTP to the command, suspend stops sscli too, so that
// the shell does not wait for sscli forever.
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
	continued := j.awaitContinue(0) // SIGCONT from fg may have come already
	if !continued {
		patience := 200 * time.Millisecond // the kernel never discards SIGSTOP
		if byTerminal {
			patience = wait.ForContinue()
			_ = unix.Kill(0, stopSignal) // stops the whole group, as the terminal does
		} else {
			_ = unix.Kill(unix.Getpid(), unix.SIGSTOP)
		}
		// sscli is stopped here until SIGCONT, except in an orphaned process group: no shell
		// could continue it, so the kernel discards stopSignal.
		continued = j.awaitContinue(patience)
	}
	if !continued && terminalAccess {
		return // the command would stop again immediately
	}
	j.tty.give(j.pid)
	j.forward(unix.SIGCONT)
}

// stopSignal is the signal with which sscli stops itself. SIGTSTP does not work: once the Go runtime has
// caught it, the runtime does not restore the default action.
const stopSignal = unix.SIGTTIN

// awaitContinue waits at most d for SIGCONT and reports whether it came. It forwards other
// signals. After d it still handles the signals that came while sscli was stopped.
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

// newGroup returns the attributes that start a command in its own process group. If foreground is true,
// the group becomes the foreground group of the terminal on standard input.
func newGroup(foreground bool) *syscall.SysProcAttr {
	if foreground {
		return &syscall.SysProcAttr{Foreground: true, Ctty: 0}
	}
	return &syscall.SysProcAttr{Setpgid: true}
}

// wait4 calls wait4(2) with WNOHANG and WUNTRACED, so it also reports stopped processes.
func wait4(pid int, status *syscall.WaitStatus) (int, error) {
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

// A terminal is the controlling terminal on standard input. The methods of a nil terminal do
// nothing.
type terminal struct {
	fd    int
	group int  // the process group of sscli
	given bool // the command has the terminal
}

// stdinTerminal returns the terminal on standard input, or nil if standard input is not a terminal.
func stdinTerminal() *terminal {
	fd := int(os.Stdin.Fd())
	if !term.IsTerminal(fd) {
		return nil
	}
	return &terminal{fd: fd, group: unix.Getpgrp()}
}

// isOurs reports whether sscli's group is in the foreground.
func (t *terminal) isOurs() bool {
	if t == nil {
		return false
	}
	group, err := unix.IoctlGetInt(t.fd, unix.TIOCGPGRP)
	return err == nil && group == t.group
}

// give puts the command in the foreground if sscli is in the foreground.
func (t *terminal) give(pid int) {
	if t.isOurs() && pid > 0 {
		t.given = true
		t.setForeground(pid)
	}
}

// takeBack puts sscli back in the foreground if the command has the terminal.
func (t *terminal) takeBack() {
	if t != nil && t.given {
		t.given = false
		t.setForeground(t.group)
	}
}

// setForeground puts a group in the foreground. sscli must ignore SIGTTOU, which would otherwise
// stop it in the background. Errors are ignored: they mean that the terminal is gone.
func (t *terminal) setForeground(group int) {
	_ = unix.IoctlSetPointerInt(t.fd, unix.TIOCSPGRP, group)
}
