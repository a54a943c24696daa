//go:build unix

package process

import (
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// codeKilled is the exit status of a command that was killed.
const codeKilled = 128 + int(unix.SIGKILL)

func ending() []os.Signal { return []os.Signal{unix.SIGINT, unix.SIGTERM, unix.SIGHUP} }

// passPipes passes the pipes to a guard, with their descriptors as the guard's first arguments. The guard
// also gets the descriptors that sscli inherited, with the same numbers, because they are meant for the
// command. The caller must close the copies of them once the guard has started. The guard leads its own
// process group, so that a signal to sscli's group does not reach the guard.
func passPipes(guard *exec.Cmd, orders, events *os.File) (copies []*os.File, err error) {
	const first = 3 // the descriptor of ExtraFiles[0]
	free := first
	for isInherited(free) || isInherited(free+1) {
		file, dupErr := (*os.File)(nil), error(nil) // nil = closed in the guard
		if isInherited(free) {
			if file, dupErr = duplicate(free); dupErr == nil {
				copies = append(copies, file)
			}
		}
		err = errors.Join(err, dupErr)
		guard.ExtraFiles = append(guard.ExtraFiles, file)
		free++
	}
	guard.Args = []string{guardName, strconv.Itoa(free), strconv.Itoa(free + 1)}
	guard.ExtraFiles = append(guard.ExtraFiles, orders, events)
	guard.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return copies, err
}

// isInherited reports whether sscli was started with a descriptor. All descriptors that sscli has opened
// itself are closed on exec.
func isInherited(fd int) bool {
	flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
	return err == nil && flags&unix.FD_CLOEXEC == 0
}

func duplicate(fd int) (*os.File, error) {
	n, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, fd)
	if err != nil {
		return nil, os.NewSyscallError("fcntl", err)
	}
	return os.NewFile(uintptr(n), "inherited"), nil
}

// executable returns a path that runs this program. On Linux, the path works even if the program's file
// was replaced, unless /proc is not mounted.
func executable() (string, error) {
	const self = "/proc/self/exe"
	if _, err := os.Stat(self); err == nil {
		return self, nil
	}
	path, err := os.Executable()
	if err != nil {
		path, err = exec.LookPath(os.Args[0])
	}
	return path, err
}

// A control is the job control of a Guarded command.
type control struct{ job }

// prepareRun fills in the start order, and prepares sscli to give the terminal to the command. end
// undoes the preparation.
func (g *Guarded) prepareRun(s *start) (end func()) {
	g.job = job{signals: g.signals, suspended: g.o.Suspended, tty: stdinTerminal(),
		sendSignal: func(s syscall.Signal) { g.send(order{Signal: s}) }}
	catch(g.signals, forwarded()...)
	// While the command has the terminal, sscli is in the background. With SIGTTOU ignored, sscli
	// can still write to the terminal and take it back.
	ignore := !signal.Ignored(unix.SIGTTOU)
	if ignore {
		signal.Ignore(unix.SIGTTOU)
	}
	adoptOrphans(true) // if the guard is killed, its children become ours
	if g.tty.isOurs() {
		g.tty.given = true
		s.Foreground = g.tty.group
	}
	return func() {
		g.tty.takeBack()
		adoptOrphans(false)
		if ignore {
			signal.Reset(unix.SIGTTOU)
		}
	}
}

func killGroup(pid int) { _ = unix.Kill(-pid, unix.SIGKILL) }

// killCommand kills the command, if the guard is still its parent, and all other descendants of the guard.
func (g *Guarded) killCommand() {
	guard := g.guard.Process.Pid
	// Once the guard has waited for the command, the pid may belong to another process.
	if g.pid != 0 && hasParent(g.pid, guard) {
		killGroup(g.pid)
	}
	for _, pid := range descendants(guard, listProcesses(), 0) {
		_ = unix.Kill(-pid, unix.SIGKILL) // in case it leads a group
		_ = unix.Kill(pid, unix.SIGKILL)
	}
}

// killAll kills the command after its guard has died, and waits up to killTimeout for the command's
// processes to end. Processes outside the command's group, and a command whose guard died before
// reporting the start, are found only on Linux.
func (g *Guarded) killAll() {
	guard := g.guard.Process.Pid
	for deadline := time.Now().Add(killTimeout); time.Now().Before(deadline); time.Sleep(reapInterval) {
		gone := g.pid == 0 || unix.Kill(-g.pid, unix.SIGKILL) == unix.ESRCH
		table := listProcesses()
		// As the first process of a container, sscli also adopts orphans from other sessions, so only
		// orphans in its own session are killed.
		for _, pid := range append(childrenOf(guard, table, false), childrenOf(os.Getpid(), table, true)...) {
			if pid == guard {
				continue
			}
			_ = unix.Kill(-pid, unix.SIGKILL) // in case it leads a group
			_ = unix.Kill(pid, unix.SIGKILL)
			_, _ = syscall.Wait4(pid, nil, syscall.WNOHANG, nil) // in case it is our child
			gone = false
		}
		if gone {
			return
		}
	}
}
