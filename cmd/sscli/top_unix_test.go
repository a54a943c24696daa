//go:build unix

package main

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sscli/sscli/emulator"
	"github.com/sscli/sscli/internal/testkit/freeport"
)

func keep(t *testing.T, s *emulator.Server, pairs ...string) {
	t.Helper()
	for i := 0; i < len(pairs); i += 2 {
		if _, err := s.Set(pairs[i], pairs[i+1]); err != nil {
			t.Fatal(err)
		}
	}
}

// looksAt starts top on a terminal of the given size, and waits until it has drawn.
func looksAt(t *testing.T, server *emulator.Server, width, height uint16, args ...string) *user {
	t.Helper()
	u := seat{server: server, args: append([]string{"top"}, args...), width: width, height: height}.start(t)
	u.seesWithin("q quit")
	if !u.screen.Alternate() {
		t.Error("not on the alternate screen")
	}
	return u
}

// restored fails the test unless the terminal modes are restored, and returns what is on the screen.
func (u *user) restored() string {
	u.t.Helper()
	if !u.screen.Plain() {
		u.t.Error("the screen is not as it was")
	}
	return u.screen.String()
}

// seesRow waits for a row that contains the parts in this order.
func (u *user) seesRow(parts ...string) {
	u.t.Helper()
	u.await(fmt.Sprintf("a row with %q", parts), func(text string) bool {
		for row := range strings.Lines(text) {
			ok := true
			for _, p := range parts {
				_, row, ok = strings.Cut(row, p)
				if !ok {
					break
				}
			}
			if ok {
				return true
			}
		}
		return false
	})
}

func TestTopFollows(t *testing.T) {
	t.Parallel()
	server := emulator.Start(t)
	keep(t, server, "setpoint", "21.5", "thermostat/1", `{"mode":"auto"}`)
	for _, width := range []uint16{40, 80, 120} {
		t.Run(fmt.Sprint(width), func(t *testing.T) {
			u := looksAt(t, server, width, 12, "--every", "100ms")
			keep(t, server, "setpoint", "21.5")
			u.seesRow("setpoint", "21.5")
			u.seesRow("thermostat/1", `{"mode"`)
			keep(t, server, "setpoint", "22")
			u.seesRow("setpoint", "22", "0.")
			name := fmt.Sprintf("new%d", width)
			keep(t, server, name, "here")
			u.seesRow(name, "here") // found by a scan
			server.Do(emulator.NewRequest("", []byte("*2\r\n$3\r\nDEL\r\n$"+fmt.Sprint(len(name))+"\r\n"+name+"\r\n")))
			u.seesRow(name, "(deleted)")
			if rows := u.screen.Rows(); len(rows) > 12 {
				t.Errorf("%d rows", len(rows))
			}
			u.types("q")
			if code := u.leaves(); code != 0 {
				t.Errorf("exit code %d", code)
			}
			if text := u.restored(); text != "" {
				t.Errorf("left behind: %q", text)
			}
		})
	}
}

func TestTopOpens(t *testing.T) {
	t.Parallel()
	server := emulator.Start(t)
	keep(t, server, "a", "1", "config", `{"mode":"auto","limit":7}`)
	u := looksAt(t, server, 80, 40)
	u.seesRow("config", "auto")
	u.types("/conf\r")
	u.await("only one key", func(text string) bool { return !strings.Contains(text, "\na ") && strings.Contains(text, "config") })
	u.types("\r")
	u.seesWithin("\n  \"mode\": \"auto\",\n")
	keep(t, server, "config", `{"mode":"manual"}`)
	u.seesWithin("\n  \"mode\": \"manual\"\n")
	u.seesRow("set", "manual")
	u.seesRow("initial", "auto")
	u.seesRow(`key "config": NOTIFY SET`)
	u.seesRow("-> PUBLISH", "KEYNOTIFY config")
	u.types("?")
	u.seesWithin("press any key to go back")
	u.types("xq")
	u.seesWithin("filter: conf")
	u.types("\x1b")
	u.seesRow("a ", "1")
	u.types("\x03")
	if code := u.leaves(); code != 130 && code != -1 {
		t.Errorf("exit code %d", code)
	}
	u.restored()
}

