package client_test

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eclipse/paho.golang/packets"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/emulator"
	"github.com/sscli/sscli/internal/mqtt"
	"github.com/sscli/sscli/internal/testkit/await"
	"github.com/sscli/sscli/internal/testkit/mosquitto"
	"github.com/sscli/sscli/internal/testkit/testcert"
	"github.com/sscli/sscli/internal/testkit/testpeer"
)

// certificate returns a broker's TLS configuration with a new certificate, the client's configuration that
// trusts it, and a file with the certificate and its key. The certificate is also valid in virtual time.
func certificate(t testing.TB) (broker, trust *tls.Config, file string) {
	t.Helper()
	template := testcert.CA("broker")
	template.NotBefore = time.Unix(0, 0)
	cert := testcert.New(t, nil, template)
	file = filepath.Join(t.TempDir(), "broker.pem")
	if err := os.WriteFile(file, append(cert.PEM(), cert.KeyPEM(t)...), 0o600); err != nil {
		t.Fatal(err)
	}
	broker = cert.Server()
	broker.MinVersion = tls.VersionTLS13
	return broker, cert.Trust(), file
}

// TestFlights counts the flights of a one-shot request: each flight after the first costs one round trip.
// Nobody waits for the last one, DISCONNECT. It runs in virtual time.
func TestFlights(t *testing.T) {
	t.Parallel()
	get, set := client.Get("k"), client.Set("k", []byte("v"))
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	secure, trust, _ := certificate(t)
	const all = "CONNECT SUBSCRIBE PUBLISH"
	const bye = "PUBACK DISCONNECT"
	for name, test := range map[string]struct {
		broker  emulator.Options
		o       client.Options
		command client.Command
		action  emulator.Action // for the first request
		want    []string
		refused bool
	}{
		"get":               {command: get, want: []string{all, bye}},
		"call GET":          {command: client.Call([]string{"GET", "k"}), want: []string{all, bye}},
		"set":               {command: set, want: []string{"CONNECT SUBSCRIBE", "PUBLISH", bye}},
		"call KEYNOTIFY":    {command: client.Call([]string{"KEYNOTIFY", "k"}), want: []string{"CONNECT SUBSCRIBE", "PUBLISH", bye}},
		"get, TLS 1.3":      {broker: emulator.Options{TLS: secure}, o: client.Options{TLS: trust}, command: get, want: []string{"", "", ""}},
		"set, TLS 1.3":      {broker: emulator.Options{TLS: secure}, o: client.Options{TLS: trust}, command: set, want: []string{"", "", "", ""}},
		"get, token":        {o: client.Options{TokenFile: token}, command: get, want: []string{"CONNECT", "SUBSCRIBE PUBLISH", bye}},
		"set, token":        {o: client.Options{TokenFile: token}, command: set, want: []string{"CONNECT", "SUBSCRIBE", "PUBLISH", bye}},
		"get, refused":      {broker: emulator.Options{CheckLogin: emulator.Passwords(nil)}, command: get, want: []string{all}, refused: true},
		"set, refused":      {broker: emulator.Options{CheckLogin: emulator.Passwords(nil)}, command: set, want: []string{"CONNECT SUBSCRIBE"}, refused: true},
		"get, asked again":  {command: get, action: emulator.Action{DropReply: true}, want: []string{all, "PUBLISH", bye}},
		"get, late PUBACK":  {command: get, action: emulator.Action{PubackLast: true}, want: []string{all, bye}},
		"get, step by step": {o: client.Options{NoPipelining: true}, command: get, want: []string{"CONNECT", "SUBSCRIBE", "PUBLISH", bye}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				test.broker.InProcess = true
				store := emulator.Start(t, test.broker)
				store.Intercept(once(test.action))
				line := &line{delay: 20 * time.Millisecond}
				o := test.o
				o.Address = "127.0.0.1:8883" // the name in the certificate
				o.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
					nc, err := store.Dial(ctx, network, address)
					return line.over(nc), err
				}
				if _, err := single(t.Context(), o, test.command); (err != nil) != test.refused {
					t.Fatal(err)
				}
				await.State(t, store, func(s emulator.State) bool { return s.Connections == 0 })
				var got []string
				for _, flight := range line.sent() {
					var writes []string
					for _, write := range flight {
						if o.TLS == nil {
							writes = append(writes, packetNames(t, write))
						}
					}
					got = append(got, strings.Join(writes, " | "))
				}
				if fmt.Sprint(got) != fmt.Sprint(test.want) {
					t.Errorf("got  %q\nwant %q", got, test.want)
				}
			})
		})
	}
}

