//go:build unix

package process

import (
	"encoding/json"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

// guardSlowly runs a guard whose process table and file system do not answer before the test closes its end of a pipe.
func guardSlowly() {
	runtime.LockOSThread()
	const system = 5
	syscall.CloseOnExec(system)
	g := newGuard("/bin/sh", []string{"sh", "-c", os.Getenv("PROCESS_TEST_SCRIPT")}, os.NewFile(4, "events"))
	answer := func() { _, _ = syscall.Read(system, make([]byte, 1)) }
	g.table = func() []process {
		answer()
		return listProcesses()
	}
	g.remove = func(name string) error {
		answer()
		return os.Remove(name)
	}
	g.run(os.NewFile(3, "orders"))
}

// TestSlowSystem: TERM and KILL for the command's group wait neither for the process table nor for the file
// system.
func TestSlowSystem(t *testing.T) {
	const deaf = `exec 9>$LIFE; trap "" TERM; echo up >&9; while :; do sleep 0.01; done`
	for name, c := range map[string]struct {
		script     string
		term, kill time.Duration
	}{
		"TERM":  {`exec 9>$LIFE; trap "exit 1" TERM; echo up >&9; while :; do sleep 0.01; done`, 0, time.Hour},
		"KILL":  {deaf, 0, 0},
		"grace": {deaf, 0, 150 * time.Millisecond},
		"child": {`exec 9>$LIFE; (trap "" TERM; echo up >&9; exec sleep 1000) & wait`, 0, 150 * time.Millisecond},
		"left":  {`exec 9>$LIFE; (trap "" TERM; echo up >&9; exec sleep 1000) & read -r _ <$LIFE.go`, time.Hour, time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLife(t)
			secret, proceed := l.path+".secret", l.path+".go"
			if err := os.WriteFile(secret, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			if err := syscall.Mkfifo(proceed, 0o600); err != nil {
				t.Fatal(err)
			}
			orders, to, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer to.Close()
			from, events, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer from.Close()
			system, answer, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer answer.Close()
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), "PROCESS_TEST_ROLE=slow guard", "PROCESS_TEST_SCRIPT="+strings.ReplaceAll(c.script, "$LIFE", l.path))
			cmd.ExtraFiles, cmd.Stderr = []*os.File{orders, events, system}, os.Stderr
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			orders.Close()
			events.Close()
			system.Close()
			send := func(o order) {
				if err := json.NewEncoder(to).Encode(o); err != nil {
					t.Error(err)
				}
			}
			setLimit := func(term, kill time.Duration) {
				now := time.Now()
				send(order{Limit: &limit{at(now.Add(term)), at(now.Add(kill))}})
			}
			setLimit(time.Hour, time.Hour)
			send(order{Secret: []byte(secret)})
			var s start
			for _, kv := range os.Environ() {
				s.Env = append(s.Env, []byte(kv))
			}
			send(order{Start: &s})
			if got := l.line(t); got != "up" {
				t.Fatalf("%q, want up", got)
			}
			if name == "left" { // the command ends by itself
				if err := os.WriteFile(proceed, []byte("\n"), 0); err != nil {
					t.Fatal(err)
				}
			} else {
				setLimit(c.term, c.kill)
			}
			l.end(t)
			answer.Close()
			if name != "left" {
				isGone(t, secret)
			}
			to.Close()
			if err := cmd.Wait(); err != nil {
				t.Error(err)
			}
			isGone(t, filepath.Dir(secret))
		})
	}
}

// guardLate runs a guard that was stopped while its command ended, and continues past the command's deadline.
func guardLate() {
	runtime.LockOSThread()
	g := newGuard("/bin/sh", []string{"sh", "-c", "exit 5"}, os.NewFile(3, "events"))
	g.table = listProcesses
	past := at(time.Now().Add(-time.Second))
	g.limit, g.killAt = &limit{past, past}, past
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGCHLD)
	pid, err := g.launch(os.Environ())
	if err != nil {
		panic(err)
	}
	<-ended
	g.pid = pid
	for !g.check() {
		time.Sleep(reapInterval)
	}
}

// TestEndedBeforeDeadline: a command that ended by itself was not killed, even if its guard notices only after the
// deadline.
func TestEndedBeforeDeadline(t *testing.T) {
	from, events, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "PROCESS_TEST_ROLE=late guard")
	cmd.ExtraFiles, cmd.Stderr = []*os.File{events}, os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	events.Close()
	var e event
	if err := json.NewDecoder(from).Decode(&e); err != nil || e.Ended == nil || *e.Ended != (End{Code: 5}) {
		t.Errorf("%+v, %v, want exit code 5, not killed", e.Ended, err)
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}

// TestGuardLog: the log lists the orders and actions of the guard, in order.
func TestGuardLog(t *testing.T) {
	file := filepath.Join(t.TempDir(), "log")
	t.Setenv(EnvGuardLog, file)
	l := newLife(t)
	g, err := NewGuarded(GuardOptions{Args: []string{"sh", "-c", strings.ReplaceAll(families["deaf"], "$LIFE", l.path)}})
	if err != nil {
		t.Fatal(err)
	}
	g.Limit(time.Now().Add(time.Hour), time.Now().Add(time.Hour))
	ended := make(chan error, 1)
	go func() {
		_, err := g.Run(os.Environ())
		ended <- err
	}()
	l.line(t)
	g.send(order{Stop: true}) // not g.Stop: sscli could then kill the command before the guard does
	if err := <-ended; err != nil {
		t.Error(err)
	}
	g.Close()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	rest := string(text)
	for _, want := range []string{": limit (TERM at ", ": started (", ": told to stop (", ": TERM to the group (", ": KILL to the group (",
		": the command has ended with 137 (", ": nothing is left ("} {
		var ok bool
		if _, rest, ok = strings.Cut(rest, want); !ok {
			t.Fatalf("no %q in its place in\n%s", want, text)
		}
	}
}
