//go:build linux

package main

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/sscli/sscli/cmd/sscli/internal/process"
	"github.com/sscli/sscli/emulator"
	"github.com/sscli/sscli/internal/testkit/full"
)

var chaosRounds = flag.Int("chaos-rounds", 12, "rounds of TestLockChaos")

// chaosChild checks that it is alone while it, or the process that it starts, lives: both keep a lock on a file open.
// The process that it starts ignores TERM, and so do half of the children.
const chaosChild = `
exec 9>>"$ARENA/alone"
flock -n 9 || echo "$(date -u +%T.%N) $SSCLI_LOCK_HOLDER is not alone" >>"$ARENA/violations"
(trap "" TERM HUP INT; exec sleep 1000) &
echo "$SSCLI_LOCK_HOLDER $$ $!" >"$ARENA/next.$$"
mv "$ARENA/next.$$" "$ARENA/state"
[ $(($$ % 2)) = 0 ] || trap "" TERM
exec sleep 1000`

// A tenth of the TTL is a margin for a busy machine.
var chaosTTL = flag.Duration("chaos-ttl", 2500*time.Millisecond, "TTL of the locks of TestLockChaos; doubled when the machine is too busy for it")

// TestLockChaos runs wrappers that compete for a lock. It kills them, even while they wait, stops them past the lease,
// cuts their connections, silences the store, kills their guards and children, and stops their guards while the store
// is silent. A child must never live without holding the lock at the store, or at the same time as another child, and
// at the end nothing may be left behind.
func TestLockChaos(t *testing.T) {
	full.Slow(t)
	t.Parallel()
	if _, err := exec.LookPath("flock"); err != nil {
		t.Skip("no flock")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var left, notDone, ttl atomic.Int64
	left.Store(int64(*chaosRounds))
	ttl.Store(int64(*chaosTTL))
	began := time.Now()
	t.Run("arenas", func(t *testing.T) {
		for i := range 4 {
			t.Run(strconv.Itoa(i), func(t *testing.T) {
				t.Parallel()
				a := newArena(t, self, time.Duration(ttl.Load()))
				for left.Add(-1) >= 0 {
					if a.round(); !a.excused {
						continue
					}
					a.end()
					notDone.Add(1)
					left.Add(1) // the round is repeated
					if a.ttl > time.Minute {
						t.Fatalf("this machine stands still for %v", a.ttl/20)
					}
					ttl.CompareAndSwap(int64(a.ttl), 2*int64(a.ttl))
					a = newArena(t, self, time.Duration(ttl.Load()))
				}
				if a.end(); a.excused {
					notDone.Add(1)
				}
			})
		}
	})
	t.Logf("%d rounds done, %d not done and repeated because the machine stood still, in %v; the last TTL was %v",
		*chaosRounds, notDone.Load(), time.Since(began).Round(time.Millisecond), time.Duration(ttl.Load()))
}

// An arena is a store with a lock that wrappers compete for.
type arena struct {
	t     *testing.T
	self  string
	dir   string
	ttl   time.Duration
	store *emulator.Server

	excused   bool            // the machine stalled, so a fault proves nothing
	guardless map[string]bool // wrappers, by holder, whose guard was killed or stopped

	mu       sync.Mutex
	wrappers map[string]*exec.Cmd // by holder
	number   int
	closing  bool
	running  sync.WaitGroup

	stop, checked chan struct{}
	wrong         atomic.Pointer[string] // fault that check found
	stall         atomic.Int64           // longest recent stall of check, in nanoseconds
}

// fault ends the test. If the machine stalls this process for half of the margin, it stalls guards as well, and they
// cannot be in time. Such a fault proves nothing: the round does not count, and is repeated in a new arena.
func (a *arena) fault(what string) {
	a.t.Helper()
	if a.excused {
		return
	}
	if stall := time.Duration(a.stall.Load()); stall > a.ttl/20 {
		a.excused = true
		a.t.Logf("not done: %s; but this machine stood still for %v", what, stall)
		return
	}
	a.t.Fatal(what)
}

// evidence describes what led to a fault: the last changes of the lock's key with their cause and client, the deadlines
// that the wrappers sent to their guards, and what the guards did.
func (a *arena) evidence() string {
	var text strings.Builder
	fmt.Fprintf(&text, "now %s\n", clockTime(time.Now()))
	changes := a.store.Changes()
	holders := make(map[string]bool)
	for _, c := range changes[max(0, len(changes)-12):] {
		fmt.Fprintf(&text, "%s %s by %q: %q %s\n", clockTime(c.Time), c.Cause, c.ClientID, c.Value, c.Version)
		holders[string(c.Value)] = true
	}
	for holder := range holders {
		log, err := os.ReadFile(filepath.Join(a.dir, holder+".log"))
		if err != nil {
			fmt.Fprintf(&text, "%s: %v\n", holder, err)
			continue
		}
		lines := strings.Split(strings.TrimSpace(string(log)), "\n")
		for _, line := range lines[max(0, len(lines)-6):] {
			fmt.Fprintf(&text, "%s: %s\n", holder, line)
		}
	}
	if log, err := os.ReadFile(filepath.Join(a.dir, "guards")); err == nil {
		lines := strings.Split(strings.TrimSpace(string(log)), "\n")
		fmt.Fprintf(&text, "what guards were told and did:\n%s\n", strings.Join(lines[max(0, len(lines)-30):], "\n"))
	}
	return text.String()
}

// guardEvidence describes the state of a guard and its command, and when the command ended.
func guardEvidence(pids [2]int) string {
	var text strings.Builder
	guard := parentOf(pids[0])
	for _, pid := range []int{guard, pids[0], pids[1]} {
		for _, file := range []string{"stat", "wchan", "schedstat", "stack"} {
			content, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", pid, file))
			if err == nil {
				fmt.Fprintf(&text, "%d %s: %.160s\n", pid, file, strings.TrimSpace(string(content)))
			}
		}
	}
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		if !isAlive(pids[0]) && !isAlive(pids[1]) {
			fmt.Fprintf(&text, "the command and what it started ended at %s\n", clockTime(time.Now()))
			return text.String()
		}
	}
	return text.String() + "the command lives on\n"
}