// TestAskAgain: a read that is sent again is the same request.
func TestAskAgain(t *testing.T) {
	t.Parallel()
	store := emulator.Start(t)
	must(store.Set("k", "v"))(t)
	store.Intercept(once(emulator.Action{Drop: true}))
	var seen recorder
	began := time.Now()
	r, err := single(t.Context(), client.Options{Address: store.Addr().String(), Trace: seen.record}, client.Get("k"))
	if err != nil || string(r.(client.GetResult).Value) != "v" {
		t.Fatal(r, err)
	}
	if d := time.Since(began); d < 250*time.Millisecond {
		t.Errorf("asked again after %v", d)
	}
	requests := seen.requests()
	if len(requests) != 2 || string(requests[0].Correlation) != string(requests[1].Correlation) || string(requests[0].Payload) != string(requests[1].Payload) {
		t.Errorf("%+v", requests)
	}
}

// TestOnceAsksTwiceAtMost: after its second attempt, a read times out as usual, or waits as long as it may.
func TestOnceAsksTwiceAtMost(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := emulator.Start(t, emulator.Options{InProcess: true})
		store.Intercept(always(emulator.Action{Drop: true}))
		ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second)
		defer cancel()
		if _, err := single(ctx, client.Options{Address: "store", Dial: store.Dial}, client.Get("k")); err != context.DeadlineExceeded {
			t.Error(err)
		}
		if n := store.State().Requests; n != 2 {
			t.Errorf("%d requests, want 2", n)
		}
	})
}

// TestOnceLostWrite loses the reply to a write in every way: the write is sent once, and the reported outcome
// is true.
func TestOnceLostWrite(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		action emulator.Action
		want   client.Outcome
	}{
		"dropped":                 {emulator.Action{Drop: true}, client.NotApplied},
		"cut before":              {emulator.Action{Cut: true}, client.NotApplied},
		"reply dropped":           {emulator.Action{DropReply: true}, client.Fulfilled},
		"reply and PUBACK lost":   {emulator.Action{DropReply: true, NoPuback: true}, client.Fulfilled},
		"cut after":               {emulator.Action{CutAfter: true}, client.Fulfilled},
		"reply after the timeout": {emulator.Action{DelayReply: time.Hour}, client.Fulfilled},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				// The skew makes the version of the key older than the write's timestamp.
				store := emulator.Start(t, emulator.Options{InProcess: true, Skew: -time.Second})
				must(store.Set("k", "before"))(t)
				o := client.Options{Address: "store", Dial: store.Dial}
				before := must(single(t.Context(), o, client.Get("k")))(t)
				var sets atomic.Int32
				store.Intercept(func(r emulator.Request) emulator.Action {
					if strings.Contains(string(r.Payload), "SET") {
						sets.Add(1)
						return test.action
					}
					return emulator.Action{}
				})
				ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
				defer cancel()
				_, err := single(ctx, o, client.Set("k", []byte("after")))
				lost := as[*client.LostReplyError](t, err)
				r, err := readBack(t.Context(), o, lost)
				if err != nil || r.Outcome != test.want {
					t.Errorf("outcome %d, %v, want %d", r.Outcome, err, test.want)
				}
				if n := sets.Load(); n != 1 {
					t.Errorf("%d SETs, want 1", n)
				}
				changes := 0
				for _, c := range store.Changes() {
					if c.Version.Compare(before.Info().Version) > 0 {
						changes++
					}
				}
				if want := map[client.Outcome]int{client.Fulfilled: 1}[test.want]; changes != want {
					t.Errorf("%d changes, want %d; read %v", changes, want, r)
				}
			})
		})
	}
}

// pedant starts a broker that closes a connection on which anything follows CONNECT before CONNACK. It counts
// the connections.
func pedant(t *testing.T, broker string, connections *atomic.Int32) string {
	t.Helper()
	return testpeer.Serve(t, func(_ int, nc net.Conn) {
		connections.Add(1)
		first := make([]byte, 4096)
		n, err := nc.Read(first)
		if err != nil || packetNames(t, string(first[:n])) != "CONNECT" {
			return
		}
		testpeer.Relay(nc, broker, func(to, from net.Conn) {
			if _, err := to.Write(first[:n]); err != nil {
				t.Error(err)
			}
			io.Copy(to, from)
		}, nil)
	})
}

