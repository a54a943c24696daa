package client_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/emulator"
	"github.com/sscli/sscli/internal/mqtt"
)

// TestReadsAreRepeated: within RetryFor, a read whose connection ends, or that gets no reply, is sent again; a write never.
func TestReadsAreRepeated(t *testing.T) {
	t.Parallel()
	fault := map[string]emulator.Action{
		"cut before":   {Cut: true},
		"cut after":    {CutAfter: true},
		"disconnected": {Disconnect: 0x8B},
	}
	type call func(ctx context.Context, s *client.Session) error
	pipelined := func(c client.Command) call {
		return func(ctx context.Context, s *client.Session) error {
			f, err := s.Pipeline(4).Send(ctx, c)
			if err == nil {
				_, err = f.Wait(ctx)
			}
			return err
		}
	}
	do := func(c client.Command) call {
		return func(ctx context.Context, s *client.Session) error { _, err := s.Do(ctx, c); return err }
	}
	reads := map[string]call{
		"Get":      func(ctx context.Context, s *client.Session) error { _, err := s.Get(ctx, "k"); return err },
		"Status":   func(ctx context.Context, s *client.Session) error { _, err := s.LockStatus(ctx, "k"); return err },
		"Call":     do(client.Call([]string{"GET", "k"})),
		"Pipeline": pipelined(client.Get("k")),
		"Results":  send,
		"Keys": func(ctx context.Context, s *client.Session) (err error) {
			for _, err = range s.Keys(ctx, "*") {
			}
			return err
		},
	}
	writes := map[string]call{
		"Set": do(client.Set("k", "v")), "Del": do(client.Del("k")), "VDel": do(client.VDel("k", "v")), "NEX": do(client.Set("k", "v", client.SetOptions{Condition: client.NEX})),
		"Call": do(client.Call([]string{"SET", "k", "v"})), "unknown": do(client.Call([]string{"FROB", "k"})), "Pipeline": pipelined(client.Set("k", "v")),
	}
	for name, action := range fault {
		for repeats, calls := range map[bool]map[string]call{true: reads, false: writes} {
			for verb, call := range calls {
				t.Run(name+" "+verb, func(t *testing.T) {
					t.Parallel()
					store := emulator.Start(t)
					s := dial(t, store, client.Options{RetryFor: time.Hour})
					var n atomic.Int32
					store.Intercept(func(emulator.Request) emulator.Action {
						if n.Add(1) <= 2 {
							return action
						}
						return emulator.Action{}
					})
					err := call(t.Context(), s)
					if repeats && (err != nil || n.Load() != 3) {
						t.Errorf("after %d requests: %v", n.Load(), err)
					}
					if !repeats && (client.Class(err) != client.ClassUnknown || n.Load() != 1) {
						t.Errorf("after %d requests: %v, want a *LostReplyError after one", n.Load(), err)
					}
				})
			}
		}
	}
}

// TestRefusedRequestIsNotPermanent: what the broker refuses of a request or a watch leaves the session as it was.
func TestRefusedRequestIsNotPermanent(t *testing.T) {
	t.Parallel()
	for code := 0x80; code <= 0xA2; code++ {
		for packet, permanent := range map[string]bool{"PUBACK": false, "SUBACK": false, "CONNACK": true, "DISCONNECT": true} {
			err := error(&mqtt.ReasonError{Packet: packet, Code: byte(code)})
			if client.IsPermanent(err) && !permanent || client.IsPermanent(&client.WatchError{Key: "k", Err: err}) && !permanent {
				t.Errorf("%v is permanent", err)
			}
		}
	}
	for _, err := range []error{
		&mqtt.DialError{Stage: mqtt.StageConnect, Err: &mqtt.ReasonError{Packet: "CONNACK", Code: 0x86}},
		&mqtt.DialError{Stage: mqtt.StageSubscribe, Err: &mqtt.ReasonError{Packet: "SUBACK", Code: 0x87}},
		&mqtt.LostError{Err: &mqtt.ReasonError{Packet: "DISCONNECT", Code: 0x8E}},
	} {
		if !client.IsPermanent(err) {
			t.Errorf("%v is not permanent", err)
		}
	}
	store, s := open(t)
	store.Intercept(func(r emulator.Request) emulator.Action {
		if r.Key() == "refused" {
			return emulator.Action{Refuse: 0x87}
		}
		return emulator.Action{}
	})
	_, err := s.Get(t.Context(), "refused")
	if client.IsPermanent(err) || !errors.Is(err, client.ErrNotAuthorized) {
		t.Errorf("%v: permanent %t", err, client.IsPermanent(err))
	}
	must(s.Get(t.Context(), "k"))(t)
}