func clockTime(t time.Time) string { return t.UTC().Format("15:04:05.000000") }

func newArena(t *testing.T, self string, ttl time.Duration) *arena {
	a := &arena{
		t: t, self: self, dir: t.TempDir(), ttl: ttl, store: emulator.Start(t),
		wrappers: make(map[string]*exec.Cmd), guardless: make(map[string]bool), stop: make(chan struct{}), checked: make(chan struct{}),
	}
	if err := os.Mkdir(filepath.Join(a.dir, "tmp"), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // only after a failure
		a.mu.Lock()
		defer a.mu.Unlock()
		if !a.closing {
			close(a.stop)
			<-a.checked
		}
		a.closing = true
		for _, w := range a.wrappers {
			_ = w.Process.Kill() // its guard does the rest
		}
	})
	for range 2 {
		a.wrap()
	}
	go func() {
		defer close(a.checked)
		a.check()
	}()
	return a
}

// wrap starts a wrapper, and a new one each time it ends.
func (a *arena) wrap() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closing {
		return
	}
	a.number++
	holder := "w" + strconv.Itoa(a.number)
	cmd := exec.Command(a.self)
	cmd.Args = []string{"sscli", "lock", "run", "-v", "chaos", "--holder", holder, "--ttl", a.ttl.String(), "--", "sh", "-c", chaosChild}
	cmd.Env = append(os.Environ(), "SSCLI_URL="+a.store.URL(), "ARENA="+a.dir, "TMPDIR="+filepath.Join(a.dir, "tmp"), "GORACE=atexit_sleep_ms=0",
		process.EnvGuardLog+"="+filepath.Join(a.dir, "guards"))
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	log, err := os.Create(filepath.Join(a.dir, holder+".log"))
	if err != nil {
		a.t.Error(err)
		return
	}
	defer log.Close()
	cmd.Stderr = log
	if err := cmd.Start(); err != nil {
		a.t.Error(err)
		return
	}
	a.wrappers[holder] = cmd
	a.running.Go(func() {
		_ = cmd.Wait() // the wrapper may end in any way
		a.mu.Lock()
		delete(a.wrappers, holder)
		a.mu.Unlock()
		a.wrap()
	})
}

