package process

import (
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"
)

// TestMain also runs the commands of the tests, by PROCESS_TEST_ROLE: "exit N" exits with code N; "leaf" connects to
// PROCESS_TEST_LIFE and keeps running; "tree" does the same and starts a leaf; "leave" starts a leaf, prints "left",
// and exits once the leaf is connected; "background" starts a tree in the background.
func TestMain(m *testing.M) {
	if GuardMain() {
		return
	}
	role := os.Getenv("PROCESS_TEST_ROLE")
	if code, isExit := cutExit(role); isExit {
		os.Exit(code)
	}
	switch role {
	case "":
		os.Exit(m.Run())
	case "background":
		background()
		return
	case "tree", "leave":
		leaf := exec.Command(os.Args[0])
		leaf.Env = append(os.Environ(), "PROCESS_TEST_ROLE=leaf")
		up, err := leaf.StdoutPipe()
		if err == nil {
			err = leaf.Start()
		}
		if err == nil {
			_, err = io.ReadFull(up, make([]byte, 2))
		}
		if err != nil {
			os.Exit(99)
		}
		if role == "leave" {
			_, _ = os.Stdout.WriteString("left")
			os.Exit(4)
		}
	}
	if _, err := net.Dial("tcp", os.Getenv("PROCESS_TEST_LIFE")); err != nil {
		os.Exit(98)
	}
	if role == "leaf" {
		_, _ = os.Stdout.WriteString("up") // the parent reads this
	}
	time.Sleep(time.Hour)
}

func cutExit(role string) (code int, ok bool) {
	if len(role) < 6 || role[:5] != "exit " {
		return 0, false
	}
	code, err := strconv.Atoi(role[5:])
	return code, err == nil
}

// lives accepts n connections. It returns a function that waits until the processes at the other ends have ended.
func lives(t *testing.T, n int) (addr string, up chan struct{}, ended func()) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	up = make(chan struct{})
	down := make(chan struct{}, n)
	go func() {
		for range n {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				_, _ = c.Read(make([]byte, 1)) // until the process ends
				down <- struct{}{}
			}()
		}
		close(up)
	}()
	return l.Addr().String(), up, func() {
		t.Helper()
		for i := range n {
			select {
			case <-down:
			case <-time.After(10 * time.Second):
				t.Fatalf("%d of %d processes live", n-i, n)
			}
		}
	}
}

func newGuarded(t *testing.T, o GuardOptions) *Guarded {
	t.Helper()
	o.Args = []string{os.Args[0]}
	g, err := NewGuarded(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.Close)
	return g
}

func environ(role, life string) []string {
	return append(os.Environ(), "PROCESS_TEST_ROLE="+role, "PROCESS_TEST_LIFE="+life)
}

func TestGuardedExitCodes(t *testing.T) {
	for _, code := range []uint32{0, 3, 255, 0xC000013A} {
		want := int(code)
		g := newGuarded(t, GuardOptions{})
		g.Limit(time.Now().Add(time.Hour), time.Now().Add(time.Hour))
		end, err := g.Run(environ("exit "+strconv.Itoa(want), ""))
		if end != (End{Code: want}) || err != nil {
			t.Errorf("%d: %+v, %v", want, end, err)
		}
	}
}

func TestGuardedStartErrors(t *testing.T) {
	noProgram := filepath.Join(t.TempDir(), "text.exe")
	if err := os.WriteFile(noProgram, []byte("no program"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]int{"no-such-program": CodeNotFound, noProgram: CodeNotExecutable} {
		g, err := NewGuarded(GuardOptions{Args: []string{name}})
		if err == nil {
			g.Limit(time.Now().Add(time.Hour), time.Now().Add(time.Hour))
			_, err = g.Run(os.Environ())
			g.Close()
		}
		if e, ok := errors.AsType[*StartError](err); !ok || e.Code != want {
			t.Errorf("%s: %v, want code %d", name, err, want)
		}
	}
}

func TestGuardedLate(t *testing.T) {
	g := newGuarded(t, GuardOptions{})
	g.Limit(time.Now(), time.Now().Add(time.Hour))
	if _, err := g.Run(environ("exit 0", "")); !errors.Is(err, ErrLate) {
		t.Errorf("%v, want %v", err, ErrLate)
	}
}

// TestGuardedTree: whatever ends the command also ends the process that it started.
func TestGuardedTree(t *testing.T) {
	for name, end := range map[string]struct {
		role  string
		alive int
		by    func(*Guarded)
		want  End
		err   error
	}{
		"the deadline": {"tree", 2, func(g *Guarded) { g.Limit(time.Now(), time.Now().Add(200*time.Millisecond)) }, End{Killed: true}, nil},
		"Stop":         {"tree", 2, func(g *Guarded) { g.Stop(time.Hour) }, End{Killed: true}, nil},
		"a killed guard": {"tree", 2, func(g *Guarded) { _ = g.guard.Process.Kill() },
			End{Code: codeKilled, Killed: true}, ErrGuardDied},
		"the command's end": {"leave", 1, func(*Guarded) {}, End{Code: 4, Left: true}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			addr, up, ended := lives(t, end.alive)
			g := newGuarded(t, GuardOptions{Grace: 200 * time.Millisecond})
			g.Limit(time.Now().Add(time.Hour), time.Now().Add(time.Hour))
			go func() {
				<-up
				end.by(g)
			}()
			got, err := g.Run(environ(end.role, addr))
			if end.want.Code == 0 {
				got.Code = 0 // the code of Ctrl-Break or of the end of the job
			}
			if got != end.want || !errors.Is(err, end.err) {
				t.Errorf("%+v, %v, want %+v, %v", got, err, end.want, end.err)
			}
			ended()
		})
	}
}

// TestGuardedClose: Close ends a running command and its descendants.
func TestGuardedClose(t *testing.T) {
	addr, up, ended := lives(t, 2)
	g := newGuarded(t, GuardOptions{})
	g.Limit(time.Now().Add(time.Hour), time.Now().Add(time.Hour))
	done := make(chan error, 1)
	go func() {
		_, err := g.Run(environ("tree", addr))
		done <- err
	}()
	<-up
	g.Close()
	ended()
	<-done
}