// TestStepByStep: one-shot requests and sessions work with a broker that accepts nothing before CONNACK, and
// a session remembers it.
func TestStepByStep(t *testing.T) {
	t.Parallel()
	store := emulator.Start(t)
	must(store.Set("k", "v"))(t)
	var connections atomic.Int32
	o := client.Options{Address: pedant(t, store.Addr().String(), &connections)}
	for _, c := range []client.Command{client.Get("k"), client.Set("k", []byte("v"))} {
		connections.Store(0)
		if _, err := single(t.Context(), o, c); err != nil || connections.Load() != 2 {
			t.Errorf("%s: %v, %d connections", c.Verb(), err, connections.Load())
		}
	}
	connections.Store(0)
	s, err := client.Dial(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	store.DropAll()
	get(t, s, "k")
	if n := connections.Load(); n != 3 {
		t.Errorf("%d connections of a session that was made twice, want 3", n)
	}
	connections.Store(0)
	o.NoPipelining = true
	if _, err := single(t.Context(), o, client.Get("k")); err != nil || connections.Load() != 1 {
		t.Errorf("without pipelining: %v, %d connections", err, connections.Load())
	}
}

// TestOnceErrors: a read sent together with CONNECT fails with the same error as a read that waited for
// CONNACK.
func TestOnceErrors(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 500)
	for name, test := range map[string]struct {
		broker emulator.Options
		action emulator.Action
		key    string
		want   string
	}{
		"too large":       {broker: emulator.Options{Limits: emulator.Limits{MaxPacketSize: 600}}, key: long, want: "is larger than the 600 bytes that the broker accepts"},
		"subscription":    {broker: emulator.Options{Policy: emulator.PolicyFunc(func(a emulator.Access) bool { return a.Method != emulator.Subscribe })}, want: "MQTT SUBSCRIBE at"},
		"request topic":   {broker: emulator.Options{Policy: emulator.PolicyFunc(func(a emulator.Access) bool { return a.Method != emulator.Publish })}, want: "PUBACK 0x87"},
		"login":           {broker: emulator.Options{CheckLogin: emulator.Passwords(nil)}, want: "CONNACK 0x86"},
		"refused":         {action: emulator.Action{Refuse: 0x97}, want: "PUBACK 0x97"},
		"disconnected":    {action: emulator.Action{Disconnect: 0x8B}, want: "connection lost: DISCONNECT 0x8B"},
		"cut":             {action: emulator.Action{Cut: true}, want: "connection lost: "},
		"no such key":     {broker: emulator.Options{Policy: emulator.PolicyFunc(func(a emulator.Access) bool { return a.On != "k" })}, want: "not authorized"},
		"receive maximum": {broker: emulator.Options{Limits: emulator.Limits{ReceiveMaximum: 1}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := emulator.Start(t, test.broker)
			store.Intercept(always(test.action))
			key := test.key
			if key == "" {
				key = "k"
			}
			var texts []string
			for _, o := range []client.Options{{NoPipelining: true}, {}, {}, {}} {
				o.Address, o.ClientID = store.Addr().String(), "c"
				await.State(t, store, func(s emulator.State) bool { return s.Connections == 0 }) // the previous connection is closed
				_, err := single(t.Context(), o, client.Get(key))
				text := fmt.Sprint(err)
				if test.action.Cut {
					// Which side notices the closed connection first is a matter of timing.
					text, _, _ = strings.Cut(text, "the broker closed the connection")
					text, _, _ = strings.Cut(text, "read tcp")
				}
				texts = append(texts, text)
			}
			for _, text := range texts {
				if text != texts[0] || test.want == "" && text != "<nil>" || !strings.Contains(text, test.want) {
					t.Errorf("%q, want %q", texts, test.want)
					break
				}
			}
		})
	}
}

// TestOnceInterrupted: an interrupted request fails with the cause, whatever it was waiting for.
func TestOnceInterrupted(t *testing.T) {
	t.Parallel()
	store := emulator.Start(t)
	interrupted := errors.New("interrupted")
	ctx, cancel := context.WithCancelCause(t.Context())
	store.Intercept(func(emulator.Request) emulator.Action {
		cancel(interrupted)
		return emulator.Action{Drop: true}
	})
	if _, err := single(ctx, client.Options{Address: store.Addr().String()}, client.Get("k")); err != interrupted {
		t.Error(err)
	}
}

