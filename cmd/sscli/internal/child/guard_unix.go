//go:build unix

package child

import (
	"bufio"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// guardName is the name by which sscli is called to be a guard. What its descriptors
// 3 and 4 are then is no accident either.
const guardName = "sscli-guard"

// GuardMain is the whole life of a guard, and returns false at once in a process
// that is none. It is to be called before anything else.
func GuardMain() bool {
	if filepath.Base(os.Args[0]) != guardName || len(os.Args) < 3 || !isPipe(3) || !isPipe(4) {
		return false
	}
	// The system kills the command when the thread ends that started it.
	runtime.LockOSThread()
	syscall.CloseOnExec(3)
	syscall.CloseOnExec(4)
	g := &guard{path: os.Args[1], args: os.Args[2:], events: os.NewFile(4, "events")}
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

	limited    bool
	term, kill instant
	stopped    bool // before it was started
	grace      time.Duration
	secret     string
	foreground int // the group that the terminal goes back to; 0 = it was not given

	pid     int // the command's, and its group's; 0 = not started
	over    bool
	status  syscall.WaitStatus
	family  bool // it has children still
	termed  bool
	killed  bool
	left    int     // what the command left behind
	giveUp  instant // on what does not go when it was killed
	refused bool    // nothing was started, and nothing will be
}

func (g *guard) run(from *os.File) {
	held := make(chan os.Signal, 1) // whose number does not matter: they are not for us
	for _, s := range append(passedOn(), unix.SIGTSTP, unix.SIGTTIN, unix.SIGTTOU) {
		if !signal.Ignored(s) {
			signal.Notify(held, s)
		}
	}
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
				return
			}
			g.obey(words)
		case <-held:
		case <-children:
			g.reap()
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
	attr := &syscall.SysProcAttr{Setpgid: true}
	if g.foreground != 0 {
		attr = &syscall.SysProcAttr{Foreground: true, Ctty: 0}
	}
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
		}
	}
}

// check does what is due and tells whether nothing is left to do.
func (g *guard) check() bool {
	switch {
	case g.pid == 0:
		return false
	case g.killed:
		g.slay()
	case g.termed || g.over:
		// Asked once: what is there now may be gone the next moment.
		left := g.remaining()
		if g.over && left == 0 {
			break
		}
		if !g.termed { // the command has ended by itself, what it started has not
			g.left = left
			g.kill = g.soon()
			g.terminate()
		}
		if g.kill.passed() {
			g.slay()
		}
	case g.term.passed():
		g.terminate()
		if g.kill.passed() {
			g.slay()
		}
	}
	if !g.over || g.remaining() > 0 && !(g.killed && g.giveUp.passed()) {
		return false
	}
	g.giveBack()
	killed := "0"
	if g.termed && g.left == 0 {
		killed = "1"
		g.removeSecret()
	}
	g.tell("ended", strconv.Itoa(exitStatus(g.status)), killed, strconv.Itoa(g.left))
	return true
}

// terminate asks all that the command is to end, or all that it left behind.
func (g *guard) terminate() {
	g.termed = true
	others := adopted(true)
	if g.left == 0 {
		others = descendants(g.pid)
	}
	_ = unix.Kill(-g.pid, unix.SIGTERM)
	_ = unix.Kill(-g.pid, unix.SIGCONT) // what is stopped shall hear it too
	for _, pid := range others {
		_ = unix.Kill(pid, unix.SIGTERM)
		_ = unix.Kill(pid, unix.SIGCONT)
	}
}

// slay kills all that the command is. What it started elsewhere becomes our child
// when its parent is dead, so this is done again until nothing comes.
func (g *guard) slay() {
	if !g.killed {
		g.killed = true
		g.giveUp = at(time.Now().Add(2 * time.Second))
		g.removeSecret()
	}
	_ = unix.Kill(-g.pid, unix.SIGKILL)
	g.reap()
	if g.over && g.family {
		for _, pid := range adopted(g.left > 0) {
			_ = unix.Kill(pid, unix.SIGKILL)
		}
		g.reap()
	}
}

func (g *guard) removeSecret() {
	if g.secret != "" {
		_ = os.Remove(g.secret) // it may be gone
	}
}

// remaining counts what is left of a command that has ended: its group, and what
// has become our child. A daemon in a session of its own wants to stay, and may if
// the command ended by itself.
func (g *guard) remaining() int {
	g.reap()
	n := 0
	if g.family {
		n = len(adopted(!g.termed || g.left > 0))
	}
	if err := unix.Kill(-g.pid, 0); n == 0 && err != unix.ESRCH {
		n = 1
	}
	return n
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
		g.left = 0
		g.termed = true
		for g.slay(); !g.over || g.remaining() > 0; g.slay() {
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
