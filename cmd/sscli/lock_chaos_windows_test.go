package main

import (
	"bytes"
	"flag"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/windows"

	"github.com/sscli/sscli/cmd/sscli/internal/process"
	"github.com/sscli/sscli/emulator"
)

var chaosRounds = flag.Int("chaos-rounds", 12, "rounds of TestLockChaos")

// lockChild runs the command of TestLockChaos, in the processes that the test starts for that purpose. The command
// reports the process IDs of its parent, the guard, and of itself. It starts a descendant, and both keep running.
func lockChild() bool {
	address := os.Getenv("CHAOS_LIFE")
	if address == "" || filepath.Base(os.Args[0]) == "sscli" {
		return false
	}
	life, err := net.Dial("tcp", address)
	if err != nil {
		return true
	}
	greeting := fmt.Sprint(0, os.Getpid())
	if os.Getenv("CHAOS_DESCENDANT") == "" {
		greeting = fmt.Sprint(os.Getppid(), os.Getpid())
		descendant := exec.Command(os.Args[0])
		descendant.Env = append(os.Environ(), "CHAOS_DESCENDANT=1")
		if descendant.Start() != nil {
			return true
		}
	}
	if _, err := fmt.Fprintln(life, greeting); err == nil {
		time.Sleep(time.Hour)
	}
	return true
}

// TestLockChaos kills sscli, its guard or the command, or deletes the lock. No process of the command may be alive when
// the lease expires.
func TestLockChaos(t *testing.T) {
	const ttl = 4 * time.Second
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
	victims, notDone := map[string]int{}, 0
	for round := range *chaosRounds {
		var said bytes.Buffer
		log := filepath.Join(t.TempDir(), "guard")
		cmd := &exec.Cmd{Path: self, Args: []string{"sscli", "lock", "run", "chaos", "--ttl", ttl.String(), "--", self}, Stderr: &said}
		cmd.Env = append(os.Environ(), "CHAOS_LIFE="+life.Addr().String(), "SSCLI_URL="+store.URL(), process.EnvGuardLog+"="+log)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		var lives []windows.Handle // handles of the command and its descendant
		var guard, child int
		for len(lives) < 2 {
			if err := life.(*net.TCPListener).SetDeadline(time.Now().Add(4 * ttl)); err != nil {
				t.Fatal(err)
			}
			c, err := life.Accept()
			if err != nil {
				break
			}
			defer c.Close()
			var parent, pid int
			if _, err := fmt.Fscanln(c, &parent, &pid); err != nil {
				break
			}
			h, err := windows.OpenProcess(windows.SYNCHRONIZE, false, uint32(pid))
			if err != nil {
				break // sscli has ended
			}
			lives = append(lives, h)
			if parent != 0 {
				guard, child = parent, pid
			}
		}
		if len(lives) < 2 {
			// On a busy machine the lock may be lost before the descendant has started.
			_ = cmd.Process.Kill() // it may have ended already
			_ = cmd.Wait()
			t.Logf("round %d is not done: %s", round, &said)
			if notDone++; notDone > *chaosRounds/5+2 {
				t.Fatal("too many rounds are not done: this machine is too busy")
			}
		}
		pids := map[string]int{"sscli": cmd.Process.Pid, "the guard": guard, "the command": child}
		victim := []string{"sscli", "the guard", "the command", "the lock"}[rand.IntN(4)]
		expired := time.Now().Add(ttl)
		if pid, isProcess := pids[victim]; len(lives) < 2 {
			victim = "nothing"
		} else if isProcess {
			p, err := os.FindProcess(pid)
			if err != nil {
				t.Fatal(err)
			}
			if err := p.Kill(); err != nil {
				t.Fatalf("round %d: kill %s: %v", round, victim, err)
			}
		} else {
			del := &exec.Cmd{Path: self, Args: []string{"sscli", "del", "chaos"}}
			del.Env = append(os.Environ(), "SSCLI_URL="+store.URL())
			if out, err := del.CombinedOutput(); err != nil {
				t.Fatalf("del: %v: %s", err, out)
			}
		}
		// Windows ends a process before it closes the process's connections, and Wine may do that late, so check the
		// process handles.
		for _, h := range lives {
			state, err := windows.WaitForSingleObject(h, uint32(max(0, time.Until(expired)).Milliseconds()))
			if err != nil || state != windows.WAIT_OBJECT_0 {
				text, _ := os.ReadFile(log)
				t.Errorf("round %d: killed %s at %s: a process of the command outlives the lease: %v, %v\n%s\n%s",
					round, victim, expired.Add(-ttl).Format("15:04:05.000"), state, err, &said, text)
			}
			_ = windows.CloseHandle(h)
		}
		_ = cmd.Wait() // any exit code
		victims[victim]++
	}
	t.Logf("%d rounds: %v", *chaosRounds, victims)
}