func (a *arena) wrapper(holder string) *exec.Cmd {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.wrappers[holder]
}

// child returns the child that started last. alive reports whether it, or the process that it started, is alive.
func (a *arena) child() (holder string, pids [2]int, alive bool) {
	text, err := os.ReadFile(filepath.Join(a.dir, "state"))
	if err != nil {
		return "", pids, false
	}
	fields := strings.Fields(string(text))
	for i := range pids {
		if pids[i], err = strconv.Atoi(fields[i+1]); err != nil {
			a.t.Error(err)
		}
		alive = alive || isAlive(pids[i])
	}
	return fields[0], pids, alive
}

// isAlive reports whether a process may still run code of its own. One that the kernel takes down no longer does,
// though that may take a second on a busy machine.
func isAlive(pid int) bool {
	const exiting = 0x4 // PF_EXITING
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return false
	}
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	flags, err := strconv.ParseUint(fields[6], 10, 64)
	return fields[0] != "Z" && fields[0] != "X" && (err != nil || flags&exiting == 0)
}

// check looks for a child that lives while, at the store, another holder or nobody holds its lock.
func (a *arena) check() {
	const pace = 3 * time.Millisecond
	var stalled time.Time
	for {
		began := time.Now()
		select {
		case <-a.stop:
			return
		case <-time.After(pace):
		}
		if late := time.Since(began) - pace; late >= time.Duration(a.stall.Load()) || time.Since(stalled) > a.ttl {
			a.stall.Store(int64(late))
			stalled = time.Now()
		}
		holder, pids, alive := a.child()
		if !alive {
			continue
		}
		entry, held := a.store.Get("chaos")
		if held && string(entry.Value) == holder {
			continue
		}
		if again, same, still := a.child(); still && again == holder && same == pids {
			what := fmt.Sprintf("the child of %s lives, the lock is held by %q (%v)\n%s%s", holder, entry.Value, held, a.evidence(), guardEvidence(pids))
			a.wrong.CompareAndSwap(nil, &what)
			return // keep the value of stall
		}
	}
}

// next waits for a child of another holder.
func (a *arena) next(not string) (holder string, pids [2]int) {
	deadline := time.Now().Add(2*a.ttl + time.Minute)
	for {
		holder, pids, alive := a.child()
		if alive && holder != not {
			return holder, pids
		}
		if time.Now().After(deadline) {
			a.t.Fatalf("no child runs after %s's", not)
		}
		time.Sleep(2 * time.Millisecond)
	}
}

