package admission_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sscli/sscli/internal/admission"
)

func from(ip string) string { return net.JoinHostPort(ip, "1") }

// TestGate: an attacker that fills the gate evicts only its own connections, and never a client that has
// logged in.
func TestGate(t *testing.T) {
	g := admission.Gate{MaxClients: 8, MaxPending: 3}
	var evicted []string
	enter := func(name, ip string) *admission.Ticket {
		return g.Enter(from(ip), func() { evicted = append(evicted, name) })
	}
	user := enter("user", "192.0.2.1")
	user.LoggedIn()
	honest := enter("honest", "192.0.2.1")
	for _, name := range []string{"a", "b", "c", "d"} {
		if enter(name, "192.0.2.2") == nil {
			t.Fatalf("%s is not admitted", name)
		}
	}
	if len(evicted) != 2 || evicted[0] != "a" || evicted[1] != "b" {
		t.Errorf("evicted: %v, want a and b", evicted)
	}
	if !honest.Reserve(10<<20) || honest.Reserve(20<<20) || !honest.Reserve(1<<20) {
		t.Error("the reserved memory is not bounded by 16 MiB")
	}
	honest.LoggedIn()
	// Evicted connections count until they have ended.
	enter("e", "2001:db8::1")
	last := enter("f", "2001:db8::2")
	if last == nil || enter("g", "192.0.2.3") != nil {
		t.Error("want 8 clients")
	}
	last.Leave()
	last.Leave()
	if enter("g", "192.0.2.3") == nil || enter("h", "192.0.2.3") != nil {
		t.Error("want 8 clients after one has left")
	}
}

func TestThrottle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		throttle := admission.NewThrottle()
		try := func(ip string, good bool) (time.Duration, error) {
			begin := time.Now()
			err := throttle.Check(from(ip), "ann", func() bool { return good })
			return time.Since(begin), err
		}
		total := time.Duration(0)
		for range 30 {
			took, err := try("192.0.2.1", false)
			if !errors.Is(err, admission.ErrRefused) {
				t.Fatal(err)
			}
			total += took
		}
		if total < 40*time.Second {
			t.Errorf("30 failed logins took %s", total)
		}
		if took, err := try("192.0.2.2", true); took != 0 || err != nil {
			t.Errorf("another address: %s, %v", took, err)
		}
		if took, err := try("::ffff:192.0.2.1", true); took != 0 || err != nil {
			t.Errorf("a good login of the address: %s, %v", took, err)
		}
		// Parallel logins share their address's delay, and only a few may wait.
		busy := make(chan error, 100)
		for range 100 {
			go func() { _, err := try("192.0.2.1", false); busy <- err }()
		}
		synctest.Wait()
		if n := len(busy); n != 74 {
			t.Errorf("%d of 100 are refused at once, want 74", n)
		}
		throttle.Close()
		synctest.Wait()
		if n := len(busy); n != 100 {
			t.Errorf("%d of 100 have ended after Close", n)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		throttle := admission.NewThrottle()
		defer throttle.Close()
		for range 10 {
			_ = throttle.Check(from("192.0.2.1"), "ann", func() bool { return false })
		}
		time.Sleep(2 * time.Minute)
		begin := time.Now()
		if err := throttle.Check(from("192.0.2.1"), "ann", func() bool { return true }); err != nil || time.Since(begin) != 0 {
			t.Errorf("a minute without failures is not forgotten: %s, %v", time.Since(begin), err)
		}
	})
}

// TestThrottleHonest: a right login does not wait behind those who guess from its address, and they guess no faster
// than one after the other.
func TestThrottleHonest(t *testing.T) {
	const (
		hash    = 50 * time.Millisecond // what a check takes
		minutes = 5
		burst   = 45 // guesses without a pause, with a short one, and those whose refusals wait
	)
	for name, tt := range map[string]struct {
		guessers  int
		impatient bool // they do not wait for refusals
		known     bool // the honest user has logged in before
		user      func(i int) string
		lines     int // how many lines of failures the guesses are counted in
	}{
		"of the same user":     {24, false, false, func(int) string { return "ann" }, 2},
		"of another user":      {24, false, false, func(int) string { return "bob" }, 1},
		"of many users":        {24, false, false, func(i int) string { return fmt.Sprint("user", i) }, 1},
		"impatient, one user":  {100, true, false, func(int) string { return "bob" }, 1},
		"impatient, many":      {100, true, true, func(i int) string { return fmt.Sprint("user", i) }, 1},
		"patient, of the user": {24, false, true, func(int) string { return "ann" }, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				throttle := admission.NewThrottle()
				var running sync.WaitGroup
				var guesses atomic.Int64
				login := func(user string, good bool) error {
					return throttle.Check(from("192.0.2.1"), user, func() bool {
						time.Sleep(hash)
						if !good {
							guesses.Add(1)
						}
						return good
					})
				}
				if tt.known && login("ann", true) != nil {
					t.Fatal("ann cannot log in")
				}
				for range 8 {
					_ = login(tt.user(0), false)
				}
				ctx, stop := context.WithCancel(t.Context())
				for i := range tt.guessers {
					running.Go(func() {
						for ctx.Err() == nil {
							if tt.impatient {
								running.Go(func() { _ = login(tt.user(i), false) })
								time.Sleep(time.Second)
								continue
							}
							if errors.Is(login(tt.user(i), false), admission.ErrBusy) {
								time.Sleep(time.Second)
							}
						}
					})
				}
				for range minutes * 12 {
					time.Sleep(5 * time.Second)
					begin := time.Now()
					if err := login("ann", true); err != nil || time.Since(begin) > time.Second {
						t.Errorf("an honest login: %v after %s", err, time.Since(begin))
					}
				}
				if n := int(guesses.Load()); n > tt.lines*(burst+30*minutes) {
					t.Errorf("%d guesses in %d minutes, want at most %d", n, minutes, tt.lines*(burst+30*minutes))
				}
				stop()
				throttle.Close()
				running.Wait()
			})
		})
	}
}

// TestURL: an address that stands for all of a machine's is no address to connect to.
func TestURL(t *testing.T) {
	t.Parallel()
	for at, want := range map[string]string{
		"127.0.0.1:80": "http://127.0.0.1:80",
		"[::1]:80":     "http://[::1]:80",
		"[::]:80":      "http://127.0.0.1:80",
		"0.0.0.0:80":   "http://127.0.0.1:80",
	} {
		if got := admission.URL("http", net.TCPAddrFromAddrPort(netip.MustParseAddrPort(at))); got != want {
			t.Errorf("%s: got %s, want %s", at, got, want)
		}
	}
}

// TestLineIsLong: a line becomes long only while many goroutines stand in it.
func TestLineIsLong(t *testing.T) {
	t.Parallel()
	var line admission.Line
	var standing sync.WaitGroup
	line.Lock()
	for n := 1; !line.IsLong(); n++ {
		if n > 1000 {
			t.Fatal("1,000 in line are not many")
		}
		in := make(chan struct{})
		standing.Go(func() {
			close(in)
			line.Lock()
			defer line.Unlock()
		})
		<-in
		if n == 50 && line.IsLong() {
			t.Error("50 in line, as with redis-benchmark, are many")
		}
		runtime.Gosched()
	}
	line.Unlock()
	standing.Wait()
	line.Lock()
	defer line.Unlock()
	if line.IsLong() {
		t.Error("one in line is many")
	}
}
