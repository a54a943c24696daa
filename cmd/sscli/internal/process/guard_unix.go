//go:build unix

package process

import (
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// GuardMain runs a guard until it is done and returns true. In any other process it returns false
// at once. Call it first in main. The guard's descriptors 3 and 4 are the pipes from and to sscli.
func GuardMain() bool {
	if filepath.Base(os.Args[0]) != guardName || len(os.Args) < 3 || !isPipe(3) || !isPipe(4) {
		return false
	}
	// Linux kills the command (dieWithParent) when the thread that started it ends.
	runtime.LockOSThread()
	syscall.CloseOnExec(3)
	syscall.CloseOnExec(4)
	g := newGuard(os.Args[1], os.Args[2:], os.NewFile(4, "events"))
	if name := os.Getenv(EnvGuardLog); name != "" {
		// On an error the guard works without the log.
		g.log, _ = os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	}
	g.run(os.NewFile(3, "orders"))
	return true
}

func isPipe(fd int) bool {
	var st unix.Stat_t
	return unix.Fstat(fd, &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFIFO
}

// noDeadline stands for the time left when a command has no deadline.
const noDeadline = 100 * 365 * 24 * time.Hour

// A guard is a process between sscli and a command. The guard is the command's parent, so that
// the command's process id is not reused while the guard acts on it. The guard leads its own
// process group, so that a signal to sscli's group or the command's group does not reach it.
type guard struct {
	path   string
	args   []string
	events *os.File
	table  func() []process   // reads the process table; may be slow
	remove func(string) error // removes a file; may be slow
	log    *os.File           // nil = none

	limit   *limit // nil = sscli has not sent one
	killAt  instant
	options start // from the start order
	secret  string
	stopped bool // sscli sent Stop before the command was started
	refused bool // the command was not started and will not be

	pid         int // process id of the command and its group; 0 = not started
	ended       bool
	status      syscall.WaitStatus
	hasChildren bool
	termSent    bool
	killSent    bool
	left        bool           // the command ended by itself; TERM and KILL go to the processes that it left behind
	giveUpAt    instant        // when to stop waiting for killed processes
	tables      chan []process // gets the process table once, after TERM was sent to the group
}

func newGuard(path string, args []string, events *os.File) *guard {
	return &guard{path: path, args: args, events: events, table: listProcesses, remove: os.Remove, tables: make(chan []process, 1)}
}

func (g *guard) run(from *os.File) {
	ignored := make(chan os.Signal, 1) // caught so that they don't end the guard, then discarded
	catch(ignored, append(forwarded(), unix.SIGTTIN, unix.SIGTTOU)...)
	children := make(chan os.Signal, 1)
	signal.Notify(children, unix.SIGCHLD)
	adoptOrphans(true)
	orders := make(chan order)
	go receive(from, orders) // runs until the pipe is closed or the process ends
	for {
		select {
		case o, ok := <-orders:
			if !ok {
				g.endNow()
				g.note("sscli is gone")
				return
			}
			g.handleOrder(o)
		case <-ignored:
		case <-children:
			g.reap()
		case table := <-g.tables:
			g.terminateOthers(table)
		case <-g.wake():
		}
		if g.refused || g.check() {
			for o := range orders { // until sscli closes the pipe or dies
				if o.Keep {
					g.options.Temp = nil
				}
			}
			g.removeSecret()
			return
		}
	}
}

// wake returns a channel that fires when check must be called again.
func (g *guard) wake() <-chan time.Time {
	switch {
	case g.pid == 0:
		return nil
	case g.ended || g.killSent:
		return time.After(reapInterval)
	case g.termSent:
		return time.After(max(0, min(clockInterval, g.killAt.left())))
	}
	left := g.limit.Term.left()
	if left > noDeadline/2 {
		return nil
	}
	return time.After(max(0, min(clockInterval, left)))
}

// note adds a line to the log. Call it after the action, so that the log does not delay it.
func (g *guard) note(format string, args ...any) {
	if g.log == nil {
		return
	}
	const clock = "15:04:05.000000"
	line := fmt.Sprintf("%s guard %d, command %d: %s", time.Now().Format(clock), os.Getpid(), g.pid, fmt.Sprintf(format, args...))
	if g.limit != nil {
		line += fmt.Sprintf(" (TERM at %s, KILL at %s, in %v)",
			time.Unix(0, g.limit.Term.Wall).Format(clock), time.Unix(0, g.killAt.Wall).Format(clock), g.killAt.left())
	}
	_, _ = g.log.WriteString(line + "\n")
}

func (g *guard) handleOrder(o order) {
	switch {
	case len(o.Secret) > 0:
		g.secret = string(o.Secret)
	case o.Limit != nil && !g.termSent:
		g.limit, g.killAt = o.Limit, o.Limit.Kill
		g.note("limit")
	case o.Start != nil && g.pid == 0:
		g.options = *o.Start
		g.start()
	case o.Keep:
		g.options.Temp = nil
	case o.Stop:
		g.note("told to stop")
		switch {
		case g.pid == 0:
			g.stopped = true
		case !g.ended && !g.termSent:
			g.terminate(true)
		}
	case o.Signal != 0 && g.pid > 0 && !g.ended:
		_ = unix.Kill(-g.pid, o.Signal)
	}
}

// start starts the command, unless Stop was called or the time for TERM has passed.
func (g *guard) start() {
	if g.limit == nil || g.stopped || g.limit.Term.passed() {
		g.refused = true
		g.report(event{Late: true})
		return
	}
	attr := newGroup(g.options.Foreground != 0)
	dieWithParent(attr)
	var env []string
	for _, kv := range g.options.Env {
		env = append(env, string(kv))
	}
	pid, err := syscall.ForkExec(g.path, g.args, &syscall.ProcAttr{Env: env, Files: []uintptr{0, 1, 2}, Sys: attr})
	signal.Ignore(unix.SIGTTOU) // only after the fork: the command must not inherit this
	if err != nil {
		g.refused = true
		g.returnTerminal()
		errno, ok := err.(syscall.Errno)
		if !ok {
			errno = unix.EINVAL
		}
		g.report(event{Refused: errno})
		return
	}
	g.pid, g.hasChildren = pid, true
	g.report(event{Started: pid})
	g.note("started")
}

// reap waits, without blocking, for the command and for the orphans that the guard adopted.
func (g *guard) reap() {
	for {
		var status syscall.WaitStatus
		pid, err := wait(-1, &status)
		g.hasChildren = err == nil
		if err != nil || pid <= 0 {
			return
		}
		switch {
		case pid != g.pid:
		case status.Stopped():
			g.report(event{Stopped: status.StopSignal()})
		case status.Exited(), status.Signaled():
			g.ended, g.status = true, status
			g.note("the command has ended with %d", exitStatus(status))
		}
	}
}

// check sends TERM and KILL when they are due, and reports whether the guard is done. While
// the command's group exists, check never reads the process table or a file system, because
// that could delay a signal.
func (g *guard) check() bool {
	switch {
	case g.pid == 0:
		return false
	case g.termSent:
	case g.ended:
		if g.remains() {
			g.left = true
			g.terminate(true)
		}
	case g.limit.Term.passed():
		g.terminate(false)
	default:
		return false
	}
	gone := g.ended && !g.remains()
	if !gone && (g.killSent || g.termSent && g.killAt.passed()) {
		g.kill()
		gone = g.ended && !g.remains()
	}
	if !gone && !(g.ended && g.killSent && g.giveUpAt.passed()) {
		return false
	}
	g.returnTerminal()
	g.note("nothing is left")
	end := End{Code: exitStatus(g.status), Killed: g.termSent && !g.left, Left: g.left}
	g.report(event{Ended: &end})
	if end.Killed && g.secret != "" {
		_ = g.remove(g.secret) // fails if sscli removed it first
	}
	return true
}

// terminate sends TERM to the command's group. With early, KILL follows after the grace period
// or at the deadline, whichever comes first. Processes in other groups get TERM once the process
// table is read.
func (g *guard) terminate(early bool) {
	if early {
		g.killAt = g.killAt.earlier(at(time.Now().Add(g.options.Grace)))
	}
	g.termSent = true
	_ = unix.Kill(-g.pid, unix.SIGTERM)
	_ = unix.Kill(-g.pid, unix.SIGCONT) // a stopped process gets TERM only when it continues
	g.note("TERM to the group")
	go func() { g.tables <- g.table() }() // in a goroutine, because reading the table may be slow
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

// kill sends KILL to the command's group, then to the command's descendants in other groups.
// A descendant becomes the guard's child only when its parent is dead, so call kill until
// nothing remains.
func (g *guard) kill() {
	_ = unix.Kill(-g.pid, unix.SIGKILL)
	if !g.killSent {
		g.killSent = true
		g.giveUpAt = at(time.Now().Add(killTimeout))
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

// remains reports whether the ended command has left a process: one in its group, or an orphan
// that the guard adopted. If the command ended by itself, processes in other sessions (daemons)
// do not count.
func (g *guard) remains() bool {
	g.reap()
	if unix.Kill(-g.pid, 0) != unix.ESRCH {
		return true
	}
	return g.hasChildren && len(childrenOf(os.Getpid(), g.table(), !g.termSent || g.left)) > 0
}

// returnTerminal puts sscli's group back in the terminal's foreground, unless a group other
// than the command's is there.
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

// endNow kills everything at once, because sscli has died.
func (g *guard) endNow() {
	if g.pid > 0 {
		g.left = false
		g.termSent = true
		for g.kill(); (!g.ended || g.remains()) && !g.giveUpAt.passed(); g.kill() {
			time.Sleep(reapInterval)
		}
		g.returnTerminal()
	}
	g.removeSecret()
}

// removeSecret removes the secret with its directory, and the directory Temp.
func (g *guard) removeSecret() {
	if g.secret != "" {
		_ = os.RemoveAll(filepath.Dir(g.secret))
	}
	if dir := string(g.options.Temp); dir != "" {
		_ = os.RemoveAll(dir)
	}
}
