//go:build unix

package process

import (
	"bufio"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sscli/sscli/cmd/sscli/internal/signals"
)

// guarded runs a shell script under a guard. term and kill are its limits, counted from now.
func guarded(t *testing.T, script string, term, kill time.Duration, o GuardOptions) (End, error) {
	t.Helper()
	o.Args = []string{"sh", "-c", script}
	g, err := NewGuarded(o)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		g.Close()
	}()
	g.Limit(time.Now().Add(term), time.Now().Add(kill))
	return g.Run(append(os.Environ(), "X=y\n\xff"))
}

func TestGuardedExitCodes(t *testing.T) {
	for script, want := range map[string]int{
		"exit 0": 0, "exit 3": 3, "exit 255": 255, "kill -TERM $$": 143, "kill -KILL $$": 137,
		`test "$X" = "$(printf 'y\n\377')" || exit 9`: 0,
	} {
		end, err := guarded(t, script, time.Hour, time.Hour, GuardOptions{})
		if want := (End{Code: want}); end != want || err != nil {
			t.Errorf("%s: %+v, %v, want %+v", script, end, err, want)
		}
	}
}

// useDescriptors runs a guarded command that writes to the descriptors that this process inherited.
func useDescriptors() (int, error) {
	g, err := NewGuarded(GuardOptions{Args: []string{"sh", "-c", "echo three >&3; echo four >&4; echo six >&6; { echo five >&5; } 2>/dev/null; { echo seven >&7; } 2>/dev/null; exit 0"}})
	if err != nil {
		return 0, err
	}
	defer g.Close()
	g.Limit(time.Now().Add(time.Hour), time.Now().Add(time.Hour))
	end, err := g.Run(os.Environ())
	return end.Code, err
}

// TestGuardedDescriptors: the command has the descriptors that sscli was started with, and no others.
func TestGuardedDescriptors(t *testing.T) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "PROCESS_TEST_ROLE=descriptors")
	cmd.Stderr = os.Stderr
	want := map[int]string{3: "three\n", 4: "four\n", 6: "six\n"}
	read := make(map[int]*os.File)
	for fd := 3; fd <= 6; fd++ {
		if want[fd] == "" {
			cmd.ExtraFiles = append(cmd.ExtraFiles, nil)
			continue
		}
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		defer w.Close()
		read[fd], cmd.ExtraFiles = r, append(cmd.ExtraFiles, w)
	}
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	for fd, r := range read {
		_ = cmd.ExtraFiles[fd-3].Close()
		if got, err := io.ReadAll(r); string(got) != want[fd] || err != nil {
			t.Errorf("descriptor %d: %q, %v, want %q", fd, got, err, want[fd])
		}
	}
}

