package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/emulator"
)

// fullPipe returns a pipe that has no room, as that to a reader who has stopped.
func fullPipe(t *testing.T) (reader, writer *os.File) {
	t.Helper()
	var fds [2]int
	if err := unix.Pipe2(fds[:], unix.O_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	if err := unix.SetNonblock(fds[1], true); err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{4096, 1} {
		for {
			if _, err := unix.Write(fds[1], make([]byte, n)); err != nil {
				break
			}
		}
	}
	if err := unix.SetNonblock(fds[1], false); err != nil {
		t.Fatal(err)
	}
	return os.NewFile(uintptr(fds[0]), "reader"), os.NewFile(uintptr(fds[1]), "writer")
}

// TestStalledLog: a reader of the log who stops holds up neither the clients of a server nor a command that holds a lock, and
// TERM ends both.
func TestStalledLog(t *testing.T) {
	for _, line := range []string{
		"serve -v --listen 127.0.0.1:0", "serve -v --log-format json --listen 127.0.0.1:0", "serve -v --attach --standby",
		"gateway -v --listen 127.0.0.1:0", "check k --listen 127.0.0.1:0 -v",
		"lock run mine -v -- sleep 1000", "lock hold mine -v", "lock acquire busy --holder me", "apply SOURCE --every 10ms",
		"watch k",
	} {
		t.Run(line, func(t *testing.T) {
			t.Parallel()
			store := emulator.Start(t)
			for key, value := range map[string]string{"k": "v", "busy": "other"} {
				if _, err := store.Set(key, value); err != nil {
					t.Fatal(err)
				}
			}
			source := t.TempDir()
			if err := os.WriteFile(source+"/new", []byte("1"), 0o600); err != nil {
				t.Fatal(err)
			}
			stalled, log := fullPipe(t)
			defer stalled.Close()
			output, stdout, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer output.Close()
			args := strings.Fields(strings.ReplaceAll(line, "SOURCE", source))
			p, err := os.StartProcess(testProgram(t), append([]string{"sscli"}, args...), &os.ProcAttr{
				Env: append(os.Environ(), "GORACE=atexit_sleep_ms=0", "SSCLI_URL="+store.URL()), Files: []*os.File{nil, stdout, log},
			})
			log.Close()
			stdout.Close()
			if err != nil {
				t.Fatal(err)
			}
			lines := bufio.NewReader(output)
			switch words := strings.Fields(line); {
			case words[0] == "serve" && !strings.Contains(line, "--attach"):
				url, err := lines.ReadString('\n')
				if err != nil {
					t.Fatal(err)
				}
				address := regexp.MustCompile(`127\.0\.0\.1:\d+`).FindString(url)
				s, err := client.Dial(t.Context(), client.Options{Address: address})
				if err != nil {
					t.Fatalf("%q: %v", url, err)
				}
				defer s.Close()
				for i := range 200 { // one of which may wait
					if _, err := s.Set(t.Context(), "k", fmt.Append(nil, i)); err != nil {
						t.Fatal(err)
					}
				}
			case words[0] == "gateway" || words[0] == "check":
				if _, err := lines.ReadString('\n'); words[0] != "check" && err != nil {
					t.Fatal(err)
				}
			case words[0] == "watch":
				if _, err := lines.ReadString('\n'); err != nil {
					t.Fatal(err)
				}
			default:
				if err := store.Await(t.Context(), func(st emulator.State) bool { return st.Replies > 0 }); err != nil {
					t.Fatal(err)
				}
			}
			if err := p.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			go func() { _, _ = io.Copy(io.Discard, lines); <-ctx.Done() }()
			state, err := p.Wait()
			if status := state.Sys().(syscall.WaitStatus); err != nil || !(status.Signaled() && status.Signal() == syscall.SIGTERM || status.ExitStatus() == 143) {
				t.Errorf("ended with %v, %v", state, err)
			}
			if value, held := store.Get("mine"); held {
				t.Errorf("the lock is still held by %q", value.Value)
			}
		})
	}
}

// TestDroppedLog: once the reader of the log is back, the log says how many lines were dropped, in its own form.
func TestDroppedLog(t *testing.T) {
	stalled, log := fullPipe(t)
	defer stalled.Close()
	output, stdout, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer output.Close()
	p, err := os.StartProcess(testProgram(t), []string{"sscli", "serve", "--log-format", "json", "--listen", "127.0.0.1:0"}, &os.ProcAttr{
		Env: append(os.Environ(), "GORACE=atexit_sleep_ms=0"), Files: []*os.File{nil, stdout, log},
	})
	log.Close()
	stdout.Close()
	if err != nil {
		t.Fatal(err)
	}
	url, err := bufio.NewReader(output).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	s, err := client.Dial(t.Context(), client.Options{Address: regexp.MustCompile(`127\.0\.0\.1:\d+`).FindString(url)})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	const value = 64 << 10
	for range 6 << 20 / value * 8 { // more lines than may wait, although each line shortens the value
		if _, err := s.Set(t.Context(), strings.Repeat("k", 8<<10), make([]byte, value)); err != nil {
			t.Fatal(err)
		}
	}
	lines := bufio.NewReader(stalled)
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(line, "of the log dropped") {
			if !regexp.MustCompile(`^\{"op":"warning","message":"\d+ lines of the log dropped, because nobody read the log for a while"\}\n$`).MatchString(line) {
				t.Errorf("%q", line)
			}
			break
		}
	}
	if err := p.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	go io.Copy(io.Discard, lines)
	if _, err := p.Wait(); err != nil {
		t.Fatal(err)
	}
}

// blockedIn matches the functions of the kernel in which a thread waits whose output nobody reads.
var blockedIn = regexp.MustCompile(`pipe_write|n_tty_write`)

