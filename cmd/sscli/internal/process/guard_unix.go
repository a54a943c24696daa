//go:build unix

package process

import (
	"os"
	"os/signal"
	"slices"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// invalidArgument is the error for a command that was not started, if the system gave no reason.
const invalidArgument = unix.EINVAL

// pipe returns the pipe whose descriptor sscli passed in the argument word, and keeps the command from
// inheriting the descriptor. It returns nil if the argument is not the descriptor of a pipe.
func pipe(word string) *os.File {
	fd, err := strconv.Atoi(word)
	if err != nil {
		return nil
	}
	var st unix.Stat_t
	if unix.Fstat(fd, &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFIFO {
		return nil
	}
	syscall.CloseOnExec(fd)
	return os.NewFile(uintptr(fd), "pipe")
}

// A child is the command of a guard. The guard is the command's parent, so that the command's
// process id is not reused while the guard acts on it. The guard leads its own process group, so
// that a signal to sscli's group or the command's group does not reach the guard.
type child struct {
	hasChildren bool
	table       func() []process // reads the process table; may be slow
}

// prepare makes the guard survive signals that are meant for sscli or the command, and makes it reap
// children that have ended.
func (g *guard) prepare() {
	if g.table == nil {
		g.table = listProcesses
	}
	discarded := make(chan os.Signal, 1) // caught so that they don't end the guard; nothing receives them
	catch(discarded, append(forwarded(), unix.SIGTTIN, unix.SIGTTOU)...)
	children := make(chan os.Signal, 1)
	signal.Notify(children, unix.SIGCHLD)
	adoptOrphans(true)
	go func() {
		for range children {
			g.calls <- g.reap
		}
	}()
}

// launch starts the command in its own process group.
func (g *guard) launch(env []string) (pid int, err error) {
	attr := newGroup(g.options.Foreground != 0)
	dieWithParent(attr)
	pid, err = syscall.ForkExec(g.path, g.args, &syscall.ProcAttr{Env: env, Files: []uintptr{0, 1, 2}, Sys: attr})
	signal.Ignore(unix.SIGTTOU) // only after the fork: the command must not inherit the ignored SIGTTOU
	if err != nil {
		g.returnTerminal()
		return 0, err
	}
	g.hasChildren = true
	return pid, nil
}

func (g *guard) forward(s syscall.Signal) { _ = unix.Kill(-g.pid, s) }

// reap waits, without blocking, for the command and for the orphans that the guard adopted.
func (g *guard) reap() {
	for {
		var status syscall.WaitStatus
		pid, err := wait4(-1, &status)
		g.hasChildren = err == nil
		if err != nil || pid <= 0 {
			return
		}
		switch {
		case pid != g.pid:
		case status.Stopped():
			g.report(event{Stopped: status.StopSignal()})
		case status.Exited(), status.Signaled():
			g.ended, g.code = true, exitStatus(status)
			g.note("the command has ended with %d", g.code)
		}
	}
}

// sendTerm sends TERM to the command's group. Processes in other groups get TERM once the process
// table is read.
func (g *guard) sendTerm() {
	_ = unix.Kill(-g.pid, unix.SIGTERM)
	_ = unix.Kill(-g.pid, unix.SIGCONT) // a stopped process gets TERM only when it continues
	g.note("TERM to the group")
	go func() { // because reading the table may be slow
		table := g.table()
		g.calls <- func() { g.terminateOthers(table) }
	}()
}

// terminateOthers sends TERM to the command's descendants in other groups or, if the command
// ended by itself, to the processes that it left behind.
func (g *guard) terminateOthers(table []process) {
	others := descendants(os.Getpid(), table, g.pid)
	if g.left {
		others = slices.DeleteFunc(childrenOf(os.Getpid(), table, true), func(pid int) bool { return !isChild(pid) })
	}
	for _, pid := range others {
		_ = unix.Kill(pid, unix.SIGTERM)
		_ = unix.Kill(pid, unix.SIGCONT)
	}
}

// isChild reports whether pid is a running child of this process. A pid from the process table
// may have been reused since the table was read.
func isChild(pid int) bool {
	got, err := syscall.Wait4(pid, nil, syscall.WNOHANG, nil)
	return got == 0 && err == nil
}

// sendKill sends KILL to the command's group and, once the command has ended, to the orphans that the
// guard adopted. A descendant in another group becomes such an orphan only when its parent is dead, so
// one call may not reach all descendants.
func (g *guard) sendKill() {
	_ = unix.Kill(-g.pid, unix.SIGKILL)
	if !g.killSent {
		g.note("KILL to the group")
	}
	g.reap()
	if g.ended && g.hasChildren {
		for _, pid := range childrenOf(os.Getpid(), g.table(), g.left) {
			_ = unix.Kill(pid, unix.SIGKILL)
		}
		g.reap()
	}
}

// remains reports whether the command is still running or has left processes behind: processes in
// its group, or orphans that the guard adopted. If the command ended by itself, orphans in other
// sessions (daemons) do not count.
func (g *guard) remains() bool {
	g.reap()
	if !g.ended || unix.Kill(-g.pid, 0) != unix.ESRCH {
		return true
	}
	return g.hasChildren && len(childrenOf(os.Getpid(), g.table(), !g.termSent || g.left)) > 0
}

// finish is called when all processes of the command are gone, or when the guard stops waiting for them.
func (g *guard) finish(*End) { g.returnTerminal() }

// returnTerminal puts sscli's group back in the terminal's foreground, unless a running group other than
// the command's is in the foreground.
func (g *guard) returnTerminal() {
	if g.options.Foreground == 0 {
		return
	}
	now, err := unix.IoctlGetInt(0, unix.TIOCGPGRP)
	if err != nil || now != g.pid && unix.Kill(-now, 0) == nil {
		return
	}
	_ = unix.IoctlSetPointerInt(0, unix.TIOCSPGRP, g.options.Foreground)
}