func TestGuardedStartErrors(t *testing.T) {
	dir := t.TempDir()
	program := filepath.Join(dir, "program")
	if err := os.WriteFile(program, []byte("no program"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]int{"no-such-program-anywhere": CodeNotFound, dir: CodeNotExecutable} {
		_, err := NewGuarded(GuardOptions{Args: []string{name}})
		if e, ok := errors.AsType[*StartError](err); !ok || e.Code != want || e.Name != name {
			t.Errorf("%q: %v, want a *StartError with code %d", name, err, want)
		}
	}
	g, err := NewGuarded(GuardOptions{Args: []string{program}})
	if err != nil {
		t.Fatal(err)
	}
	g.Limit(time.Now().Add(time.Hour), time.Now().Add(time.Hour))
	_, err = g.Run(nil)
	if e, ok := errors.AsType[*StartError](err); !ok || e.Code != CodeNotExecutable {
		t.Errorf("%v, want a *StartError with code %d", err, CodeNotExecutable)
	}
	g.Close()
}

// TestGuardedLate: a command is not started after its deadline.
func TestGuardedLate(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	_, err := guarded(t, "echo >"+file, 0, time.Hour, GuardOptions{})
	if !errors.Is(err, ErrLate) {
		t.Errorf("%v, want ErrLate", err)
	}
	if _, err := os.Stat(file); err == nil {
		t.Error("the command ran")
	}
}

// TestGuardedInterrupted: if a signal arrives before the start, the command is not started.
func TestGuardedInterrupted(t *testing.T) {
	g, err := NewGuarded(GuardOptions{Args: []string{"false"}})
	if err != nil {
		t.Fatal(err)
	}
	g.signals <- syscall.SIGTERM
	g.Limit(time.Now().Add(time.Hour), time.Now().Add(time.Hour))
	_, err = g.Run(nil)
	if e, ok := errors.AsType[*signals.Interrupted](err); !ok || e.Signal != syscall.SIGTERM {
		t.Errorf("%v, want an *signals.Interrupted", err)
	}
	g.Close()
}

func TestGuardedLimit(t *testing.T) {
	// limited retries with longer limits until the machine is fast enough to start the command.
	limited := func(script string, grace time.Duration, o GuardOptions) (end End, err error) {
		for term := 50 * time.Millisecond; term < time.Minute; term *= 2 {
			if end, err = guarded(t, script, term, term+grace, o); !errors.Is(err, ErrLate) && end.Code != 143 {
				break
			}
		}
		return end, err
	}
	end, err := limited(`trap "exit 7" TERM; while :; do sleep 0.01; done`, time.Hour, GuardOptions{})
	if want := (End{Code: 7, Killed: true}); end != want || err != nil {
		t.Errorf("TERM: %+v, %v, want %+v", end, err, want)
	}
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	end, err = limited(`trap "" TERM; while :; do sleep 0.01; done`, 50*time.Millisecond, GuardOptions{Secret: secret})
	if want := (End{Code: 137, Killed: true}); end != want || err != nil {
		t.Errorf("KILL: %+v, %v, want %+v", end, err, want)
	}
	if _, err := os.Stat(secret); err == nil {
		t.Error("the secret of a command that was killed is still there")
	}
}

func TestGuardedStop(t *testing.T) {
	for _, grace := range []time.Duration{0, 30 * time.Millisecond} {
		g, err := NewGuarded(GuardOptions{Args: []string{"sh", "-c", `trap "" TERM; while :; do sleep 0.01; done`}, Grace: grace})
		if err != nil {
			t.Fatal(err)
		}
		g.Limit(time.Now().Add(time.Hour), time.Now().Add(time.Hour))
		go func() {
			g.Stop(time.Hour)
			g.Stop(time.Hour)
		}()
		end, err := g.Run(os.Environ())
		if !end.Killed && !errors.Is(err, ErrLate) {
			t.Errorf("grace %v: %+v, %v, want it killed", grace, end, err)
		}
		g.Close()
	}
}

// TestGuardSlow: a guard that is slow sees the end of a command that sscli killed before it reads Stop, and takes the processes
// that are still dying for those of a command that ended by itself.
func TestGuardSlow(t *testing.T) {
	for _, c := range []struct {
		killSent  bool
		end, want End
	}{
		{true, End{Code: codeKilled, Left: true}, End{Code: codeKilled, Killed: true}},
		{true, End{Code: 3, Left: true}, End{Code: 3, Killed: true, Left: true}}, // what it left behind outlived the deadline
		{false, End{Code: codeKilled, Left: true}, End{Code: codeKilled, Left: true}},
	} {
		g := &Guarded{killSent: c.killSent}
		if end, over, err := g.handleEvent(event{Ended: &c.end}); end != c.want || !over || err != nil {
			t.Errorf("%+v: %+v, %v, %v, want %+v", c.end, end, over, err, c.want)
		}
	}
}

// A life is a FIFO that a process of the test keeps open for writing while it lives.
type life struct {
	path string
	f    *os.File
	text *bufio.Reader
}

func newLife(t *testing.T) *life {
	t.Helper()
	path := filepath.Join(t.TempDir(), "life")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	// Open the FIFO for reading without waiting for a writer.
	fd, err := syscall.Open(path, syscall.O_RDONLY|syscall.O_NONBLOCK|syscall.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	f := os.NewFile(uintptr(fd), path)
	t.Cleanup(func() { f.Close() })
	return &life{path, f, bufio.NewReader(f)}
}

// line reads the next line from the FIFO.
func (l *life) line(t *testing.T) string {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	if err := l.f.SetReadDeadline(deadline); err != nil {
		t.Fatal(err)
	}
	for {
		line, err := l.text.ReadString('\n')
		if err == nil {
			return strings.TrimSpace(line)
		}
		if line != "" || !errors.Is(err, io.EOF) || time.Now().After(deadline) {
			t.Fatalf("%q, %v, want a line", line, err)
		}
		time.Sleep(time.Millisecond) // nobody has opened the FIFO yet
	}
}

// end waits until no process has the FIFO open.
func (l *life) end(t *testing.T) {
	t.Helper()
	if err := l.f.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, l.text); err != nil {
		t.Fatalf("something is alive: %v", err)
	}
}

// TestGuardedLeft: processes that a command leaves behind in its session are ended before Run returns, whatever their
// process group. A daemon in another session is left alone.
func TestGuardedLeft(t *testing.T) {
	for name, c := range map[string]struct {
		trap  string
		grace time.Duration
	}{"up": {"", time.Hour}, "deaf": {`trap "" TERM;`, 20 * time.Millisecond}} { // a process that ignores TERM is killed after the grace
		l := newLife(t)
		there := filepath.Join(t.TempDir(), "there")
		if err := syscall.Mkfifo(there, 0o600); err != nil {
			t.Fatal(err)
		}
		end, err := guarded(t, `exec 9>`+l.path+`; (`+c.trap+` echo up >&9; echo >`+there+`; while :; do sleep 0.01; done) & read -r _ <`+there+`; exit 3`,
			time.Hour, time.Hour, GuardOptions{Grace: c.grace})
		if end.Code != 3 || end.Killed || !end.Left || err != nil {
			t.Errorf("%s: %+v, %v, want code 3 and something left", name, end, err)
		}
		l.line(t)
		l.end(t)
	}
}

// TestGuardedEndTogether: if a child ends at the same moment as the command, it was not left behind, and the command
// was not killed.
func TestGuardedEndTogether(t *testing.T) {
	for range 60 {
		end, err := guarded(t, "for i in 1 2 3 4 5 6 7 8; do true & done; exit 3", time.Hour, time.Hour, GuardOptions{Grace: time.Hour})
		if end.Code != 3 || end.Killed || err != nil {
			t.Fatalf("%+v, %v", end, err)
		}
	}
}

func TestGuardedDaemonStays(t *testing.T) {
	if _, err := exec.LookPath("setsid"); err != nil {
		t.Skip("no setsid")
	}
	l := newLife(t)
	there := filepath.Join(t.TempDir(), "there")
	if err := syscall.Mkfifo(there, 0o600); err != nil {
		t.Fatal(err)
	}
	end, err := guarded(t, `exec 9>`+l.path+`; setsid sh -c 'echo $$ >&9; echo >`+there+`; exec sleep 1000' & read -r _ <`+there, time.Hour, time.Hour, GuardOptions{})
	if want := (End{}); end != want || err != nil {
		t.Errorf("%+v, %v, want %+v", end, err, want)
	}
	pid, err := strconv.Atoi(l.line(t))
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Errorf("the daemon: %v", err)
	}
	l.end(t)
}

