package emulator_test

import (
	"context"
	"crypto"
	"errors"
	"fmt"
	"net/url"
	"reflect"
	"strings"
	"testing"
	"time"

	ours "github.com/sscli/sscli/client"
	"github.com/sscli/sscli/emulator"
)

// TestZeroValues: no method of a zero value panics; those that return an error say that there is no server or key.
func TestZeroValues(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, zero := range []any{
		new(emulator.Server), new(emulator.Attached), new(emulator.Issuer), new(emulator.Verifier), new(emulator.Policy), new(emulator.Answer), new(emulator.Change),
		emulator.Request{}, emulator.AttachOptions{}, new(emulator.DataError), new(emulator.LoadError), new(emulator.RuleError), new(emulator.OtherStoreError), new(emulator.SelfTestError),
		new(ours.Session), new(ours.Lock), new(ours.Watch), new(ours.Pipeline), new(ours.InFlight), new(ours.Mirror), ours.Command{}, ours.Options{}, ours.Lease{}, ours.LockOptions{}, ours.Event{},
		new(ours.InvalidError), new(ours.ReplyError), new(ours.StatusError), new(ours.LostReplyError), new(ours.WatchError), new(ours.ScanError), new(ours.NoStoreError), new(ours.TokenError),
		new(ours.DialError), new(ours.LostError), new(ours.ReasonError), new(ours.StoreError), new(ours.LockBusyError), new(ours.LockLostError), new(ours.NotHolderError), new(ours.LockUnknownError),
		ours.ReadBackResult{}, ours.ScanResult{}, ours.LockStatus{}, ours.Version{}, ours.Value{},
	} {
		v := reflect.ValueOf(zero)
		for i := range v.NumMethod() {
			m, name := v.Method(i), fmt.Sprintf("%T.%s", zero, v.Type().Method(i).Name)
			if strings.HasSuffix(name, ".Format") || strings.HasSuffix(name, ".JournalFull") {
				continue // fmt calls the former, only tests have the latter
			}
			var args []reflect.Value
			for j := range m.Type().NumIn() {
				switch in := m.Type().In(j); {
				case m.Type().IsVariadic() && j == m.Type().NumIn()-1:
				case in == reflect.TypeFor[context.Context]():
					args = append(args, reflect.ValueOf(ctx))
				case in.Kind() == reflect.Func:
					args = append(args, reflect.MakeFunc(in, func([]reflect.Value) (out []reflect.Value) {
						for k := range in.NumOut() {
							out = append(out, reflect.Zero(in.Out(k)))
						}
						return out
					}))
				default:
					args = append(args, reflect.Zero(in))
				}
			}
			func() {
				defer func() {
					if p := recover(); p != nil {
						t.Errorf("%s: %v", name, p)
					}
				}()
				for _, result := range m.Call(args) {
					if seq, ok := result.Interface().(func(func(string, error) bool)); ok {
						seq(func(string, error) bool { return true })
					}
				}
			}()
		}
	}
	s := new(emulator.Server)
	if _, err := s.Set("k", "v"); !errors.Is(err, emulator.ErrClosed) {
		t.Errorf("Set: %v", err)
	}
	if _, err := s.Dial(t.Context(), "tcp", ""); !errors.Is(err, emulator.ErrClosed) {
		t.Errorf("Dial: %v", err)
	}
	if _, err := new(emulator.Issuer).Issue("a", time.Now(), time.Hour); err == nil {
		t.Error("an issuer without a key issued a token")
	}
	if _, err := (&emulator.Verifier{Key: func(string) (crypto.PublicKey, error) { return nil, nil }}).Verify(nil, time.Now()); err == nil {
		t.Error("an empty token is valid")
	}
}

// TestAttachOptionsSecrets: package fmt shows no password of the options.
func TestAttachOptionsSecrets(t *testing.T) {
	t.Parallel()
	const secret = "geheim"
	o := emulator.AttachOptions{
		Address: "broker:1883", Password: ours.Secret(secret), Proxy: &url.URL{Scheme: "http", Host: "proxy:80", User: url.UserPassword("bob", secret)},
	}
	for _, v := range []any{o, &o, []emulator.AttachOptions{o}, struct{ O emulator.AttachOptions }{o}, struct{ o emulator.AttachOptions }{o}} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%d"} {
			if text := fmt.Sprintf(verb, v); strings.Contains(text, secret) || strings.Contains(text, strings.Trim(fmt.Sprint([]byte(secret)), "[]")) {
				t.Errorf("%s of %T: %s", verb, v, text)
			}
		}
	}
}

// TestObserveCopies: an event that was kept stays as it was, whatever comes after it.
func TestObserveCopies(t *testing.T) {
	t.Parallel()
	var kept []emulator.Event
	var then []string
	store := emulator.Start(t, emulator.Options{Redis: "127.0.0.1:0", Observe: func(e emulator.Event) {
		if e.Op == emulator.OpRequest {
			kept, then = append(kept, e), append(then, fmt.Sprintf("%+v", e))
		}
	}})
	s, err := ours.Dial(t.Context(), ours.Options{Address: store.Addr().String(), Timeout: patience})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 20 {
		if _, err := s.Set(t.Context(), fmt.Sprint("key", i%3), []byte(strings.Repeat(fmt.Sprint(i%10), 40)), ours.SetOptions{TTL: time.Duration(i+1) * time.Hour}); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(s.Close(), store.Close()); err != nil {
		t.Fatal(err)
	}
	for i, e := range kept {
		if now := fmt.Sprintf("%+v", e); now != then[i] || e.Outcome != emulator.OutcomeOK {
			t.Errorf("the event was %s and is %s", then[i], now)
		}
	}
	if len(kept) != 20 {
		t.Errorf("%d events", len(kept))
	}
}
