package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"syscall"
	"testing"

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