// families are scripts with process trees that must not outlive their limit. Each script writes a line when all its
// processes are running.
var families = map[string]string{
	"alone":      `exec 9>$LIFE; echo up >&9; exec sleep 1000`,
	"deaf":       `exec 9>$LIFE; trap "" TERM HUP INT; echo up >&9; while :; do sleep 0.01; done`,
	"children":   `exec 9>$LIFE; (trap "" TERM HUP; echo up >&9; while :; do sleep 0.01; done) & wait`,
	"stopped":    `exec 9>$LIFE; echo up >&9; kill -STOP $$`,
	"jobs":       `exec 9>$LIFE; set -m; sh -c 'trap "" TERM; echo up >&9; while :; do sleep 0.01; done' & wait`, // jobs have their own process groups, as in an interactive shell
	"descendant": `exec 9>$LIFE; (setsid sh -c 'trap "" TERM; echo up >&9; while :; do sleep 0.01; done' &); sleep 1000`,
}

// wrap is the wrapper of TestWrapper, the parent of the guard.
func wrap() (int, error) {
	g, err := NewGuarded(GuardOptions{Args: []string{"sh", "-c", os.Getenv("PROCESS_TEST_SCRIPT")}, Secret: os.Getenv("PROCESS_TEST_SECRET")})
	if err != nil {
		return 0, err
	}
	hour := time.Now().Add(time.Hour)
	g.Limit(hour, hour)
	go func() { // the test says that the family is complete
		if _, err := os.ReadFile(os.Getenv("PROCESS_TEST_LIMITED")); err != nil {
			return // the wrapper is killed, not stopped
		}
		term := time.Now().Add(200 * time.Millisecond)
		g.Limit(term, term.Add(50*time.Millisecond))
		os.Stdout.WriteString("limited\n")
	}()
	env := append(os.Environ(), "PROCESS_TEST_ROLE=none")
	end, err := g.Run(env)
	g.Close()
	return end.Code, err
}

