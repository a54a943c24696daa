package emulator_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/eclipse/paho.golang/packets"

	"github.com/sscli/sscli/emulator"
	"github.com/sscli/sscli/internal/testkit/memtest"
	"github.com/sscli/sscli/internal/testkit/redistest"
)

// patterns returns a policy with 400 patterns of keys for ann. part is a part of each.
func patterns(t *testing.T, part string) *emulator.Policy {
	t.Helper()
	var keys strings.Builder
	for i := range 400 {
		fmt.Fprintf(&keys, "\"site-%d/%s/line-*/sensor-[0-9]*/value\", ", i, part)
	}
	p, err := emulator.ParsePolicy("p", []byte(strings.ReplaceAll(onePolicy, `"a*"`, keys.String()+`"a*"`)))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// startWithPatterns returns a server with patterns for ann, whose password is secret, and functions that connect a client
// to each port.
func startWithPatterns(t *testing.T, part string, memory int) (s *emulator.Server, open map[string]func(i int) (code string, end func() error)) {
	t.Helper()
	s = emulator.Start(t, emulator.Options{Redis: "127.0.0.1:0", Policy: patterns(t, part), CheckLogin: emulator.Passwords(map[string]string{"ann": "secret"}), Limits: emulator.Limits{MaxBytes: memory}})
	return s, map[string]func(i int) (string, func() error){
		"mqtt": func(i int) (string, func() error) {
			c := dial(t, s, fmt.Sprintf("c%d", i))
			ack := c.Hello(func(p *packets.Connect) {
				p.UsernameFlag, p.Username, p.PasswordFlag, p.Password = true, "ann", true, []byte("secret")
			})
			return fmt.Sprintf("%#x", ack.ReasonCode), c.Conn.Close
		},
		"redis": func(int) (string, func() error) {
			c := redistest.Dial(t, "tcp", redistest.Address(s.RedisURL()))
			code := strings.TrimSpace(c.Do(t, "AUTH", "ann", "secret"))
			c.Expect(t, map[bool]string{true: "-ERR not authorized\r\n", false: "-NOAUTH Authentication required.\r\n"}[code == "+OK"], "GET", "b")
			return code, c.Conn.Close
		},
	}
}

// awaitKept waits until the memory for clients is n bytes.
func awaitKept(t *testing.T, s *emulator.Server, n int) {
	t.Helper()
	for end := time.Now().Add(patience); s.Kept() != n; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d bytes are charged, want %d", s.Kept(), n)
		}
	}
}

// TestRulesAreCharged: the patterns that the server compiles for a client are charged until the connection ends, and
// then they are gone.
func TestRulesAreCharged(t *testing.T) {
	if !memtest.Alone(t) {
		return
	}
	const clients = 20
	for _, port := range []string{"mqtt", "redis"} {
		t.Run(port, func(t *testing.T) {
			s, open := startWithPatterns(t, "{principal.clientId}", 1<<30)
			idle, before := s.Kept(), memtest.Heap()
			var all []func() error
			memtest.Compare(t, clients, s.Kept, func(i int) {
				code, end := open[port](i)
				if code != "+OK" && code != "0x0" {
					t.Fatal(code)
				}
				all = append(all, end)
			})
			for _, end := range all {
				if err := end(); err != nil {
					t.Fatal(err)
				}
			}
			awaitKept(t, s, idle)
			if left := memtest.Heap() - before; left > clients*100<<10 {
				t.Errorf("%d clients left %d bytes", clients, left)
			}
		})
	}
}

// TestRulesBeyondMemory: a client whose rules need more memory than there is cannot log in.
func TestRulesBeyondMemory(t *testing.T) {
	for port, refusal := range map[string]string{"mqtt": "0x97", "redis": "-OOM the memory for clients is exhausted"} {
		t.Run(port, func(t *testing.T) {
			s, open := startWithPatterns(t, "{principal.clientId}", 4<<20)
			for i := range 20 {
				code, _ := open[port](i)
				if code == refusal && i > 2 {
					return
				}
				if code != "+OK" && code != "0x0" {
					t.Fatalf("client %d: %s", i, code)
				}
			}
			t.Errorf("20 clients, %d bytes", s.Kept())
		})
	}
}

// TestRulesAreShared: patterns without tokens take no memory for each client, connected or not.
func TestRulesAreShared(t *testing.T) {
	const clients = 60
	for _, port := range []string{"mqtt", "redis"} {
		t.Run(port, func(t *testing.T) {
			s, open := startWithPatterns(t, "x", 16<<20)
			idle, before := s.Kept(), memtest.Heap()
			for i := range clients {
				_, end := open[port](i)
				if err := end(); err != nil {
					t.Fatal(err)
				}
			}
			awaitKept(t, s, idle)
			if left := memtest.Heap() - before; left > clients*20<<10 {
				t.Errorf("%d clients left %d bytes", clients, left)
			}
		})
	}
}

// TestRulesWhileOthersConnect: commands that need all keys are judged while other clients come and go. The race
// detector finds what they share without a lock.
func TestRulesWhileOthersConnect(t *testing.T) {
	t.Parallel()
	s, open := startWithPatterns(t, "x", 1<<30)
	var clients sync.WaitGroup
	for range 2 {
		clients.Go(func() {
			c := redistest.Dial(t, "tcp", redistest.Address(s.RedisURL()))
			c.Do(t, "AUTH", "ann", "secret")
			for range 200 {
				if got := c.Do(t, "CONFIG", "RESETSTAT"); !strings.HasPrefix(got, "-NOPERM") {
					t.Error(got)
					return
				}
			}
		})
	}
	for i := range 50 {
		for _, connect := range open {
			connect(i)
		}
	}
	clients.Wait()
}
