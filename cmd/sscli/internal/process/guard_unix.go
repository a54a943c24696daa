//go:build unix

package process

import (
	"bufio"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// guardName is the name by which sscli is called to be a guard. What its descriptors
// 3 and 4 are then is no accident either.
const guardName = "sscli-guard"

// GuardMain is the whole life of a guard, and returns false at once in a process
// that is no guard. Call it before anything else.
func GuardMain() bool {
	if filepath.Base(os.Args[0]) != guardName || len(os.Args) < 3 || !isPipe(3) || !isPipe(4) {
		return false
	}
	// The system kills the command when the thread ends that started it.
	runtime.LockOSThread()
	syscall.CloseOnExec(3)
	syscall.CloseOnExec(4)
	g := newGuard(os.Args[1], os.Args[2:], os.NewFile(4, "events"))
	if name := os.Getenv(EnvGuardLog); name != "" {
		// Without the log the guard works all the same.
		g.log, _ = os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	}
	g.run(os.NewFile(3, "orders"))
	return true
}

func isPipe(fd int) bool {
	var st unix.Stat_t
	return unix.Fstat(fd, &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFIFO
}

// A guard is between sscli and a command. It is the command's parent, so that no
// other process can have the command's id while it acts, and has a process group of
// its own, so that what stops or kills sscli's or the command's leaves it alone.
//
// What it knows of time was told by sscli. It looks at the clocks that often while
// the command runs, because no timer counts the time that a machine sleeps:
const tick = 100 * time.Millisecond

// settle is the pace at which it looks whether what was killed is gone.
const settle = 5 * time.Millisecond

type guard struct {
	path   string
	args   []string
	events *os.File
	table  func() []process   // the process table, which may be slow
	remove func(string) error // removes a file, on a file system that may be slow

	limited    bool
	term, kill instant
	stopped    bool // before it was started
	grace      time.Duration
	secret     string
	foreground int // the group that the terminal goes back to; 0 = it was not given

	pid     int // the command's, and its group's; 0 = not started
	over    bool
	status  syscall.WaitStatus
	family  bool // the guard has children
	termed  bool // TERM was sent
	killed  bool // KILL was sent
	left    bool // the command had ended when TERM was sent: that was for what it left behind
	giveUp  instant
	refused bool // nothing was started, and nothing will be

	looked chan []process // the process table after TERM was sent to the group
	log    *os.File       // nil = none
}

func newGuard(path string, args []string, events *os.File) *guard {
	return &guard{path: path, args: args, events: events, table: processes, remove: os.Remove, looked: make(chan []process, 1)}
}

func (g *guard) run(from *os.File) {
	held := make(chan os.Signal, 1) // whose number does not matter: they are not for us
	catch(held, append(passedOn(), unix.SIGTTIN, unix.SIGTTOU)...)
	children := make(chan os.Signal, 1)
	signal.Notify(children, unix.SIGCHLD)
	adopt(true)
	orders := make(chan []string)
	go func() { // ends with the process
		defer close(orders)
		lines := bufio.NewReader(from)
		for {
			line, err := lines.ReadString('\n')
			if err != nil {
				return
			}
			words, err := parseLine(line)
			if err != nil {
				return // whatever it is, it is not sscli
			}
			orders <- words
		}
	}()
	for {
		select {
		case words, ok := <-orders:
			if !ok {
				g.abandon()
				g.note("sscli was gone")
				return
			}
			g.obey(words)
		case <-held:
		case <-children:
			g.reap()
		case table := <-g.looked:
			g.terminateOthers(table)
		case <-g.wake():
		}
		if g.refused || g.check() {
			return
		}
	}
}

// wake is the next time to look at the clocks.
func (g *guard) wake() <-chan time.Time {
	switch {
	case g.pid == 0:
		return nil
	case g.over || g.killed:
		return time.After(settle)
	case g.termed:
		return time.After(max(0, min(tick, g.kill.left())))
	}
	return time.After(max(0, min(tick, g.term.left())))
}

// note adds a line to the log, after what it is about was done.
func (g *guard) note(format string, args ...any) {
	if g.log == nil {
		return
	}
	const clock = "15:04:05.000000"
	line := fmt.Sprintf("%s guard %d, command %d: %s", time.Now().Format(clock), os.Getpid(), g.pid, fmt.Sprintf(format, args...))
	if g.limited {
		line += fmt.Sprintf(" (TERM at %s, KILL at %s, in %v)",
			time.Unix(0, g.term.wall).Format(clock), time.Unix(0, g.kill.wall).Format(clock), g.kill.left())
	}
	_, _ = g.log.WriteString(line + "\n") // the guard works without it
}

func (g *guard) tell(words ...string) {
	_, _ = g.events.Write(appendLine(nil, words...)) // sscli may be gone, which is found out otherwise
}

func (g *guard) obey(words []string) {
	switch words[0] {
	case "limit":
		if len(words) == 5 && !g.termed {
			term, err := parseInstant(words[1:])
			kill, err2 := parseInstant(words[3:])
			if err == nil && err2 == nil {
				g.term, g.kill, g.limited = term, kill, true
				g.note("limit")
			}
		}
	case "start":
		if len(words) >= 4 && g.pid == 0 {
			g.foreground, _ = strconv.Atoi(words[1])
			grace, _ := strconv.ParseInt(words[2], 10, 64)
			g.grace, g.secret = time.Duration(grace), words[3]
			g.start(words[4:])
		}
	case "stop":
		g.note("told to stop")
		switch {
		case g.pid == 0:
			g.stopped = true
		case !g.over && !g.termed:
			g.kill = g.soon()
			g.terminate()
		}
	case "signal":
		if n, err := strconv.Atoi(words[1]); err == nil && g.pid > 0 && !g.over {
			_ = unix.Kill(-g.pid, syscall.Signal(n))
		}
	}
}

// soon is the end of the grace, or of the limit.
func (g *guard) soon() instant {
	end := at(time.Now().Add(g.grace))
	return instant{min(end.up, g.kill.up), min(end.wall, g.kill.wall)}
}

func (g *guard) start(env []string) {
	if !g.limited || g.stopped || g.term.passed() {
		g.refused = true
		g.tell("late")
		return
	}
	attr := ownGroup(g.foreground != 0)
	dieWithParent(attr)
	pid, err := syscall.ForkExec(g.path, g.args, &syscall.ProcAttr{Env: env, Files: []uintptr{0, 1, 2}, Sys: attr})
	// The command has inherited what it should.
	signal.Ignore(unix.SIGTTOU)
	if err != nil {
		g.refused = true
		g.giveBack()
		errno, ok := err.(syscall.Errno)
		if !ok {
			errno = unix.EINVAL
		}
		g.tell("refused", strconv.Itoa(int(errno)))
		return
	}
	g.pid, g.family = pid, true
	g.tell("started", strconv.Itoa(pid))
	g.note("started")
}

// reap takes in what became of the command and of what it left to us.
func (g *guard) reap() {
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG|syscall.WUNTRACED, nil)
		if err == syscall.EINTR {
			continue
		}
		g.family = err == nil
		if err != nil || pid <= 0 {
			return
		}
		switch {
		case pid != g.pid:
		case status.Stopped():
			g.tell("stopped", strconv.Itoa(int(status.StopSignal())))
		case status.Exited(), status.Signaled():
			g.over, g.status = true, status
			g.note("the command has ended with %d", exitStatus(status))
		}
	}
}