// TestWrapper kills and stops the process between the test and the guard.
func TestWrapper(t *testing.T) {
	for name, family := range families {
		if name == "descendant" || name == "jobs" {
			if _, err := os.Stat("/proc/self/stat"); err != nil {
				continue // only on Linux can these be found
			}
		}
		for what, sig := range map[string]syscall.Signal{"killed": syscall.SIGKILL, "stopped": syscall.SIGSTOP} {
			t.Run(name+"/"+what, func(t *testing.T) {
				l := newLife(t)
				secret := filepath.Join(t.TempDir(), "dir", "secret")
				if err := os.Mkdir(filepath.Dir(secret), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(secret, []byte("x"), 0o600); err != nil {
					t.Fatal(err)
				}
				cmd := exec.Command(os.Args[0])
				cmd.Env = append(os.Environ(), "PROCESS_TEST_ROLE=wrapper", "PROCESS_TEST_SCRIPT="+family, "LIFE="+l.path,
					"PROCESS_TEST_SECRET="+secret, "GORACE=atexit_sleep_ms=0")
				said, err := cmd.StdoutPipe()
				if err != nil {
					t.Fatal(err)
				}
				limited := filepath.Join(t.TempDir(), "limited")
				if sig == syscall.SIGSTOP {
					if err := syscall.Mkfifo(limited, 0o600); err != nil {
						t.Fatal(err)
					}
				}
				cmd.Env = append(cmd.Env, "PROCESS_TEST_LIMITED="+limited)
				if err := cmd.Start(); err != nil {
					t.Fatal(err)
				}
				if got := l.line(t); got != "up" {
					t.Fatalf("%q, want up", got)
				}
				if sig == syscall.SIGSTOP {
					if err := os.WriteFile(limited, nil, 0); err != nil {
						t.Fatal(err)
					}
					if line, err := bufio.NewReader(said).ReadString('\n'); line != "limited\n" {
						t.Fatalf("%q, %v, want limited", line, err)
					}
				}
				if err := cmd.Process.Signal(sig); err != nil {
					t.Fatal(err)
				}
				l.end(t)
				if sig == syscall.SIGSTOP {
					isGone(t, secret)
					if err := cmd.Process.Signal(syscall.SIGCONT); err != nil {
						t.Fatal(err)
					}
					if err := cmd.Wait(); cmd.ProcessState.ExitCode() < 128 {
						t.Errorf("%v, want that the command was killed", err)
					}
					return
				}
				_ = cmd.Wait() // the wrapper was killed
				isGone(t, filepath.Dir(secret))
			})
		}
	}
}

// isGone waits until a file is removed.
func isGone(t *testing.T, path string) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s is still there", path)
		}
	}
}