func TestTopResizes(t *testing.T) {
	t.Parallel()
	server := emulator.Start(t)
	for i := range 40 {
		keep(t, server, fmt.Sprintf("key%02d", i), strings.Repeat("v", 200))
	}
	u := looksAt(t, server, 80, 24)
	u.seesWithin("LEASE")
	for _, size := range [][2]int{{40, 10}, {120, 30}, {21, 5}, {10, 2}, {80, 24}} {
		u.resizes(size[0], size[1])
		u.await(fmt.Sprintf("a screen of %dx%d", size[0], size[1]), func(string) bool {
			rows := u.screen.Rows()
			if size[0] == 10 {
				return len(rows) == 1 && rows[0] == "too small"
			}
			last := rows[len(rows)-1]
			return len(rows) == size[1] && strings.HasPrefix(last, "q quit") && strings.HasPrefix(rows[1], "KEYv") &&
				len([]rune(rows[len(rows)-2])) > size[0]/2
		})
	}
	u.types("q")
	u.leaves()
	u.restored()
}

// TestTopBrokerRestarts: a broker goes away and comes back with another value.
func TestTopBrokerRestarts(t *testing.T) {
	t.Parallel()
	addr := freeport.Address(t)
	server := listen(t, addr)
	keep(t, server, "k", "old")
	u := looksAt(t, server, 80, 10, "k", "k*")
	u.seesRow("k", "old")
	if err := server.Close(); err != nil {
		t.Fatal(err)
	}
	u.seesWithin("away since")
	u.seesWithin("connecting again: connect to") // not why the connection was lost
	u.seesRow("k", "old")
	server = listen(t, addr)
	defer server.Close()
	keep(t, server, "k", "new", "k2", "fresh")
	u.seesRow("k", "new")
	u.await("no word of being away", func(text string) bool { return !strings.Contains(text, "away") })
	u.seesRow("k2", "fresh")
	u.types("q")
	if code := u.leaves(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	u.restored()
}

// TestTopEndsBySignal: a signal that ends top restores the terminal.
func TestTopEndsBySignal(t *testing.T) {
	t.Parallel()
	server := emulator.Start(t)
	keep(t, server, "k", "v")
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP} {
		u := looksAt(t, server, 80, 10)
		u.seesRow("k", "v")
		if err := u.cmd.Process.Signal(sig); err != nil {
			t.Fatal(err)
		}
		u.await("the screen as it was", func(string) bool { return u.screen.Plain() })
		u.leaves()
		if status := u.cmd.ProcessState.Sys().(syscall.WaitStatus); status.Signal() != sig {
			t.Errorf("%v: %v", sig, u.cmd.ProcessState)
		}
	}
}

// TestTopTakenOver: if the broker permanently refuses the client, top ends, and the reason can be read.
func TestTopTakenOver(t *testing.T) {
	t.Parallel()
	server := emulator.Start(t)
	keep(t, server, "k", "v")
	u := looksAt(t, server, 80, 10, "-i", "me")
	u.seesRow("k", "v")
	other := seat{server: server, args: []string{"watch", "k", "-i", "me"}}.start(t)
	other.seesWithin("initial")
	u.await("the screen as it was", func(string) bool { return u.screen.Plain() })
	if code := u.leaves(); code != 3 {
		t.Errorf("exit code %d", code)
	}
	if text := u.restored(); !strings.Contains(text, "taken over") {
		t.Errorf("it says %q", text)
	}
}

func TestTopWithoutScan(t *testing.T) {
	t.Parallel()
	server := emulator.Start(t, emulator.Options{Variants: emulator.Variants{NoScan: true}})
	keep(t, server, "k", "v")
	u := looksAt(t, server, 60, 10, "k", "gone", "x*")
	u.seesRow("k", "v")
	u.seesRow("gone", "(missing)")
	u.seesWithin("no SCAN here: only named keys are shown")
	u.types("q")
	u.leaves()
	u.restored()
	u = seat{server: server, args: []string{"top"}}.start(t)
	if code := u.leaves(); code != 5 {
		t.Errorf("exit code %d", code)
	}
	if text := u.restored(); !strings.Contains(text, "SCAN") {
		t.Errorf("it says %q", text)
	}
}

// TestTopRefused: a key that the client may not read does not hide the others.
func TestTopRefused(t *testing.T) {
	t.Parallel()
	server := emulator.Start(t, emulator.Options{Policy: emulator.PolicyFunc(func(a emulator.Access) bool { return a.On != "secret" })})
	keep(t, server, "a", "1", "b", "2")
	u := looksAt(t, server, 80, 10, "a", "secret", "b")
	u.seesRow("a", "1")
	u.seesRow("b", "2")
	u.seesRow("secret", "not authorized")
	u.types("q")
	u.leaves()
	u.restored()
}

