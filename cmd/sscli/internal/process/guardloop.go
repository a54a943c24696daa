package process

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"time"

	"github.com/sscli/sscli/internal/files"
)

// GuardMain runs the guard until it is done and returns true, if this process was started as a guard.
// Otherwise GuardMain returns false immediately. Call it first in main. The first two arguments of a
// guard are the descriptors, or on Windows the handles, of the pipes from and to sscli.
func GuardMain() bool {
	if filepath.Base(os.Args[0]) != guardName || len(os.Args) < 5 {
		return false
	}
	from, to := pipe(os.Args[1]), pipe(os.Args[2])
	if from == nil || to == nil {
		return false
	}
	// Linux kills the command (dieWithParent) when the thread that started it ends.
	runtime.LockOSThread()
	newGuard(os.Args[3], os.Args[4:], to).run(from)
	return true
}

// A guard is a process between sscli and a command. It starts the command, sends it signals, and
// ends it at its deadline, or immediately when sscli dies. Only the goroutine that calls run uses
// the fields; other goroutines send functions to calls.
type guard struct {
	child  // the command, as the operating system sees it
	path   string
	args   []string
	events *os.File
	remove func(string) error // removes a file; may be slow
	log    *os.File           // nil = none
	calls  chan func()        // functions for run to call

	limit   *limit // nil = sscli has not sent a limit
	killAt  instant
	options start  // from the start order
	secret  string // GuardOptions.Secret
	stopped bool   // sscli sent Stop before the command was started
	refused bool   // the command was not started and will not be

	pid      int // process id of the command and its group; 0 = not started
	ended    bool
	code     int // exit status of an ended command
	termSent bool
	killSent bool
	left     bool    // the command ended by itself; TERM and KILL go to the processes that it left behind
	giveUpAt instant // when to stop waiting for killed processes
}

// newGuard returns a guard that reports to events. It writes the log that EnvGuardLog names.
func newGuard(path string, args []string, events *os.File) *guard {
	g := &guard{path: path, args: args, events: events, remove: os.Remove, calls: make(chan func())}
	if name := os.Getenv(EnvGuardLog); name != "" {
		// On an error the guard works without the log.
		g.log, _ = os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	}
	return g
}

func (g *guard) run(from *os.File) {
	g.prepare()
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
		case call := <-g.calls:
			call()
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

// note adds a line to the log. Call it after an action, so that the log does not delay the action.
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
		if o.Within > 0 {
			g.options.Grace = min(g.options.Grace, o.Within)
		}
		switch {
		case g.pid == 0:
			g.stopped = true
		case !g.ended && !g.termSent:
			g.terminate(true)
		}
	case o.Signal != 0 && g.pid > 0 && !g.ended:
		g.forward(o.Signal)
	}
}

// start starts the command, unless sscli has sent Stop, sscli has not sent a limit, or the time for
// TERM has passed.
func (g *guard) start() {
	if g.limit == nil || g.stopped || g.limit.Term.passed() {
		g.refused = true
		g.report(event{Late: true})
		return
	}
	var env []string
	for _, kv := range g.options.Env {
		env = append(env, string(kv))
	}
	pid, err := g.launch(env)
	if err != nil {
		g.refused = true
		errno, ok := err.(syscall.Errno)
		if !ok {
			errno = invalidArgument
		}
		g.report(event{Refused: errno})
		return
	}
	g.pid = pid
	g.report(event{Started: pid})
	g.note("started")
}

// check sends TERM and KILL when they are due, and reports whether the guard is done. As long as
// the command's group exists, check does not read the process table or remove a file before it has
// sent KILL, because that could delay the signal.
func (g *guard) check() bool {
	if g.pid != 0 && !g.ended && !g.termSent && g.limit.Term.passed() {
		g.reap() // the command may have ended while the guard was stopped
	}
	switch {
	case g.pid == 0:
		return false
	case g.termSent:
	case g.limit.Term.passed() && (!g.ended || g.code == codeKilled || g.remains()):
		g.terminate(false) // sscli, whose deadline is the same, may have killed the command first
	case g.ended:
		if g.remains() {
			g.left = true
			g.terminate(true)
		}
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
	g.note("nothing is left")
	end := End{Code: g.code, Killed: g.termSent && !g.left, Left: g.left}
	g.finish(&end)
	g.report(event{Ended: &end})
	if end.Killed && g.secret != "" {
		_ = g.remove(g.secret) // fails if sscli removed it first
	}
	return true
}

// terminate sends TERM to the command. If early is true, KILL follows after the grace period or at
// the deadline, whichever comes first. Otherwise KILL follows at the deadline.
func (g *guard) terminate(early bool) {
	if early {
		g.killAt = g.killAt.earlier(at(time.Now().Add(g.options.Grace)))
	}
	g.termSent = true
	g.sendTerm()
}

// kill kills the command and its descendants. A process that is being created, or whose parent is
// still running, may escape, so call kill until nothing remains.
func (g *guard) kill() {
	if !g.killSent {
		g.giveUpAt = at(time.Now().Add(killTimeout))
	}
	g.sendKill()
	g.killSent = true
}

// endNow kills everything immediately, because sscli has died or has closed the pipe.
func (g *guard) endNow() {
	if g.pid > 0 {
		g.left = false
		g.termSent = true
		for g.kill(); g.remains() && !g.giveUpAt.passed(); g.kill() {
			time.Sleep(reapInterval)
		}
		g.finish(&End{})
	}
	g.removeSecret()
}

// removeSecret removes the directory of the secret and the directory options.Temp.
func (g *guard) removeSecret() {
	if g.secret != "" {
		_ = files.RetryBusy(func() error { return os.RemoveAll(filepath.Dir(g.secret)) })
	}
	if dir := string(g.options.Temp); dir != "" {
		_ = files.RetryBusy(func() error { return os.RemoveAll(dir) })
	}
}
