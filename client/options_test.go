package client_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/eclipse/paho.golang/packets"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/emulator"
	"github.com/sscli/sscli/internal/mqtt"
	"github.com/sscli/sscli/internal/testkit/freeport"
	"github.com/sscli/sscli/internal/testkit/testpeer"
	"github.com/sscli/sscli/internal/wire"
)

func TestInvalidOptions(t *testing.T) {
	t.Parallel()
	store := emulator.Start(t)
	for name, o := range map[string]client.Options{
		"client id statestore":        {ClientID: "statestore"},
		"client id with NUL":          {ClientID: "a\x00"},
		"client id not UTF-8":         {ClientID: "\xff"},
		"client id too long":          {ClientID: strings.Repeat("x", 40_000)},
		"request topic":               {ResponseTopic: wire.RequestTopic},
		"notification topic":          {ResponseTopic: wire.NotifyTopic("a", "b")},
		"wildcard +":                  {ResponseTopic: "clients/+/answers"},
		"wildcard #":                  {ResponseTopic: "clients/#"},
		"response topic with NUL":     {ResponseTopic: "a\x00"},
		"response topic of 64 KiB":    {ResponseTopic: strings.Repeat("x", 1<<16)},
		"user name with NUL":          {Username: "a\x00b"},
		"user name not UTF-8":         {Username: "\xff"},
		"user name of 64 KiB":         {Username: strings.Repeat("x", 1<<16)},
		"metric category with NUL":    {MetricCategory: "a\x00"},
		"metric category of 64 KiB":   {MetricCategory: strings.Repeat("x", 1<<16)},
		"negative time-out":           {Timeout: -time.Second},
		"keep-alive of half a second": {KeepAlive: time.Second / 2},
		"negative keep-alive":         {KeepAlive: -time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			var seen recorder
			o.Address, o.Trace = store.Addr().String(), seen.record
			_, err := client.Dial(t.Context(), o)
			as[*client.InvalidError](t, err)
			_, err = single(t.Context(), o, client.Get("k"))
			as[*client.InvalidError](t, err)
			if len(seen.events) > 0 {
				t.Errorf("%d packets were sent", len(seen.events))
			}
		})
	}
	_, err := client.Dial(t.Context(), client.Options{ResponseTopic: wire.RequestTopic})
	if !errors.Is(err, wire.ErrForbiddenResponseTopic) {
		t.Error(err)
	}
}

// TestMetricCategory: the broker groups clients by a user property of CONNECT.
func TestMetricCategory(t *testing.T) {
	t.Parallel()
	for category, want := range map[string]string{"": "sscli", "site/7": "site/7"} {
		sent := make(chan []packets.User, 1)
		address := testpeer.Serve(t, func(_ int, nc net.Conn) {
			if cp, err := packets.ReadPacket(nc); err == nil {
				sent <- cp.Content.(*packets.Connect).Properties.User
			}
		})
		// The peer does not answer, so Dial always fails.
		_, err := client.Dial(t.Context(), client.Options{Address: address, MetricCategory: category, NoPipelining: true})
		as[*client.DialError](t, err)
		if got := <-sent; len(got) != 1 || got[0] != (packets.User{Key: "metriccategory", Value: want}) {
			t.Errorf("%q: %v", category, got)
		}
	}
}

// TestRandomClientIDs: two processes must not take each other's connection over.
func TestRandomClientIDs(t *testing.T) {
	t.Parallel()
	seen := make(map[string]bool)
	for range 1000 {
		id := client.NewClientID()
		if err := wire.CheckClientID(id); err != nil || seen[id] || !strings.HasPrefix(id, "sscli-") {
			t.Fatalf("%q: %v", id, err)
		}
		seen[id] = true
	}
	store := emulator.Start(t)
	const n = 10
	var sessions []*client.Session
	for range n {
		sessions = append(sessions, dial(t, store, client.Options{}))
	}
	for _, s := range sessions {
		must(s.Get(t.Context(), "k"))(t)
	}
	if got := store.State().Clients; got != n {
		t.Errorf("%d clients, want %d", got, n)
	}
}

