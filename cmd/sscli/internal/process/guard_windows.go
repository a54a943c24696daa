package process

import (
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/windows"
)

// codeKilled is the exit code of processes that a guard killed: 128+9, as after KILL on Unix.
const codeKilled = 137

// codeClosed is the exit code of a command that was killed because its console closed: 128+15, as
// after TERM on Unix.
const codeClosed = 143

// closeGrace is the time between Ctrl-Break and the kill when the console is closing. Windows ends
// sscli five seconds after the console begins to close, and sscli must release the lock first.
const closeGrace = 2 * time.Second

// GuardMain runs the guard to its end and returns true, if this process is a guard. In any other
// process it returns false at once. Call it first in main. The first arguments of a guard are the
// handles of the pipes from and to sscli.
func GuardMain() bool {
	if filepath.Base(os.Args[0]) != guardName || len(os.Args) < 5 {
		return false
	}
	from, to := pipe(os.Args[1]), pipe(os.Args[2])
	if from == nil || to == nil {
		return false
	}
	g := &guard{path: os.Args[3], args: os.Args[4:], events: to}
	if name := os.Getenv(EnvGuardLog); name != "" {
		// On an error the guard works without the log.
		g.log, _ = os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	}
	g.run(from)
	return true
}

// pipe returns the pipe whose handle sscli passed in an argument, and keeps the command from
// inheriting it. It returns nil if word is not the handle of a pipe.
func pipe(word string) *os.File {
	n, err := strconv.ParseUint(word, 10, strconv.IntSize)
	if err != nil {
		return nil
	}
	h := windows.Handle(n)
	if kind, err := windows.GetFileType(h); err != nil || kind != windows.FILE_TYPE_PIPE {
		return nil
	}
	if windows.SetHandleInformation(h, windows.HANDLE_FLAG_INHERIT, 0) != nil {
		return nil
	}
	return os.NewFile(uintptr(h), "pipe")
}

// uptime returns the time since boot, including the time that the machine slept.
func uptime() time.Duration { return windows.DurationSinceBoot() }

// A guard is a process between sscli and a command. It has the only handle of the command's job.
type guard struct {
	path   string
	args   []string
	events *os.File
	log    *os.File // nil = none

	limit   *limit // nil = sscli has not sent one
	killAt  instant
	options start  // from the start order
	secret  string // GuardOptions.Secret
	stopped bool   // sscli sent Stop before the command was started
	refused bool   // the command was not started and will not be

	job      *job // nil = not started
	ended    bool
	code     int // exit code of an ended command
	termSent bool
	killSent bool
	closing  bool    // the console is closing
	left     bool    // the command ended by itself, and left processes behind
	giveUpAt instant // when to stop waiting for killed processes
}

func (g *guard) run(from *os.File) {
	// Caught so that they don't end the guard, then discarded. Go reports SIGTERM when the console is
	// closing or the user's session ends; Windows kills the guard some seconds later.
	ignored := make(chan os.Signal, 1)
	signal.Notify(ignored, os.Interrupt, syscall.SIGTERM)
	orders := make(chan order)
	go receive(from, orders) // runs until the pipe is closed or the process ends
	for {
		var exited <-chan int
		if g.job != nil && !g.ended {
			exited = g.job.exited
		}
		select {
		case o, ok := <-orders:
			if !ok {
				g.endNow()
				return
			}
			g.handleOrder(o)
		case <-ignored:
		case g.code = <-exited:
			g.ended = true
			g.note("the command has ended with %d", g.code)
		case <-g.wake():
		}
		if g.refused || g.check() {
			for range orders { // until sscli closes the pipe or dies
			}
			g.removeSecret()
			return
		}
	}
}

// wake returns a channel that fires when check must be called again.
func (g *guard) wake() <-chan time.Time {
	switch {
	case g.job == nil:
		return nil
	case g.ended || g.killSent:
		return time.After(reapInterval)
	case g.termSent:
		return time.After(max(0, min(clockInterval, g.killAt.left())))
	}
	return time.After(max(0, min(clockInterval, g.limit.Term.left())))
}