// TestTopStops: Ctrl-Z and SIGTSTP return the terminal to the shell, and fg continues top, even after changes.
func TestTopStops(t *testing.T) {
	t.Parallel()
	server := emulator.Start(t)
	keep(t, server, "k", "old")
	u := seat{server: server, bash: true, prompt: "$ "}.start(t)
	u.sees("$")
	u.types("sscli top\n")
	for i, stop := range []func(){
		func() { u.types("\x1a") },
		func() { u.types("\x1a") },
		func() {
			// top is the leader of the terminal's foreground group.
			conn, err := u.pty.SyscallConn()
			if err != nil {
				t.Fatal(err)
			}
			if err := conn.Control(func(fd uintptr) {
				group, err := unix.IoctlGetInt(int(fd), unix.TIOCGPGRP)
				if err != nil || unix.Kill(group, unix.SIGTSTP) != nil {
					t.Errorf("group %d: %v", group, err)
				}
			}); err != nil {
				t.Fatal(err)
			}
		},
	} {
		u.seesRow("KEYv", "VALUE")
		u.seesRow("k", "old")
		stop()
		u.await("the shell", func(text string) bool {
			return u.screen.Plain() && strings.Count(text, "Stopped") == i+1 && strings.HasSuffix(text, "\n$")
		})
		u.types("stty -a | grep -o ' icanon'; echo an\"\"swer\n")
		u.await("an answer", func(text string) bool { return strings.HasSuffix(text, "\n icanon\nanswer\n$") })
		u.types("fg\n")
		u.await("the table", func(string) bool { return u.screen.Alternate() })
	}
	keep(t, server, "k", "new")
	u.seesRow("k", "new")
	u.types("q")
	u.await("the shell", func(text string) bool { return u.screen.Plain() && strings.HasSuffix(text, "\n$") })
	u.types("exit\n")
	u.leaves()
}

// TestTopLimit: --limit counts the keys that a scan found, not the operands.
func TestTopLimit(t *testing.T) {
	t.Parallel()
	server := emulator.Start(t)
	keep(t, server, "a", "1", "b", "2", "found1", "3", "found2", "4", "found3", "5")
	u := looksAt(t, server, 120, 12, "a", "b", "found*", "--limit", "2")
	u.seesRow("found1", "3")
	u.seesRow("found2", "4")
	u.seesWithin("1 more key not shown")
	if strings.Contains(u.screen.String(), "found3") {
		t.Errorf("too many keys:\n%s", u.screen)
	}
	u.types("q")
	u.leaves()
}

// TestTopInShell: in the shell of sscli, top leaves the line editor as it was.
func TestTopInShell(t *testing.T) {
	t.Parallel()
	server := emulator.Start(t)
	keep(t, server, "k", "v")
	u := sitDown(t, server)
	u.types("top\r")
	u.seesWithin("q quit")
	u.seesRow("k", "v")
	u.types("q")
	u.await("the shell", func(text string) bool { return u.screen.Plain() && lastLine(text) == strings.TrimRight(u.prompt, " ") })
	if out := u.runs("get k --lines -o raw"); !strings.HasPrefix(out, "k ") || !strings.HasSuffix(out, " v") {
		t.Errorf("after top: %q", out)
	}
	u.types("\x04")
	u.leaves()
}

// TestTopDrawsSeldom: the screen is drawn at most ten times a second, however many changes come.
func TestTopDrawsSeldom(t *testing.T) {
	t.Parallel()
	server := emulator.Start(t)
	keep(t, server, "k", "0")
	u := looksAt(t, server, 80, 10)
	u.seesRow("k", "0")
	writes := make(map[string]bool)
	begun := time.Now()
	for i := range 5000 {
		keep(t, server, "k", fmt.Sprintf("v%d", i))
		for row := range strings.Lines(u.screen.String()) {
			if strings.HasPrefix(row, "k ") {
				writes[row] = true
			}
		}
	}
	u.seesRow("k", "v4999")
	if most := int(time.Since(begun)/(100*time.Millisecond)) + 3; len(writes) > most {
		t.Errorf("%d screens in %s", len(writes), time.Since(begun))
	}
	u.types("q")
	u.leaves()
	u.restored()
}
