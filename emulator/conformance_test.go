package emulator_test

import (
	"bufio"
	"context"
	"encoding/hex"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/eclipse/paho.golang/autopaho"
	"github.com/eclipse/paho.golang/paho"

	"github.com/sscli/sscli/emulator"
	"github.com/sscli/sscli/internal/testkit/await"
	"github.com/sscli/sscli/internal/wire"
)

// These tests check the broker with clients from other projects: Mosquitto's, paho.golang and its autopaho,
// and Debian's python3-paho-mqtt.

// foreign is a client from another project.
type foreign interface {
	// publish sends messages and returns when they are acknowledged.
	publish(t *testing.T, topic string, qos byte, retain bool, payloads ...string)

	// listen returns a subscribed client. lasting requests a session that outlives its connection. will is
	// the topic of a will message, "gone"; empty = none.
	listen(t *testing.T, id, filter string, qos byte, lasting bool, will string) *listening
}

// listening is a foreign client that prints the messages that it receives.
type listening struct {
	messages chan string
	leave    func() // disconnects with DISCONNECT
	kill     func() // disconnects without DISCONNECT
	asks     bool   // leave makes the broker publish the will nevertheless
}

func (l *listening) next(t *testing.T) string {
	t.Helper()
	select {
	case m := <-l.messages:
		return m
	case <-time.After(patience):
		t.Fatal("no message")
		return ""
	}
}

// command is a foreign client that consists of programs.
type command struct {
	publisher func(topic string, qos byte, retain bool) []string
	listener  func(id, filter string, qos byte, lasting bool, will string) []string
	asks      bool // see listening.asks
}

func (f command) publish(t *testing.T, topic string, qos byte, retain bool, payloads ...string) {
	t.Helper()
	words := f.publisher(topic, qos, retain)
	cmd := exec.Command(words[0], words[1:]...)
	cmd.Stdin = strings.NewReader(strings.Join(payloads, "\n") + "\n")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", words, err, out)
	}
}

