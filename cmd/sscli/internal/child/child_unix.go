//go:build unix

package child

import (
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

const errNotExecutable = syscall.ENOEXEC

func passedOn() []os.Signal {
	return []os.Signal{unix.SIGINT, unix.SIGTERM, unix.SIGHUP, unix.SIGQUIT, unix.SIGUSR1, unix.SIGUSR2, unix.SIGWINCH, unix.SIGCONT}
}

// own gives the command a process group, and the terminal if there is one to
// give. What it returns takes the terminal back.
func own(cmd *exec.Cmd) (giveBack func()) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	tty := int(os.Stdin.Fd())
	if !term.IsTerminal(tty) {
		return func() {}
	}
	group, err := unix.IoctlGetInt(tty, unix.TIOCGPGRP)
	if err != nil || group != unix.Getpgrp() {
		return func() {} // sscli is in the background: it has no terminal to give
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Foreground: true, Ctty: tty}
	return func() {
		// Whoever sets the foreground group from the background is stopped,
		// unless it ignores the signal that does it.
		signal.Ignore(unix.SIGTTOU)
		defer signal.Reset(unix.SIGTTOU)
		// An error means that the terminal is gone; there is nobody to tell.
		_ = unix.IoctlSetPointerInt(tty, unix.TIOCSPGRP, group)
	}
}

// pass sends a signal to the command's process group. It may be gone already.
func pass(p *os.Process, s os.Signal) {
	_ = unix.Kill(-p.Pid, s.(syscall.Signal))
}

func status(state *os.ProcessState) int {
	if ws, ok := state.Sys().(syscall.WaitStatus); ok {
		return exitStatus(ws)
	}
	return state.ExitCode()
}

func exitStatus(ws syscall.WaitStatus) int {
	if ws.Signaled() {
		return 128 + int(ws.Signal())
	}
	return ws.ExitStatus()
}