// TestRefusedAtOnce: what can never connect is refused before anything is tried.
func TestRefusedAtOnce(t *testing.T) {
	t.Parallel()
	proxy := &url.URL{Scheme: "http", Host: "proxy:80"}
	for _, o := range []client.Options{
		{}, {Address: "broker"}, {Address: "broker:"}, {Address: "broker:0"}, {Address: "broker:65536"}, {Address: "broker:mqtt"}, {Address: "::1:1883:"},
		{Address: "[::1]"}, {Proxy: proxy}, {Address: "broker", Proxy: proxy, Dial: new(emulator.Server).Dial},
	} {
		o.RetryFor = time.Hour
		if _, err := client.New(o); err == nil || !strings.Contains(err.Error(), "host:port") {
			t.Errorf("%+v: %v", o, err)
		} else {
			as[*client.InvalidError](t, err)
		}
	}
	must(client.New(client.Options{Address: "[::1]:1883"}))(t)
}

// TestKeepAliveIsRoundedUp: no keep-alive becomes shorter than it was asked for.
func TestKeepAliveIsRoundedUp(t *testing.T) {
	t.Parallel()
	for keepAlive, want := range map[time.Duration]string{1900 * time.Millisecond: "keep alive 2s", time.Second: "keep alive 1s", 0: "keep alive 60s"} {
		var seen recorder
		dial(t, emulator.Start(t), client.Options{KeepAlive: keepAlive, Trace: seen.record})
		if got := seen.all("CONNECT", true)[0].Detail; !strings.Contains(got, want) {
			t.Errorf("%v: %s", keepAlive, got)
		}
	}
}

// TestSecretsAreNotPrinted: no verb of package fmt shows a password of options, wherever the options are.
func TestSecretsAreNotPrinted(t *testing.T) {
	t.Parallel()
	const secret = "geheim"
	store := emulator.Start(t)
	o := client.Options{
		Address: store.Addr().String(), Username: "ann", Password: client.Secret(secret), Dial: store.Dial,
		ReadToken: nil, Proxy: &url.URL{Scheme: "http", User: url.UserPassword("bob", secret), Host: "proxy:80"},
	}
	direct := o
	direct.Proxy = nil
	s := must(client.Dial(t.Context(), direct))(t)
	if text := fmt.Sprintf("%+v", s); strings.Contains(text, secret) || !strings.Contains(text, direct.Address) {
		t.Errorf("a session in use is %s", text)
	}
	must(0, s.Close())(t) // package fmt reads the session in an unexported field without asking it
	for _, v := range []any{
		o, &o, []client.Options{o}, map[string]client.Options{"a": o}, struct{ O client.Options }{o}, struct{ o client.Options }{o}, struct{ o *client.Options }{&o},
		[]any{o}, s, *new(client.Session), struct{ s *client.Session }{s},
	} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%d", "%x", "%X"} {
			text := fmt.Sprintf(verb, v)
			for _, form := range []string{secret, fmt.Sprint([]byte(secret)), fmt.Sprintf("%x", secret), fmt.Sprintf("%X", secret), strings.Trim(fmt.Sprintf("%#v", []byte(secret)), "[]byte{}")} {
				if strings.Contains(text, strings.Trim(form, "[]")) {
					t.Errorf("%s of %T shows the secret: %s", verb, v, text)
				}
			}
		}
		if text := fmt.Sprintf("%+v", o); !strings.Contains(text, "ann") || !strings.Contains(text, "proxy:80") || !strings.Contains(text, "bob") {
			t.Errorf("the options are %s", text)
		}
	}
	if o.Proxy.User.String() != "bob:"+secret {
		t.Error("printing the options has changed them")
	}
}

