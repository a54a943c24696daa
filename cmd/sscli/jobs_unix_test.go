//go:build unix

package main

import (
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// interactiveBash starts a bash with job control on a terminal, with sscli on its PATH.
func interactiveBash(t *testing.T) *lockTerminal {
	t.Helper()
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("no bash")
	}
	p := onTerminal(t, "bash", "--norc", "--noprofile", "-i")
	p.expect("$ ")
	return p
}

// awaitForeground waits until the command line of the leader of the terminal's foreground group begins with line.
func (p *lockTerminal) awaitForeground(line string) {
	p.t.Helper()
	conn, err := p.pty.SyscallConn()
	if err != nil {
		p.t.Fatal(err)
	}
	var leader string
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); {
		var group int
		if controlErr := conn.Control(func(fd uintptr) { group, err = unix.IoctlGetInt(int(fd), unix.TIOCGPGRP) }); controlErr != nil || err != nil {
			p.t.Fatal(controlErr, err)
		}
		out, _ := exec.Command("ps", "-o", "args=", "-p", strconv.Itoa(group)).Output() // the leader may have ended
		if leader = string(out); strings.HasPrefix(leader, line) {
			return
		}
	}
	p.t.Fatalf("in the foreground is %q, want %q", leader, line)
}

// TestJobControl: Ctrl-Z stops sscli and the command that it runs, fg continues both, and Ctrl-C ends them.
func TestJobControl(t *testing.T) {
	t.Parallel()
	for name, line := range map[string]string{
		"lock run": "sscli lock run x --ttl 1m -- ",
		"serve":    "sscli serve -- ",
		"watch":    "sscli watch k -- ",
	} {
		t.Run(name, func(t *testing.T) {
			p := interactiveBash(t)
			// The quotes distinguish the output from the echo of the typed line.
			p.typed(line + `sh -c 'echo u""p; while read -r line; do echo "re""ad $line"; done </dev/tty'` + "\n")
			p.expect("up\r\n")
			for range 2 {
				p.typed("\x1a")
				p.expect("Stopped")
				p.expect("$ ")
				p.typed("echo the shell an\"\"swers\n")
				p.expect("the shell answers")
				p.expect("$ ")
				p.typed("fg\n")
				p.expect(line)
				p.typed("hello\n")
				p.expect("read hello")
			}
			p.typed("\x03")
			p.expect("$ ")
			p.typed("echo \"code $?\"\n")
			p.expect("code 130\r\n")
		})
	}
}

// TestWatchStopsBetweenCommands: Ctrl-Z also stops a watch that has run a command and waits for the next event.
func TestWatchStopsBetweenCommands(t *testing.T) {
	t.Parallel()
	p := interactiveBash(t)
	p.typed("sscli watch k -- sh -c 'echo ra\"\"n $SSCLI_EVENT_OP'\n")
	p.expect("ran initial")
	p.awaitForeground("sscli watch")
	p.typed("\x1a")
	p.expect("Stopped")
	p.expect("$ ")
	p.typed("sscli set k 1; fg\n")
	p.expect("sscli watch k")
	p.expect("ran set")
	p.awaitForeground("sscli watch")
	p.typed("\x03")
	p.expect("$ ")
	p.typed("echo \"code $?\"\n")
	p.expect("code 130\r\n")
}