// note adds a line to the log. Call it after the action, so that writing does not delay the action.
func (g *guard) note(format string, args ...any) {
	if g.log != nil {
		fmt.Fprintf(g.log, "%s guard %d: %s (ends in %v)\n", time.Now().Format("15:04:05.000000"), os.Getpid(), fmt.Sprintf(format, args...), g.killAt.left())
	}
}

func (g *guard) handleOrder(o order) {
	switch {
	case len(o.Secret) > 0:
		g.secret = string(o.Secret)
	case o.Limit != nil && !g.termSent:
		g.limit, g.killAt = o.Limit, o.Limit.Kill
		g.note("limit")
	case o.Start != nil && g.job == nil:
		g.options = *o.Start
		g.start()
	case o.Stop:
		g.note("told to stop")
		switch {
		case g.job == nil:
			g.stopped = true
		case !g.ended && !g.termSent:
			g.terminate(true)
		}
	case o.Signal == syscall.SIGTERM && g.job != nil && !g.ended && !g.termSent:
		g.note("the console is closing")
		g.closing = true
		g.options.Grace = min(g.options.Grace, closeGrace)
		g.terminate(true)
	case o.Signal != 0 && g.job != nil && !g.ended:
		_ = g.job.sendBreak()
	}
}

// start starts the command, unless Stop was called or the time for Ctrl-Break has passed.
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
	job, err := startJob(g.path, g.args, env, [3]*os.File{os.Stdin, os.Stdout, os.Stderr})
	if err != nil {
		g.refused = true
		errno, ok := err.(syscall.Errno)
		if !ok {
			errno = windows.ERROR_INVALID_PARAMETER
		}
		g.report(event{Refused: errno})
		return
	}
	g.job = job
	g.report(event{Started: job.pid})
	g.note("started")
}

// check sends Ctrl-Break and ends the job when each is due, and reports whether the guard is done.
func (g *guard) check() bool {
	switch {
	case g.job == nil:
		return false
	case g.termSent:
	case g.ended:
		if g.job.remains() {
			g.left = true
			g.terminate(true)
		}
	case g.limit.Term.passed():
		g.terminate(false)
	default:
		return false
	}
	if g.killSent || g.termSent && g.killAt.passed() {
		g.kill()
	}
	gone := g.ended && !g.job.remains()
	if !gone && !(g.ended && g.killSent && g.giveUpAt.passed()) {
		return false
	}
	g.note("nothing is left")
	end := End{Code: g.code, Killed: g.termSent && !g.left && !g.closing, Left: g.left}
	if g.closing && g.killSent {
		end.Code = codeClosed
	}
	if end.Killed && g.secret != "" {
		_ = os.Remove(g.secret) // fails if sscli removed it first
	}
	g.report(event{Ended: &end})
	return true
}

// terminate sends Ctrl-Break to the command's group. With early, the job ends after the grace
// period or at the deadline, whichever comes first. A job without a console cannot get Ctrl-Break
// and ends at once.
func (g *guard) terminate(early bool) {
	now := at(time.Now())
	if early {
		g.killAt = g.killAt.earlier(at(time.Now().Add(g.options.Grace)))
	}
	g.termSent = true
	if err := g.job.sendBreak(); err != nil {
		g.killAt = g.killAt.earlier(now)
		g.note("Ctrl-Break cannot be sent: %v", err)
		return
	}
	g.note("Ctrl-Break to the group")
}

// kill ends all processes in the job. A process that is being created may escape, so call kill
// until none remains.
func (g *guard) kill() {
	err := g.job.end()
	if !g.killSent {
		g.killSent = true
		g.giveUpAt = at(time.Now().Add(killTimeout))
		g.note("the job was ended: %v", err)
	}
}

// endNow ends the job at once, because sscli has died.
func (g *guard) endNow() {
	if g.job != nil {
		for g.kill(); g.job.remains() && !g.giveUpAt.passed(); g.kill() {
			time.Sleep(reapInterval)
		}
	}
	g.removeSecret()
	g.note("sscli is gone")
}

// removeSecret removes the file with the secret, and the file's directory.
func (g *guard) removeSecret() {
	if g.secret != "" {
		_ = os.RemoveAll(filepath.Dir(g.secret))
	}
}