// TestObserve: each command is reported with the context of its caller, its key, its reply and its error.
func TestObserve(t *testing.T) {
	t.Parallel()
	type traceKey struct{}
	var mu sync.Mutex
	var seen []string
	store := emulator.Start(t)
	connected := 0
	s := dial(t, store, client.Options{
		RetryFor: time.Hour,
		Observe: func(ctx context.Context, c client.Command) func(client.Result, error) {
			span, _ := ctx.Value(traceKey{}).(string)
			if c.Key() == "unobserved" {
				return nil
			}
			return func(r client.Result, err error) {
				mu.Lock()
				defer mu.Unlock()
				seen = append(seen, fmt.Sprintf("%s %s %q %T %d", span, c.Verb(), c.Key(), r, client.Class(err)))
			}
		},
		Logger: slog.New(logged(func(r slog.Record) {
			if r.Message == "connected" {
				mu.Lock()
				defer mu.Unlock()
				connected++
			}
		})),
	})
	ctx := context.WithValue(t.Context(), traceKey{}, "span")
	must(s.Set(ctx, "a", []byte("1")))(t)
	must(s.Get(ctx, "unobserved"))(t)
	store.Intercept(once(emulator.Action{Cut: true}))
	must(s.Get(ctx, "a"))(t)
	store.Intercept(nil)
	p := s.Pipeline(4)
	must(must(p.Send(ctx, client.Del("a")))(t).Wait(ctx))(t)
	if _, err := s.Get(ctx, ""); err == nil {
		t.Error("an empty key was sent")
	}
	must(s.AcquireLock(ctx, "l", client.LockOptions{Try: true, Holder: []byte("me")}))(t)
	want := []string{
		`span SET "a" client.SetResult 0`, `span GET "a" <nil> 3`, `span GET "a" client.GetResult 0`, `span DEL "a" client.DelResult 0`,
		`span GET "l" client.GetResult 0`, `span SET "l" client.SetResult 0`,
	}
	mu.Lock()
	defer mu.Unlock()
	if !slices.Equal(seen, want) || connected != 2 {
		t.Errorf("%d connections; got %q", connected, seen)
	}
}

// TestOptionsAtMostOnce: a call with two options is refused.
func TestOptionsAtMostOnce(t *testing.T) {
	t.Parallel()
	_, s := open(t)
	ctx, o, w := t.Context(), client.SetOptions{}, client.WriteOptions{}
	_, set := s.Set(ctx, "k", nil, o, o)
	_, del := s.Del(ctx, "k", w, w)
	_, vdel := s.VDel(ctx, "k", nil, w, w)
	_, call := s.Do(ctx, client.Call([]string{"DEL", "k"}, w, w))
	_, watch := s.Watch(ctx, []string{"k"}, client.WatchOptions{}, client.WatchOptions{})
	_, lock := s.Lock(ctx, "k", client.LockOptions{}, client.LockOptions{})
	for _, err := range []error{set, del, vdel, call, watch, lock} {
		as[*client.InvalidError](t, err)
	}
}

// TestUpdate: no change of one Update is lost by another, and a key that was updated is fenced.
func TestUpdate(t *testing.T) {
	t.Parallel()
	store := emulator.Start(t)
	const clients, each = 3, 4
	var all sync.WaitGroup
	for range clients {
		s := dial(t, store, client.Options{})
		all.Go(func() {
			for range each {
				set, err := s.Update(t.Context(), "n", func(old client.GetResult) ([]byte, error) { return append(old.Value, '+'), nil })
				if err != nil || !set.Applied {
					t.Errorf("%+v, %v", set, err)
				}
			}
		})
	}
	all.Wait()
	if e, _ := store.Get("n"); len(e.Value) != clients*each || e.Fence.IsZero() {
		t.Errorf("got %q, fence %v", e.Value, e.Fence)
	}
	if keys := store.Keys(); !slices.Equal(keys, []string{"n"}) {
		t.Errorf("left: %q", keys)
	}
	s, bad := dial(t, store, client.Options{}), errors.New("bad")
	if _, err := s.Update(t.Context(), "n", func(client.GetResult) ([]byte, error) { return nil, bad }); !errors.Is(err, bad) {
		t.Error(err)
	}
	if e, _ := store.Get("n"); len(e.Value) != clients*each {
		t.Errorf("an update that failed left %q", e.Value)
	}
	if _, err := s.Set(t.Context(), "n", nil); !errors.Is(err, client.ErrFenced) {
		t.Errorf("a write without a token: %v", err)
	}
}