func (f command) listen(t *testing.T, id, filter string, qos byte, lasting bool, will string) *listening {
	t.Helper()
	words := f.listener(id, filter, qos, lasting, will)
	cmd := exec.Command(words[0], words[1:]...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	subscribed := make(chan struct{})
	messages := make(chan string, 1000)
	var reading sync.WaitGroup
	reading.Go(func() {
		once := sync.OnceFunc(func() { close(subscribed) })
		for lines := bufio.NewScanner(out); lines.Scan(); {
			line := lines.Text()
			if payload, ok := strings.CutPrefix(line, "MSG "); ok {
				messages <- payload
			} else if strings.HasPrefix(line, "Subscribed") {
				once()
			}
		}
	})
	end := func(how os.Signal) func() {
		return sync.OnceFunc(func() {
			_ = cmd.Process.Signal(how) // the process may have ended already
			reading.Wait()
			_ = cmd.Wait() // the error only reports the signal
		})
	}
	l := &listening{messages: messages, leave: end(syscall.SIGTERM), kill: end(os.Kill), asks: f.asks}
	t.Cleanup(l.kill)
	select {
	case <-subscribed:
	case <-time.After(patience):
		t.Fatalf("%s is not subscribed", words)
	}
	return l
}

// mosquittoClients returns mosquitto_pub and mosquitto_sub.
func mosquittoClients(t *testing.T, s *emulator.Server, version string) foreign {
	for _, name := range []string{"mosquitto_pub", "mosquitto_sub", "stdbuf"} {
		if _, err := exec.LookPath(name); err != nil {
			t.Skip(err)
		}
	}
	host, port, _ := net.SplitHostPort(s.Addr().String())
	common := []string{"-V", version, "-h", host, "-p", port}
	return command{
		asks: version == "5", // with DISCONNECT 0x04
		publisher: func(topic string, qos byte, retain bool) []string {
			words := slices.Concat([]string{"mosquitto_pub"}, common, []string{"-l", "-t", topic, "-q", fmt.Sprint(qos)})
			if retain {
				words = append(words, "-r")
			}
			return words
		},
		listener: func(id, filter string, qos byte, lasting bool, will string) []string {
			words := slices.Concat([]string{"stdbuf", "-oL", "mosquitto_sub"}, common, []string{"-d", "-F", "MSG %p", "-i", id, "-t", filter, "-q", fmt.Sprint(qos)})
			if lasting {
				words = append(words, "-c")
				if version == "5" {
					words = append(words, "-x", "3600")
				}
			}
			if will != "" {
				words = append(words, "--will-topic", will, "--will-payload", "gone", "--will-qos", "1")
			}
			return words
		},
	}
}

// pythonClient returns Debian's python3-paho-mqtt.
func pythonClient(t *testing.T, s *emulator.Server, version string) foreign {
	python := ""
	for _, name := range []string{"/usr/bin/python3", "python3"} { // Debian's Python finds Debian's packages
		if exec.Command(name, "-c", "import paho.mqtt.client").Run() == nil {
			python = name
			break
		}
	}
	if python == "" {
		t.Skip("python3-paho-mqtt is not installed")
	}
	host, port, _ := net.SplitHostPort(s.Addr().String())
	common := []string{python, "testdata/python_client.py", host, port, version}
	return command{
		publisher: func(topic string, qos byte, retain bool) []string {
			return append(slices.Clone(common), "publish", topic, fmt.Sprint(qos), fmt.Sprint(retain))
		},
		listener: func(id, filter string, qos byte, lasting bool, will string) []string {
			return append(slices.Clone(common), "listen", id, filter, fmt.Sprint(qos), fmt.Sprint(lasting), will)
		},
	}
}

// pahoClient is paho.golang's own client.
type pahoClient struct{ s *emulator.Server }

func (f pahoClient) connect(t *testing.T, id string, lasting bool, will string, onMessage func(string)) (*paho.Client, net.Conn) {
	t.Helper()
	conn, err := net.Dial("tcp", f.s.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	c := paho.NewClient(paho.ClientConfig{
		Conn: conn, PacketTimeout: patience,
		OnPublishReceived: []func(paho.PublishReceived) (bool, error){func(p paho.PublishReceived) (bool, error) {
			onMessage(string(p.Packet.Payload))
			return true, nil
		}},
	})
	// No Keep Alive: with one, paho sends PINGREQ at once. If it then closes the connection before it has
	// read PINGRESP, the system resets the connection, and messages with QoS 0 in transit are lost.
	p := &paho.Connect{ClientID: id, CleanStart: !lasting, Properties: &paho.ConnectProperties{}}
	if lasting {
		p.Properties.SessionExpiryInterval = pointer(uint32(3600))
	}
	if will != "" {
		p.WillMessage = &paho.WillMessage{Topic: will, Payload: []byte("gone"), QoS: 1}
	}
	if _, err := c.Connect(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	return c, conn
}

func (f pahoClient) publish(t *testing.T, topic string, qos byte, retain bool, payloads ...string) {
	t.Helper()
	c, _ := f.connect(t, "", false, "", func(string) {})
	for _, payload := range payloads {
		if _, err := c.Publish(t.Context(), &paho.Publish{Topic: topic, QoS: qos, Retain: retain, Payload: []byte(payload)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Disconnect(&paho.Disconnect{}); err != nil {
		t.Fatal(err)
	}
}

func (f pahoClient) listen(t *testing.T, id, filter string, qos byte, lasting bool, will string) *listening {
	t.Helper()
	messages := make(chan string, 1000)
	c, conn := f.connect(t, id, lasting, will, func(payload string) { messages <- payload })
	if _, err := c.Subscribe(t.Context(), &paho.Subscribe{Subscriptions: []paho.SubscribeOptions{{Topic: filter, QoS: qos}}}); err != nil {
		t.Fatal(err)
	}
	l := &listening{
		messages: messages,
		leave:    sync.OnceFunc(func() { _ = c.Disconnect(&paho.Disconnect{}); <-c.Done() }),
		kill:     sync.OnceFunc(func() { conn.Close(); <-c.Done() }),
	}
	t.Cleanup(l.kill)
	return l
}

func TestConformance(t *testing.T) {
	t.Parallel()
	for name, client := range map[string]func(*testing.T, *emulator.Server) foreign{
		"mosquitto, MQTT 5":        func(t *testing.T, s *emulator.Server) foreign { return mosquittoClients(t, s, "5") },
		"mosquitto, MQTT 3.1.1":    func(t *testing.T, s *emulator.Server) foreign { return mosquittoClients(t, s, "311") },
		"paho.golang":              func(_ *testing.T, s *emulator.Server) foreign { return pahoClient{s} },
		"python3-paho, MQTT 5":     func(t *testing.T, s *emulator.Server) foreign { return pythonClient(t, s, "5") },
		"python3-paho, MQTT 3.1.1": func(t *testing.T, s *emulator.Server) foreign { return pythonClient(t, s, "311") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for what, try := range map[string]func(*testing.T, *emulator.Server, foreign){
				"kept messages":       tryKeptMessages,
				"wills":               tryWills,
				"retained messages":   tryRetained,
				"every QoS":           tryQoS,
				"shared subscription": tryShared,
			} {
				t.Run(what, func(t *testing.T) {
					s := emulator.Start(t)
					try(t, s, client(t, s))
				})
			}
		})
	}
}

// numbers returns n payloads.
func numbers(n int) []string {
	var payloads []string
	for i := range n {
		payloads = append(payloads, fmt.Sprint(i))
	}
	return payloads
}

// tryKeptMessages: 200 messages for an absent client arrive in order (MQTT 5, 4.6).
func tryKeptMessages(t *testing.T, s *emulator.Server, f foreign) {
	l := f.listen(t, "sleeper", "kept/#", 2, true, "")
	l.leave()
	await.State(t, s, func(st emulator.State) bool { return st.Clients == 0 })
	for qos := range byte(2) {
		f.publish(t, "kept/a", 1+qos, false, numbers(100)...)
	}
	l = f.listen(t, "sleeper", "kept/#", 2, true, "")
	for i := range 200 {
		if got := l.next(t); got != fmt.Sprint(i%100) {
			t.Fatalf("message %d is %s", i, got)
		}
	}
	f.publish(t, "kept/b", 1, false, "after")
	if got := l.next(t); got != "after" {
		t.Errorf("then %s", got)
	}
}

func tryWills(t *testing.T, s *emulator.Server, f foreign) {
	watch := f.listen(t, "watch", "will/+", 1, false, "")
	polite := f.listen(t, "polite", "x", 0, false, "will/polite")
	polite.leave()
	await.State(t, s, func(st emulator.State) bool { return st.Clients == 1 })
	f.publish(t, "will/none", 1, false, "nothing before this")
	f.listen(t, "doomed", "x", 0, false, "will/doomed").kill()
	all := []string{"nothing before this", "gone"}
	if polite.asks {
		all = slices.Insert(all, 0, "gone")
	}
	for _, want := range all {
		if got := watch.next(t); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func tryRetained(t *testing.T, _ *emulator.Server, f foreign) {
	f.publish(t, "state/a", 1, true, "old", "new")
	f.publish(t, "state/a", 1, false, "passing")
	l := f.listen(t, "late", "state/#", 1, false, "")
	f.publish(t, "state/b", 0, false, "end")
	for _, want := range []string{"new", "end"} {
		if got := l.next(t); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

// tryQoS: each message arrives once, in order.
func tryQoS(t *testing.T, _ *emulator.Server, f foreign) {
	for qos := range byte(3) {
		l := f.listen(t, fmt.Sprintf("l%d", qos), "t", qos, false, "")
		f.publish(t, "t", qos, false, append(numbers(100), "end")...)
		for _, want := range append(numbers(100), "end") {
			if got := l.next(t); got != want {
				t.Fatalf("QoS %d: got %s, want %s", qos, got, want)
			}
		}
		l.leave()
	}
}

// tryShared: each message goes to one member of the group.
func tryShared(t *testing.T, _ *emulator.Server, f foreign) {
	a, b := f.listen(t, "a", "$share/g/jobs/+", 1, false, ""), f.listen(t, "b", "$share/g/jobs/+", 1, false, "")
	f.publish(t, "jobs/x", 1, false, numbers(100)...)
	seen, of := map[string]bool{}, map[*listening]int{}
	for range 100 {
		from, got := a, ""
		select {
		case got = <-a.messages:
		case got = <-b.messages:
			from = b
		case <-time.After(patience):
			t.Fatalf("%d of 100 came", len(seen))
		}
		if seen[got] {
			t.Errorf("%s came twice", got)
		}
		seen[got] = true
		of[from]++
	}
	if of[a] == 0 || of[b] == 0 {
		t.Errorf("%d and %d messages", of[a], of[b])
	}
}

// TestMosquittoRequest: mosquitto_rr sends requests to the store.
func TestMosquittoRequest(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("mosquitto_rr"); err != nil {
		t.Skip(err)
	}
	s := emulator.Start(t)
	if _, err := s.Set("k", "value"); err != nil {
		t.Fatal(err)
	}
	host, port, _ := net.SplitHostPort(s.Addr().String())
	cmd := exec.Command("mosquitto_rr", "-V", "5", "-h", host, "-p", port, "-i", "rr", "-q", "1", "-t", wire.RequestTopic, "-e", "clients/rr/response",
		"-D", "publish", "correlation-data", "1", "-m", string(wire.AppendRequest(nil, "GET", "k")), "-W", "60", "-F", "%x")
	out, err := cmd.CombinedOutput()
	if want := hex.EncodeToString([]byte("$5\r\nvalue\r\n")); err != nil || strings.TrimSpace(string(out)) != want {
		t.Errorf("got %q, %v, want %s", out, err, want)
	}
}

// TestAutopaho: when the connection breaks, autopaho reconnects by itself and receives the messages that its
// session kept.
func TestAutopaho(t *testing.T) {
	t.Parallel()
	s := emulator.Start(t)
	address, err := url.Parse(s.URL())
	if err != nil {
		t.Fatal(err)
	}
	messages := make(chan string, 1000)
	subscribed := make(chan bool, 10)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	manager, err := autopaho.NewConnection(ctx, autopaho.ClientConfig{
		ServerUrls: []*url.URL{address}, KeepAlive: 60, SessionExpiryInterval: 3600, ConnectTimeout: patience,
		ReconnectBackoff: func(int) time.Duration { return time.Millisecond },
		OnConnectionUp: func(m *autopaho.ConnectionManager, ack *paho.Connack) {
			if !ack.SessionPresent {
				if _, err := m.Subscribe(ctx, &paho.Subscribe{Subscriptions: []paho.SubscribeOptions{{Topic: "t", QoS: 2}}}); err != nil {
					t.Error(err)
				}
			}
			subscribed <- ack.SessionPresent
		},
		ClientConfig: paho.ClientConfig{
			ClientID: "auto", PacketTimeout: patience,
			OnPublishReceived: []func(paho.PublishReceived) (bool, error){func(p paho.PublishReceived) (bool, error) {
				messages <- string(p.Packet.Payload)
				return true, nil
			}},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	l := &listening{messages: messages}
	if <-subscribed {
		t.Error("there was a session")
	}
	s.RefuseConnect(func(id, _ string) byte {
		if id == "auto" {
			return 0x89
		}
		return 0
	})
	s.DropAll()
	await.State(t, s, func(st emulator.State) bool { return st.Clients == 0 })
	pahoClient{s}.publish(t, "t", 2, false, numbers(200)...)
	s.RefuseConnect(nil)
	if !<-subscribed {
		t.Error("the session is gone")
	}
	for i := range 200 {
		if got := l.next(t); got != fmt.Sprint(i) {
			t.Fatalf("message %d is %s", i, got)
		}
	}
	if _, err := manager.Publish(ctx, &paho.Publish{Topic: "t", QoS: 2, Payload: []byte("mine")}); err != nil {
		t.Fatal(err)
	}
	if got := l.next(t); got != "mine" {
		t.Errorf("got %s", got)
	}
	if err := manager.Disconnect(ctx); err != nil {
		t.Error(err)
	}
	<-manager.Done()
}