// TestEarlyAnswer: the broker replies before SUBACK, as a clustered broker may do.
func TestEarlyAnswer(t *testing.T) {
	t.Parallel()
	address := testpeer.Serve(t, func(_ int, nc net.Conn) {
		var request *packets.Publish
		for request == nil {
			cp, err := packets.ReadPacket(nc)
			if err != nil {
				t.Error(err)
				return
			}
			request, _ = cp.Content.(*packets.Publish)
		}
		answer := &packets.Publish{Topic: request.Properties.ResponseTopic, Payload: []byte("$1\r\nv\r\n"), Properties: &packets.Properties{
			CorrelationData: request.Properties.CorrelationData, User: []packets.User{{Key: "__stat", Value: "200"}, {Key: "__ts", Value: "1696374425000:1:StateStore"}},
		}}
		nc.Write([]byte{0x20, 3, 0, 0, 0})
		var b strings.Builder
		if _, err := answer.WriteTo(&b); err != nil {
			t.Error(err)
		}
		// paho also writes the packet type into the flags
		nc.Write([]byte("\x30" + b.String()[1:]))
		for { // until DISCONNECT
			if _, err := packets.ReadPacket(nc); err != nil {
				return
			}
		}
	})
	r, err := single(t.Context(), client.Options{Address: address}, client.Get("k"))
	if err != nil || string(r.(client.GetResult).Value) != "v" {
		t.Error(r, err)
	}
}

// TestManyFlights sends many one-shot requests and fails if a reply is lost. On a slow machine a request is
// sent twice, and then it is answered twice. For more: scripts/bench.sh -scale 10 flights.
func TestManyFlights(t *testing.T) {
	t.Parallel()
	const flights = 300
	secure, trust, file := certificate(t)
	fly := func(t *testing.T, o client.Options) {
		t.Helper()
		must(single(t.Context(), o, client.Set("k", []byte("v"))))(t)
		for i := range flights {
			flight(t, o, i)
		}
	}
	attach := func(t *testing.T, global string) (plain, overTLS client.Options) {
		t.Helper()
		broker := mosquitto.Start(t, global, mosquitto.Anonymous, mosquitto.Anonymous+"\ncertfile "+file+"\nkeyfile "+file)
		store, err := emulator.Attach(t.Context(), emulator.AttachOptions{Address: broker.Addresses[0], ClientID: "store"})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { store.Close() })
		return client.Options{Address: broker.Addresses[0]}, client.Options{Address: broker.Addresses[1], TLS: trust}
	}
	t.Run("emulator", func(t *testing.T) { fly(t, client.Options{Address: emulator.Start(t).Addr().String()}) })
	t.Run("emulator, TLS 1.3", func(t *testing.T) {
		fly(t, client.Options{Address: emulator.Start(t, emulator.Options{TLS: secure}).Addr().String(), TLS: trust})
	})
	for _, global := range []string{"", "set_tcp_nodelay true"} {
		t.Run("Mosquitto, "+cmp.Or(global, "stock"), func(t *testing.T) {
			plain, overTLS := attach(t, global)
			fly(t, plain)
			fly(t, overTLS)
		})
	}
}

// flight sends a GET over its own session and waits for the replies to all its copies.
func flight(t *testing.T, o client.Options, i int) {
	t.Helper()
	var seen recorder
	answers := make(chan struct{}, 10)
	o.Timeout = time.Minute // a lost reply never comes
	o.Trace = func(e mqtt.Event) {
		seen.record(e)
		if e.Type == "PUBLISH" && !e.Sent {
			answers <- struct{}{}
		}
	}
	s := must(client.New(o))(t)
	defer s.Close()
	r, err := s.Do(t.Context(), client.Get("k"))
	if err != nil || string(r.(client.GetResult).Value) != "v" {
		t.Fatalf("flight %d, TLS %t: %+v, %v, %s", i, o.TLS != nil, r, err, seen.times())
	}
	sent := len(seen.requests())
	for n := range sent {
		select {
		case <-answers:
		case <-time.After(time.Minute):
			t.Fatalf("flight %d was asked %d times and answered %d times", i, sent, n)
		}
	}
}

// BenchmarkSingle opens a connection for each GET. The allocations include those of the emulator.
func BenchmarkSingle(b *testing.B) {
	store := emulator.Start(b)
	o := client.Options{Address: store.Addr().String()}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := single(context.Background(), o, client.Get("key")); err != nil {
			b.Fatal(err)
		}
	}
}

// single sends one request over its own session.
func single(ctx context.Context, o client.Options, c client.Command) (client.Result, error) {
	s, err := client.New(patient(o))
	if err != nil {
		return nil, err
	}
	defer s.Close()
	return s.Do(ctx, c)
}

// readBack reads a lost write back over its own session.
func readBack(ctx context.Context, o client.Options, lost *client.LostReplyError) (client.ReadBackResult, error) {
	s, err := client.New(o)
	if err != nil {
		return client.ReadBackResult{}, err
	}
	defer s.Close()
	return s.ReadBack(ctx, lost)
}