// TestGuardDies: if the guard dies, the command is killed.
func TestGuardDies(t *testing.T) {
	l := newLife(t)
	g, err := NewGuarded(GuardOptions{Args: []string{"sh", "-c", strings.ReplaceAll(families["children"], "$LIFE", l.path)}})
	if err != nil {
		t.Fatal(err)
	}
	g.Limit(time.Now().Add(time.Hour), time.Now().Add(time.Hour))
	type result struct {
		end End
		err error
	}
	ended := make(chan result, 1)
	go func() {
		end, err := g.Run(os.Environ())
		ended <- result{end, err}
	}()
	l.line(t)
	if err := g.guard.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if got := <-ended; !errors.Is(got.err, ErrGuardDied) || !got.end.Killed {
		t.Errorf("%+v, want ErrGuardDied", got)
	}
	l.end(t)
	g.Close()
}

// TestGuardDiesEarly: the command is killed even if the guard dies before it reports the start.
func TestGuardDiesEarly(t *testing.T) {
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		t.Skip("only Linux finds these")
	}
	l := newLife(t)
	adoptOrphans(true)
	defer adoptOrphans(false)
	guard := exec.Command("sh", "-c", `set -m; sh -c '`+strings.ReplaceAll(families["children"], "$LIFE", l.path)+`' & wait`)
	if err := guard.Start(); err != nil {
		t.Fatal(err)
	}
	l.line(t)
	g := &Guarded{guardLink: guardLink{guard: guard}}
	if err := guard.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	g.killAll()
	l.end(t)
	_ = guard.Wait() // the guard was killed
}

// TestGuardHangs: if the guard is stopped, sscli kills the command at the deadline, and after Stop at the end of the
// grace. If the guard continues, it reports the end of the command; otherwise sscli kills the guard.
func TestGuardHangs(t *testing.T) {
	const left = 300 * time.Millisecond
	for name, script := range families {
		if _, err := os.Stat("/proc/self/stat"); err != nil && (name == "descendant" || name == "jobs") {
			continue // only on Linux can these be found
		}
		t.Run(name, func(t *testing.T) {
			l := newLife(t)
			g, err := NewGuarded(GuardOptions{Args: []string{"sh", "-c", strings.ReplaceAll(script, "$LIFE", l.path)}, Grace: left})
			if err != nil {
				t.Fatal(err)
			}
			g.Limit(time.Now().Add(time.Hour), time.Now().Add(time.Hour))
			var end End
			ended := make(chan error, 1)
			go func() {
				var err error
				end, err = g.Run(os.Environ())
				ended <- err
			}()
			l.line(t)
			if err := g.guard.Process.Signal(syscall.SIGSTOP); err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			var want error
			if name == "alone" {
				g.Stop(time.Hour)
				want = ErrGuardDied
			} else {
				g.Limit(began, began.Add(left))
			}
			l.end(t)
			if lived := time.Since(began); lived < left {
				t.Errorf("the command lived for %v, want at least %v", lived, left)
			}
			if want == nil {
				if err := g.guard.Process.Signal(syscall.SIGCONT); err != nil {
					t.Fatal(err)
				}
			}
			err = <-ended
			if want == nil && time.Since(began) > left+killTimeout && errors.Is(err, ErrGuardDied) {
				want = ErrGuardDied // on a slow machine, the guard was continued too late
			}
			if !errors.Is(err, want) || !end.Killed {
				t.Errorf("%+v, %v, want it killed, and %v", end, err, want)
			}
			g.Close()
		})
	}
}
