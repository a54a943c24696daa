package main

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/windows"

	"github.com/sscli/sscli/emulator"
)

// closeConsole tells a process that its console is closing. It starts a thread in the process for that, as Windows does
// in each process of the console.
func closeConsole(t *testing.T, pid int) {
	t.Helper()
	const access = windows.PROCESS_CREATE_THREAD | windows.PROCESS_QUERY_INFORMATION | windows.PROCESS_VM_OPERATION |
		windows.PROCESS_VM_WRITE | windows.PROCESS_VM_READ
	h, err := windows.OpenProcess(access, false, uint32(pid))
	if err != nil {
		t.Fatal(err)
	}
	defer windows.CloseHandle(h)
	kernel := windows.NewLazySystemDLL("kernel32.dll")
	routine := windows.NewLazySystemDLL("kernelbase.dll").NewProc("CtrlRoutine")
	if err := routine.Find(); err != nil {
		t.Skip("this system does not export the routine that a console calls: ", err)
	}
	thread, _, err := kernel.NewProc("CreateRemoteThread").Call(uintptr(h), 0, 0, routine.Addr(), windows.CTRL_CLOSE_EVENT, 0, 0)
	if thread == 0 {
		t.Fatal(err)
	}
	_ = windows.CloseHandle(windows.Handle(thread))
}

// TestConsoleClosed closes the console of a `lock run` whose command does not end by itself. The command is killed and
// the lock released before the five seconds are over after which Windows would end sscli.
func TestConsoleClosed(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	life, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer life.Close()
	store := emulator.Start(t)
	var said bytes.Buffer
	cmd := &exec.Cmd{Path: self, Args: []string{"sscli", "lock", "run", "closed", "--ttl", "60s", "--", self}, Stderr: &said}
	cmd.Env = append(os.Environ(), "CHAOS_LIFE="+life.Addr().String(), "SSCLI_URL="+store.URL())
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill() }() // already ended, unless the test fails
	var guard int
	var lives []windows.Handle
	for len(lives) < 2 {
		if err := life.(*net.TCPListener).SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
			t.Fatal(err)
		}
		c, err := life.Accept()
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		var parent, pid int
		if _, err := fmt.Fscanln(c, &parent, &pid); err != nil {
			t.Fatal(err)
		}
		h, err := windows.OpenProcess(windows.SYNCHRONIZE, false, uint32(pid))
		if err != nil {
			t.Fatal(err)
		}
		defer windows.CloseHandle(h)
		lives = append(lives, h)
		guard = max(guard, parent)
	}
	closing := time.Now()
	closeConsole(t, guard)
	closeConsole(t, cmd.Process.Pid)
	err = cmd.Wait()
	if took := time.Since(closing); took > 4*time.Second {
		t.Errorf("sscli ended after %v", took)
	}
	if code := cmd.ProcessState.ExitCode(); code != 143 {
		t.Errorf("exit code %d, want 143: %v\n%s", code, err, &said)
	}
	for _, h := range lives {
		if state, err := windows.WaitForSingleObject(h, 0); err != nil || state != windows.WAIT_OBJECT_0 {
			t.Errorf("a process of the command is alive: %v, %v", state, err)
		}
	}
	status := &exec.Cmd{Path: self, Args: []string{"sscli", "lock", "status", "closed"}, Stderr: t.Output()}
	status.Env = append(os.Environ(), "SSCLI_URL="+store.URL())
	if out, err := status.Output(); status.ProcessState.ExitCode() != 1 || strings.TrimSpace(string(out)) == "" {
		t.Errorf("the lock was not released: %s, %v", out, err)
	}
}
