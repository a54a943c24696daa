package admission_test

import (
	"errors"
	"net"
	"net/netip"
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
			err := throttle.Check(from(ip), func() bool { return good })
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
		if took, err := try("::ffff:192.0.2.1", true); took == 0 || err != nil {
			t.Errorf("a good login of the address: %s, %v", took, err)
		}
		// Parallel logins share their address's delay, and only a few may wait.
		busy := make(chan error, 100)
		for range 100 {
			go func() { _, err := try("192.0.2.1", false); busy <- err }()
		}
		synctest.Wait()
		if n := len(busy); n != 84 {
			t.Errorf("%d of 100 are refused at once, want 84", n)
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
			_ = throttle.Check(from("192.0.2.1"), func() bool { return false })
		}
		time.Sleep(2 * time.Minute)
		begin := time.Now()
		if err := throttle.Check(from("192.0.2.1"), func() bool { return true }); err != nil || time.Since(begin) != 0 {
			t.Errorf("a minute without failures is not forgotten: %s, %v", time.Since(begin), err)
		}
	})
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