// check does what is due and reports whether nothing is left to do. While the command
// runs, and while something of its group does, nothing here waits for the process table
// or a file system: a signal must not be late.
func (g *guard) check() bool {
	switch {
	case g.pid == 0:
		return false
	case g.termed:
	case g.over:
		if g.remains() {
			g.left = true
			g.kill = g.soon()
			g.terminate()
		}
	case g.term.passed():
		g.terminate()
	default:
		return false
	}
	gone := g.over && !g.remains()
	if !gone && (g.killed || g.termed && g.kill.passed()) {
		g.slay()
		gone = g.over && !g.remains()
	}
	if !gone && !(g.over && g.killed && g.giveUp.passed()) {
		return false
	}
	g.giveBack()
	killed := "0"
	if g.termed && !g.left {
		killed = "1"
	}
	left := "0"
	if g.left {
		left = "1"
	}
	g.note("nothing is left")
	g.tell("ended", strconv.Itoa(exitStatus(g.status)), killed, left)
	if killed == "1" && g.secret != "" {
		_ = g.remove(g.secret) // it may be gone
	}
	return true
}

// terminate asks the command's group to end, or what the command left behind in it.
// What is elsewhere follows when the process table has been read.
func (g *guard) terminate() {
	g.termed = true
	_ = unix.Kill(-g.pid, unix.SIGTERM)
	_ = unix.Kill(-g.pid, unix.SIGCONT) // a stopped process gets TERM only when it continues
	g.note("TERM to the group")
	go func() { g.looked <- g.table() }() // ends with the process
}

// terminateOthers asks what the command started, or left behind, in other groups.
func (g *guard) terminateOthers(table []process) {
	others := descendants(table, g.pid)
	if g.left {
		others = slices.DeleteFunc(adopted(table, true), func(pid int) bool { return !isChild(pid) })
	}
	for _, pid := range others {
		_ = unix.Kill(pid, unix.SIGTERM)
		_ = unix.Kill(pid, unix.SIGCONT)
	}
}

// isChild reports whether a process is a child of this one, and alive: a table may be
// so old that the id is another's.
func isChild(pid int) bool {
	got, err := syscall.Wait4(pid, nil, syscall.WNOHANG, nil)
	return got == 0 && err == nil
}

// slay kills the command's group, then what the command started elsewhere: that becomes
// the guard's child when its parent is dead, so slay is called until nothing is left.
func (g *guard) slay() {
	_ = unix.Kill(-g.pid, unix.SIGKILL)
	if !g.killed {
		g.killed = true
		g.giveUp = at(time.Now().Add(2 * time.Second))
		g.note("KILL to the group")
	}
	g.reap()
	if g.over && g.family {
		for _, pid := range adopted(g.table(), g.left) {
			_ = unix.Kill(pid, unix.SIGKILL)
		}
		g.reap()
	}
}

// remains reports whether something is left of a command that has ended: its group, or
// what has become the guard's child. A daemon in a session of its own may stay if the
// command ended by itself.
func (g *guard) remains() bool {
	g.reap()
	if unix.Kill(-g.pid, 0) != unix.ESRCH {
		return true
	}
	return g.family && len(adopted(g.table(), !g.termed || g.left)) > 0
}

// giveBack returns the terminal that the command had.
func (g *guard) giveBack() {
	if g.foreground == 0 {
		return
	}
	now, err := unix.IoctlGetInt(0, unix.TIOCGPGRP)
	if err != nil || now != g.pid && unix.Kill(-now, 0) == nil {
		return // it is somebody else's
	}
	_ = unix.IoctlSetPointerInt(0, unix.TIOCSPGRP, g.foreground)
}

// abandon ends everything at once: sscli is gone.
func (g *guard) abandon() {
	if g.pid > 0 {
		g.left = false
		g.termed = true
		for g.slay(); !g.over || g.remains(); g.slay() {
			if g.giveUp.passed() {
				break
			}
			time.Sleep(settle)
		}
		g.giveBack()
	}
	if g.secret != "" {
		_ = os.RemoveAll(filepath.Dir(g.secret))
	}
}