// isBlocked reports whether a thread of a process, or of one of its children, waits for a reader of its output.
func isBlocked(pid int) bool {
	threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*", pid))
	return slices.ContainsFunc(threads, func(thread string) bool {
		where, err := os.ReadFile(thread + "/wchan")
		if err == nil && blockedIn.Match(where) {
			return true
		}
		children, _ := os.ReadFile(thread + "/children")
		return slices.ContainsFunc(strings.Fields(string(children)), func(child string) bool {
			n, err := strconv.Atoi(child)
			return err == nil && isBlocked(n)
		})
	})
}

// termWhenBlocked sends TERM to a process when nobody reads its output, and waits until it has ended. It returns
// false if the process ended before.
func termWhenBlocked(t *testing.T, line string, p *os.Process) (termed bool) {
	t.Helper()
	ended := make(chan error, 1)
	go func() {
		_, err := p.Wait()
		ended <- err
	}()
	hangs := time.After(time.Minute)
	for tick := time.Tick(2 * time.Millisecond); ; {
		select {
		case <-hangs:
			t.Errorf("%q does not end; TERM was sent: %v", line, termed)
			_ = p.Kill()
		case err := <-ended:
			if err != nil {
				t.Error(err)
			}
			return termed
		case <-tick:
			if !termed && isBlocked(p.Pid) {
				termed = true
				if err := p.Signal(syscall.SIGTERM); err != nil {
					t.Error(err)
				}
			}
		}
	}
}

// TestStalledOutput: TERM ends every command whose output nobody reads, and no lock is left behind.
func TestStalledOutput(t *testing.T) {
	if testing.Short() {
		t.Skip("starts hundreds of processes")
	}
	type stalled struct {
		networkCase
		line           string
		stdout, stderr bool // nobody reads it
	}
	var lines []stalled
	add := func(path string, c networkCase, ends bool) {
		line := strings.TrimSpace(path + " " + c.args)
		if slices.Contains([]string{"top", "forward"}, line) {
			return
		}
		lines = append(lines, stalled{c, line, true, false}, stalled{c, line, true, true})
		if ends && !c.own { // a child of serve would inherit the full standard error
			lines = append(lines, stalled{c, line + " -v", false, true}, stalled{c, line + " --trace", false, true})
		}
	}
	for path, cases := range networkCases() {
		for _, c := range cases {
			add(path, c, true)
		}
	}
	many := strings.Repeat("get many\n", 1000)
	for _, line := range []string{
		"watch many", "watch --match m*", "watch many -o json --trace", "watch many -- yes", "lock trace many", "batch input", "batch input --inflight 16", "batch input --echo", "batch input --keep-going -o json",
		"bench -n 100", "bench -n 100 -o json", "ping --interval 1ms -n 1000000", "get many many many", "export m*", "lock list m* --observe 50ms", "check many --listen 127.0.0.1:0",
		"lock hold l", "lock acquire l --ttl 1h", "lock run l -- yes", "apply input --every 10ms", "dataset show many -o csv", "shell", "serve", "gateway --listen 127.0.0.1:0", "scan --long -o json", "get many --trace", "watch many --trace", "batch input --trace", "help --all", "man pages",
	} {
		add(line, networkCase{stdin: many}, false)
	}
	store := emulator.Start(t)
	if _, err := store.Set("many", strings.Repeat(`{"a":1}`+"\n", 30_000)); err != nil {
		t.Fatal(err)
	}
	for _, lock := range []string{"held", "taken"} { // lock hold would hold a free one, which lock break makes of "taken"
		if _, err := store.Set(lock, "by another"); err != nil {
			t.Fatal(err)
		}
	}
	blocked := make(map[string]bool)
	var mu sync.Mutex
	var running sync.WaitGroup
	room := make(chan struct{}, 32)
	for i, line := range lines {
		room <- struct{}{}
		running.Go(func() {
			defer func() { <-room }()
			dir := t.TempDir()
			for name, text := range map[string]string{"input": line.stdin, "stdin": line.stdin} {
				if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
					t.Error(err)
				}
			}
			stdin, err := os.Open(filepath.Join(dir, "stdin"))
			if err != nil {
				t.Error(err)
				return
			}
			defer stdin.Close()
			null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
			if err != nil {
				t.Error(err)
				return
			}
			defer null.Close()
			reader, full := fullPipe(t)
			defer reader.Close()
			files := []*os.File{stdin, null, null}
			if line.stdout {
				files[1] = full
			}
			if line.stderr {
				files[2] = full
			}
			lock := fmt.Sprint("l", i)
			args := strings.Fields(strings.ReplaceAll(line.line, " l", " "+lock))
			p, err := os.StartProcess(testProgram(t), append([]string{"sscli"}, args...), &os.ProcAttr{
				Dir: dir, Env: append(os.Environ(), "GORACE=atexit_sleep_ms=0", "EDITOR=true", "HOME="+dir, "XDG_CONFIG_HOME="+dir, "SSCLI_URL="+store.URL()), Files: files,
			})
			full.Close()
			if err != nil {
				t.Error(err)
				return
			}
			if termWhenBlocked(t, line.line, p) {
				mu.Lock()
				blocked[strings.Fields(line.line + " -")[0]] = true
				mu.Unlock()
			}
			if value, held := store.Get(lock); held && !strings.HasPrefix(line.line, "lock acquire") {
				t.Errorf("%q: the lock is still held by %q", line.line, value.Value)
			}
		})
	}
	running.Wait()
	for _, command := range []string{"watch", "batch", "bench", "lock", "get", "scan", "export", "ping", "serve", "gateway", "check", "apply", "doctor", "help", "completion", "set"} {
		if !blocked[command] {
			t.Errorf("%s did not wait for its reader", command)
		}
	}
}
