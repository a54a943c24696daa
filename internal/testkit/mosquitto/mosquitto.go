// Package mosquitto runs a Mosquitto broker for tests that need a broker from outside this
// project. If Mosquitto is not installed, the test is skipped.
//
//	b := mosquitto.Start(t, "", mosquitto.Anonymous)
//	dial(b.Addresses[0]) // 127.0.0.1:24123
//
// The broker listens on loopback and stops when the test ends.
package mosquitto

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/sscli/sscli/internal/testkit/freeport"
)

// A Broker is a Mosquitto process.
type Broker struct {
	Addresses []string // host:port of each listener, in order

	config string
	stop   context.CancelFunc
	cmd    *exec.Cmd
	read   sync.WaitGroup
}

// Anonymous configures a listener that accepts every client.
const Anonymous = "allow_anonymous true"

// Start runs Mosquitto until the test ends. Each element of listeners, such as [Anonymous], is the
// configuration of one listener, in one or more lines. The lines in global precede the listeners in the
// configuration file.
func Start(t testing.TB, global string, listeners ...string) *Broker {
	t.Helper()
	config := "per_listener_settings true\nuser root\n" + global + "\n"
	b := &Broker{}
	var chosen []net.Listener
	for _, listener := range listeners {
		ln := freeport.Listen(t)
		chosen = append(chosen, ln)
		config += fmt.Sprintf("listener %d 127.0.0.1\n%s\n", ln.Addr().(*net.TCPAddr).Port, listener)
		b.Addresses = append(b.Addresses, ln.Addr().String())
	}
	for _, ln := range chosen {
		ln.Close() // free the port for Mosquitto, which cannot choose one itself
	}
	b.config = filepath.Join(t.TempDir(), "mosquitto.conf")
	if err := os.WriteFile(b.config, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	b.run(t)
	t.Cleanup(b.end)
	return b
}

// Restart stops the broker and runs it again on the same ports.
func (b *Broker) Restart(t testing.TB) {
	t.Helper()
	b.end()
	b.run(t)
}

func (b *Broker) run(t testing.TB) {
	t.Helper()
	path, err := exec.LookPath("mosquitto")
	if err != nil {
		path = "/usr/sbin/mosquitto" // often not in PATH
	}
	if _, err := os.Stat(path); err != nil {
		t.Skipf("mosquitto is not installed: %v", err)
	}
	ctx, stop := context.WithCancel(context.Background())
	b.stop = stop
	b.cmd = exec.CommandContext(ctx, path, "-c", b.config)
	b.cmd.Cancel = func() error { return b.cmd.Process.Signal(syscall.SIGTERM) }
	b.cmd.WaitDelay = 5 * time.Second // then kill Mosquitto, which can miss a SIGTERM while it is starting
	stderr, err := b.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := b.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	running := make(chan bool, 1)
	var log strings.Builder
	b.read.Go(func() {
		defer close(running)
		for lines := bufio.NewScanner(stderr); lines.Scan(); {
			log.WriteString(lines.Text() + "\n")
			if strings.HasSuffix(lines.Text(), " running") {
				running <- true
			}
		}
	})
	if !<-running {
		b.end()
		if strings.Contains(log.String(), "Websockets support not available") {
			t.Skipf("this mosquitto was built without WebSockets")
		}
		t.Fatalf("mosquitto ended: %s", log.String())
	}
}

// end stops the process and waits until it has exited.
func (b *Broker) end() {
	b.stop()
	b.read.Wait()
	_ = b.cmd.Wait()
}