// round disturbs the wrapper that holds the lock, and waits for the next holder.
func (a *arena) round() {
	holder, pids := a.next("")
	w := a.wrapper(holder)
	if w == nil {
		return
	}
	time.Sleep(rand.N(a.ttl / 2)) // any time between two renewals
	events := []string{"kill", "waiter", "stop", "term", "cut", "silence", "guard", "stopped guard", "child"}
	event := events[rand.IntN(len(events))]
	switch event {
	case "kill":
		_ = w.Process.Kill()
	case "waiter":
		a.killOthers(holder)
		return // the holder continues
	case "stop":
		_ = w.Process.Signal(syscall.SIGSTOP)
		a.next(holder) // others continue meanwhile
		_ = w.Process.Signal(syscall.SIGCONT)
	case "term":
		_ = w.Process.Signal(syscall.SIGTERM)
		if pids[0]%2 != 0 {
			_ = syscall.Kill(pids[0], syscall.SIGKILL) // the child ignores TERM
		}
	case "cut":
		a.store.DropAll()
		time.Sleep(rand.N(a.ttl))
		if _, now, alive := a.child(); alive && now == pids {
			_ = syscall.Kill(pids[0], syscall.SIGKILL) // the child is alive, as it should be
		}
	case "silence":
		a.silence(pids)
	case "stopped guard":
		guard := parentOf(pids[0])
		if guard <= 1 {
			break
		}
		a.guardless[holder] = true
		_ = syscall.Kill(guard, syscall.SIGSTOP)
		a.silence(pids)
		if rand.IntN(2) == 0 {
			_ = syscall.Kill(guard, syscall.SIGCONT) // otherwise sscli kills the guard
		}
	case "guard":
		if guard := parentOf(pids[0]); guard > 1 {
			a.guardless[holder] = true
			_ = syscall.Kill(guard, syscall.SIGKILL)
		}
	case "child":
		_ = syscall.Kill(pids[0], syscall.SIGKILL)
	}
	a.next(holder)
	if text, err := os.ReadFile(filepath.Join(a.dir, "violations")); err == nil {
		a.fault(fmt.Sprintf("after %s: %s\n%s", event, text, a.evidence()))
	}
	if what := a.wrong.Load(); what != nil {
		a.fault(fmt.Sprintf("after %s: %s", event, *what))
	}
}

// killOthers kills the wrappers that wait for the lock. It spares a wrapper without a guard, which may still be ending:
// if both were killed, nobody would remove the directory with the token.
func (a *arena) killOthers(holder string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for name, w := range a.wrappers {
		if name != holder && !a.guardless[name] {
			_ = w.Process.Kill()
		}
	}
}

// silence drops all requests until a child has ended.
func (a *arena) silence(child [2]int) {
	a.store.Intercept(func(emulator.Request) emulator.Action { return emulator.Action{Drop: true} })
	for {
		if _, now, alive := a.child(); !alive || now != child {
			break
		}
		time.Sleep(2 * time.Millisecond)
	}
	a.store.Intercept(nil)
}

func parentOf(pid int) int {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	parent, err := strconv.Atoi(fields[1])
	if err != nil {
		return 0
	}
	return parent
}

// end ends all wrappers and checks what they left behind.
func (a *arena) end() {
	a.mu.Lock()
	a.closing = true
	for _, w := range a.wrappers {
		_ = w.Process.Signal(syscall.SIGCONT)
		_ = w.Process.Signal(syscall.SIGTERM)
	}
	a.mu.Unlock()
	over := make(chan struct{})
	go func() {
		a.running.Wait()
		close(over)
	}()
	for ended := false; !ended; {
		select {
		case <-over:
			ended = true
		case <-time.After(10 * time.Millisecond):
			// A child that ignores TERM must be killed. Its wrapper then releases the lock.
			if _, pids, alive := a.child(); alive {
				_ = syscall.Kill(pids[0], syscall.SIGKILL)
			}
		}
	}
	close(a.stop)
	<-a.checked
	if what := a.wrong.Load(); what != nil {
		a.fault("in the end: " + *what)
	}
	if _, pids, alive := a.child(); alive {
		a.t.Errorf("a child is left: %v", pids)
	}
	deadline := time.Now().Add(a.ttl + time.Minute)
	for {
		if _, held := a.store.Get("chaos"); !held {
			break
		}
		if time.Now().After(deadline) {
			a.t.Error("the lock is held, and nobody lives who could")
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	for {
		files, err := os.ReadDir(filepath.Join(a.dir, "tmp"))
		if err == nil && len(files) == 0 {
			break
		}
		if time.Now().After(deadline) {
			a.t.Errorf("files are left: %v, %v", files, err)
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
}
