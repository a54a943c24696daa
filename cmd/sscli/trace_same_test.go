package main

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/eclipse/paho.golang/packets"
	"github.com/google/go-cmp/cmp"

	"github.com/sscli/sscli/emulator"
)

// A recorder is a proxy in front of a broker that records what clients send.
type recorder struct {
	net.Listener
	broker string
	early  bool // hold the broker's packets back until the client has sent a PUBLISH

	mu      sync.Mutex
	sent    []string
	acks    int // PUBACKs, whose place among the other packets depends on the time of replies
	serving sync.WaitGroup
}

func record(t *testing.T, broker string, early bool) *recorder {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &recorder{Listener: l, broker: broker, early: early}
	t.Cleanup(func() { l.Close() })
	r.serving.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			r.serving.Go(func() { r.serve(c) })
		}
	})
	return r
}

func (r *recorder) serve(c net.Conn) {
	defer c.Close()
	b, err := net.Dial("tcp", r.broker)
	if err != nil {
		return
	}
	defer b.Close()
	published := make(chan struct{})
	once := sync.OnceFunc(func() { close(published) })
	if !r.early {
		once()
	}
	go func() {
		<-published
		_, _ = io.Copy(c, b)
		c.Close()
	}()
	defer once()
	for from := io.TeeReader(c, b); ; {
		p, err := packets.ReadPacket(from)
		if err != nil {
			return
		}
		r.note(p)
		if p.Type == packets.PUBLISH {
			once()
		}
	}
}

// random matches a value that no key has, and a holder, whose length depends on the process id.
var random = regexp.MustCompile(`\$\d+\r\n[^\r]*(--ask|@[^:\r]*:\d+:)[ A-Za-z2-7]+`)

func (r *recorder) note(p *packets.ControlPacket) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch c := p.Content.(type) {
	case *packets.Puback:
		r.acks++
	case *packets.Subscribe:
		for _, s := range c.Subscriptions {
			r.sent = append(r.sent, "SUBSCRIBE "+s.Topic)
		}
	case *packets.Publish:
		r.sent = append(r.sent, fmt.Sprintf("PUBLISH %s %q", c.Topic, random.ReplaceAll(c.Payload, nil)))
	default:
		r.sent = append(r.sent, p.PacketType())
	}
}

// TestTraceSendsTheSame: --trace and --trace-file change no packet that is sent, nor their order, nor what is sent before an
// answer.
func TestTraceSendsTheSame(t *testing.T) {
	const early = "early "
	for _, line := range []string{
		early + "get k", "get k", "get missing", "get k other missing", "set k v", "set k v --nx", "set k v --px 100000",
		"set fenced 2", "set fenced 2 --fence 1:0:x", "set fenced 2 --force-fence", "del fenced", "del k", "del k missing",
		"vdel k 1", "vdel k other", "vdel missing 1", "vdel fenced 1", "set k -f FILE", "edit k --help", "explain fenced", "explain fenced --ask", "call GET k",
		"watch k --until set", "watch k other --until value=2", "watch --match oth* --until set", "watch --match [k --until set",
		"lock acquire l --holder me --ttl 1h", "lock acquire busy --holder me --wait 0s", "lock acquire busy --holder other --ttl 1h", "lock renew busy --holder other --ttl 1h", "lock release busy --holder other",
		"lock release l --holder me", "lock status busy", "lock list", "lock break busy --yes", "lock run l --holder me --ttl 1h -- sscli version", "lock run busy --try -- sscli version",
		"scan", "scan k*", "scan k* --long", "export k* fenced", "batch LINES", "batch LINES --keep-going", "batch LINES --inflight 8 --keep-going",
		"ping -n 1", "dataset show k", "check k", "del --match k* --yes",
	} {
		t.Run(line, func(t *testing.T) {
			t.Parallel()
			line, early := strings.CutPrefix(line, early)
			var sent [3][]string
			var acks, codes [3]int
			for i, flags := range []string{"", "--trace", "--trace-file=" + filepath.Join(t.TempDir(), "trace")} {
				sent[i], acks[i], codes[i] = sentBy(t, early, line, flags)
			}
			for i := range sent {
				if diff := cmp.Diff(sent[0], sent[i]); diff != "" {
					t.Errorf("with a trace (%d): -without +with\n%s", i, diff)
				}
			}
			if acks[0] != acks[1] || acks[0] != acks[2] || codes[0] != codes[1] || codes[0] != codes[2] {
				t.Errorf("PUBACKs %v, exit codes %v", acks, codes)
			}
		})
	}
}

// sentBy runs a command line against a new store, and returns what it sent.
func sentBy(t *testing.T, early bool, line, flags string) (sent []string, acks, code int) {
	t.Helper()
	store := emulator.Start(t)
	for key, value := range map[string]string{"k": "1", "k2": "2", "other": "2", "busy": "other"} {
		if _, err := store.Set(key, value); err != nil {
			t.Fatal(err)
		}
	}
	dir := t.TempDir()
	for name, text := range map[string]string{
		"FILE": "value", "LINES": "get k\nset k 2\nvdel k other\nset fenced 3\ndel missing\nget k other\nscan k*\nvdel k 2\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	run := func(url string, args ...string) int {
		var stderr bytes.Buffer
		cmd := &exec.Cmd{Path: testProgram(t), Dir: dir, Args: append([]string{"sscli", "-u", url, "-i", "me"}, args...), Env: append(os.Environ(), "GORACE=atexit_sleep_ms=0"), Stderr: &stderr}
		err := cmd.Run()
		if cmd.ProcessState == nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(flags, "--trace") && !strings.Contains(line, "--help") && strings.Contains(flags, "=") == strings.Contains(stderr.String(), "-> CONNECT") && url != store.URL() {
			t.Errorf("%q: the trace on standard error: %s", args, stderr.String())
		}
		return cmd.ProcessState.ExitCode()
	}
	if code := run(store.URL(), "set", "fenced", "1", "--fence", "1000:0:x"); code != 0 {
		t.Fatalf("exit code %d", code)
	}
	r := record(t, strings.TrimPrefix(store.URL(), "mqtt://"), early)
	args := strings.Fields(line)
	if flags != "" {
		args = append([]string{flags}, args...)
	}
	code = run("mqtt://"+r.Addr().String(), args...)
	r.Close()
	r.serving.Wait()
	for i := 1; i < len(r.sent); i++ { // the watches of several keys end in any order
		for j := i; j > 0 && strings.Contains(r.sent[j], "STOP") && strings.Contains(r.sent[j-1], "STOP") && r.sent[j] < r.sent[j-1]; j-- {
			r.sent[j], r.sent[j-1] = r.sent[j-1], r.sent[j]
		}
	}
	return r.sent, r.acks, code
}
