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

// A job is a command in a process group of its own, with the job control that a shell
// expects of the program that it started: signals are passed on to the group, the
// group has the terminal while it runs, and sscli is stopped and continued with it.
// One goroutine uses a job.
type job struct {
	pid     int            // the command and its process group; 0 = not known yet
	signals chan os.Signal // that reach sscli
	send    func(syscall.Signal)
	tty     *terminal // nil = standard input is none
	asked   bool      // a SIGTSTP was passed on, and no SIGCONT after it

	suspended, resumed func() // may be nil
}

// passedOn lists the signals that are meant for the command.
func passedOn() []os.Signal {
	return []os.Signal{unix.SIGINT, unix.SIGTERM, unix.SIGHUP, unix.SIGQUIT, unix.SIGUSR1, unix.SIGUSR2, unix.SIGWINCH, unix.SIGCONT, unix.SIGTSTP}
}

// catch sends those signals to c that sscli does not ignore: what nohup(1) ignores, the
// command shall ignore too.
func catch(c chan<- os.Signal, signals ...os.Signal) {
	for _, s := range signals {
		if !signal.Ignored(s) {
			signal.Notify(c, s)
		}
	}
}

// pass passes a signal on to the command.
func (j *job) pass(s os.Signal) {
	switch s {
	case unix.SIGTSTP:
		j.asked = true
	case unix.SIGCONT:
		j.asked = false
		j.tty.give(j.pid) // as after bg and fg
	}
	j.send(s.(syscall.Signal))
}

// suspend stops sscli too when the command was stopped by the terminal, or because
// sscli was asked to stop. Otherwise the shell that waits for sscli would wait forever.
func (j *job) suspend(by syscall.Signal) {
	terminal := j.tty != nil && j.tty.gave || by == unix.SIGTTIN || by == unix.SIGTTOU
	if !terminal && !j.asked {
		return // somebody stopped the command alone
	}
	j.asked = false
	if j.suspended != nil {
		j.suspended()
	}
	j.tty.takeBack()
	switch {
	case j.continuedAlready():
		// as by a hasty fg
	case terminal:
		_ = unix.Kill(0, stopByTerminal) // the whole group, as the terminal does it
	default:
		_ = unix.Kill(unix.Getpid(), unix.SIGSTOP)
	}
	// Here sscli is stopped, unless there is no shell to continue it: the system does
	// not let a terminal stop an orphaned process group.
	continued := j.awaitContinue(200 * time.Millisecond)
	if !continued && (by == unix.SIGTTIN || by == unix.SIGTTOU) {
		return // it would stop again at once
	}
	j.tty.give(j.pid)
	if j.resumed != nil {
		j.resumed()
	}
	j.pass(unix.SIGCONT)
}

// stopByTerminal stops sscli as SIGTSTP would: the Go runtime never gives back the
// handler of a signal that it was asked for, so SIGTSTP itself has no effect any more.
const stopByTerminal = unix.SIGTTIN

// continuedAlready reports whether a SIGCONT has come in the meantime, and leaves it in
// the channel.
func (j *job) continuedAlready() bool {
	for {
		select {
		case s := <-j.signals:
			if s == unix.SIGCONT {
				j.signals <- s
				return true
			}
			j.pass(s)
		default:
			return false
		}
	}
}

// awaitContinue waits at most d for a SIGCONT and reports whether it came.
func (j *job) awaitContinue(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	for {
		select {
		case s := <-j.signals:
			if s == unix.SIGCONT {
				return true
			}
			j.pass(s)
		case <-timer.C:
			select { // both may have come while sscli was stopped
			case s := <-j.signals:
				if s == unix.SIGCONT {
					return true
				}
				j.pass(s)
			default:
			}
			return false
		}
	}
}

// A terminal is the one that standard input is. All methods do nothing on nil.
type terminal struct {
	fd    int
	group int  // the process group of sscli
	gave  bool // the command has it
}

func ownTerminal() *terminal {
	fd := int(os.Stdin.Fd())
	if !term.IsTerminal(fd) {
		return nil
	}
	return &terminal{fd: fd, group: unix.Getpgrp()}
}

// ours reports whether sscli is in the foreground.
func (t *terminal) ours() bool {
	if t == nil {
		return false
	}
	group, err := unix.IoctlGetInt(t.fd, unix.TIOCGPGRP)
	return err == nil && group == t.group
}

// give puts the command in the foreground, if sscli is there.
func (t *terminal) give(pid int) {
	if t.ours() && pid > 0 {
		t.gave = true
		t.set(pid)
	}
}

// takeBack puts sscli in the foreground again.
func (t *terminal) takeBack() {
	if t != nil && t.gave {
		t.gave = false
		t.set(t.group)
	}
}

// set expects that sscli ignores SIGTTOU, which would stop it in the background. An
// error means that the terminal is gone.
func (t *terminal) set(group int) { _ = unix.IoctlSetPointerInt(t.fd, unix.TIOCSPGRP, group) }