func TestLogin(t *testing.T) {
	t.Parallel()
	store := emulator.Start(t, emulator.Options{CheckLogin: emulator.Passwords(map[string]string{"ann": "secret\x00"})})
	for _, test := range []struct {
		user     string
		password func() ([]byte, error)
		want     bool
	}{
		{"ann", client.Secret("secret\x00"), true},
		{"ann", client.Secret("secret"), false},
		{"ann", nil, false},
		{"", nil, false},
		{"bob", client.Secret("secret\x00"), false},
	} {
		o := client.Options{Address: store.Addr().String(), Username: test.user, Password: test.password}
		_, err := single(t.Context(), o, client.Get("k"))
		if test.want {
			if err != nil {
				t.Errorf("%q: %v", test.user, err)
			}
			continue
		}
		if e := as[*mqtt.DialError](t, err); e.Stage != mqtt.StageConnect {
			t.Error(err)
		}
		if e := as[*mqtt.ReasonError](t, err); e.Code != mqtt.ReasonBadLogin {
			t.Error(err)
		}
	}
}

// TestReceiveMaximumOne: a broker that allows one unacknowledged publish at a time never gets more.
func TestReceiveMaximumOne(t *testing.T) {
	t.Parallel()
	store := emulator.Start(t, emulator.Options{Limits: emulator.Limits{ReceiveMaximum: 1}})
	s := dial(t, store, client.Options{})
	p := s.Pipeline(20)
	var all []*client.InFlight
	for i := range 100 {
		all = append(all, must(p.Send(t.Context(), client.Set(fmt.Sprint(i), "")))(t))
	}
	for _, f := range all {
		must(f.Wait(context.Background()))(t)
	}
}

func TestTLS(t *testing.T) {
	t.Parallel()
	web := httptest.NewTLSServer(nil) // has a certificate for 127.0.0.1
	defer web.Close()
	store := emulator.Start(t, emulator.Options{TLS: &tls.Config{Certificates: web.TLS.Certificates}})
	trusted := x509.NewCertPool()
	trusted.AddCert(web.Certificate())
	s := dial(t, store, client.Options{TLS: &tls.Config{RootCAs: trusted}})
	must(s.Get(t.Context(), "k"))(t)
	store.DropAll()
	get(t, s, "k")
	_, err := client.Dial(t.Context(), client.Options{Address: store.Addr().String(), TLS: &tls.Config{RootCAs: x509.NewCertPool()}})
	if e := as[*mqtt.DialError](t, err); e.Stage != mqtt.StageTLS {
		t.Error(err)
	}
	as[x509.UnknownAuthorityError](t, err)
}

// silent listens for connections and sends nothing.
func silent(t *testing.T) string {
	t.Helper()
	ln := must(net.Listen("tcp", "127.0.0.1:0"))(t)
	t.Cleanup(func() { ln.Close() })
	return ln.Addr().String()
}

func TestDialTimeout(t *testing.T) {
	t.Parallel()
	short := 2 * time.Second
	ctx, cancel := context.WithTimeout(t.Context(), short)
	defer cancel()
	_, err := client.Dial(ctx, client.Options{Address: silent(t)})
	if e := as[*mqtt.DialError](t, err); e.Stage != mqtt.StageConnect || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("of the context: %v", err)
	}
	_, err = client.Dial(t.Context(), client.Options{Address: silent(t), Timeout: short})
	if e := as[*mqtt.DialError](t, err); e.Stage != mqtt.StageConnect || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("of the options: %v", err)
	}
}

func TestDialUnreachable(t *testing.T) {
	t.Parallel()
	address := freeport.Address(t)
	_, err := client.Dial(t.Context(), client.Options{Address: address})
	if e := as[*mqtt.DialError](t, err); e.Stage != mqtt.StageTCP {
		t.Error(err)
	}
	done, cancel := context.WithCancel(t.Context())
	cancel()
	for range 20 {
		_, err := client.Dial(done, client.Options{Address: address})
		if as[*mqtt.DialError](t, err); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}
}
