package process

import (
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/windows"
)

// invalidArgument is the error for a command that was not started, if the system gave no reason.
const invalidArgument = windows.ERROR_INVALID_PARAMETER

// codeClosed is the exit code of a command that was killed because its console closed: 128+15, as
// after TERM on Unix.
const codeClosed = 143

// closeGrace is the time between Ctrl-Break and the kill when the console is closing. Windows ends
// sscli five seconds after the console begins to close, and sscli must release the lock first.
const closeGrace = 2 * time.Second

// pipe returns the pipe whose handle sscli passed in the argument word, and keeps the command from
// inheriting the handle. It returns nil if the argument is not the handle of a pipe.
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

// A child is the command of a guard. The guard has the only handle to the command's job. On
// Windows, Ctrl-Break replaces TERM, and ending the job replaces KILL.
type child struct {
	job     *job
	closing bool // the console is closing
}

// prepare makes the guard survive Ctrl-C and Ctrl-Break. Go reports SIGTERM when the console is
// closing or the user's session ends; Windows kills the guard some seconds later.
func (g *guard) prepare() {
	discarded := make(chan os.Signal, 1) // caught so that they don't end the guard; nothing receives them
	signal.Notify(discarded, os.Interrupt, syscall.SIGTERM)
}

func (g *guard) launch(env []string) (pid int, err error) {
	g.job, err = startJob(g.path, g.args, env, [3]*os.File{os.Stdin, os.Stdout, os.Stderr})
	if err != nil {
		return 0, err
	}
	go func() {
		code := <-g.job.exited
		g.calls <- func() {
			g.ended, g.code = true, code
			g.note("the command has ended with %d", code)
		}
	}()
	return g.job.pid, nil
}

// reap does nothing: launch waits for the command.
func (g *guard) reap() {}

// forward sends Ctrl-Break to the command. SIGTERM means that the console is closing: forward then also
// limits the grace period to closeGrace.
func (g *guard) forward(s syscall.Signal) {
	if s == syscall.SIGTERM && !g.termSent {
		g.note("the console is closing")
		g.closing = true
		g.options.Grace = min(g.options.Grace, closeGrace)
		g.terminate(true)
		return
	}
	_ = g.job.sendBreak()
}

// sendTerm sends Ctrl-Break to the command's group. A job without a console cannot get Ctrl-Break
// and is killed immediately.
func (g *guard) sendTerm() {
	now := at(time.Now())
	if err := g.job.sendBreak(); err != nil {
		g.killAt = g.killAt.earlier(now)
		g.note("Ctrl-Break cannot be sent: %v", err)
		return
	}
	g.note("Ctrl-Break to the group")
}

func (g *guard) sendKill() {
	err := g.job.end()
	if !g.killSent {
		g.note("the job was ended: %v", err)
	}
}

func (g *guard) remains() bool { return g.job.remains() }

// finish is called when all processes of the command are gone, or when the guard stops waiting for them.
// If the console is closing, finish clears end.Killed and, after a kill, sets end.Code to codeClosed.
func (g *guard) finish(end *End) {
	if g.closing {
		end.Killed = false
		if g.killSent {
			end.Code = codeClosed
		}
	}
}
