package client_test

import (
	"testing"
	"time"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/emulator"
	"github.com/sscli/sscli/internal/wire"
)

// TestStoreErrors checks the rows of protocol.md 5, in the framings of 2.3 and 2.4.
func TestStoreErrors(t *testing.T) {
	t.Parallel()
	store, s := open(t)
	for _, test := range []struct {
		text string
		kind wire.ErrorKind
	}{
		{"the request timestamp is too far in the future; ensure that the client and broker system clocks are synchronized", wire.ErrorClockAhead},
		{"a fencing token is required for this request", wire.ErrorFenceRequired},
		{"the request fencing token timestamp is too far in the future; ensure that the client and broker system clocks are synchronized", wire.ErrorFenceAhead},
		{"the request fencing token is a lower version than the fencing token protecting the resource", wire.ErrorFenceLower},
		{"the request fencing token is a lower version that the fencing token protecting the resource", wire.ErrorFenceLower},
		{"the quota has been exceeded", wire.ErrorQuota},
		{"syntax error", wire.ErrorSyntax},
		{"not authorized", wire.ErrorNotAuthorized},
		{"unknown command", wire.ErrorUnknownCommand},
		{"wrong number of arguments", wire.ErrorWrongArguments},
		{"missing timestamp", wire.ErrorMissingTimestamp},
		{"malformed timestamp", wire.ErrorMalformedTimestamp},
		{"the key length is zero", wire.ErrorEmptyKey},
		{"something nobody has heard of", wire.ErrorUnknown},
	} {
		for _, payload := range []string{"-ERR " + test.text + "\r\n", "-ERR: " + test.text + "\r\n", "-ERR:" + test.text + "\r\n", "-ERR " + test.text} {
			for _, status := range []string{"200", "500"} { // the store's message says more than a status
				store.Intercept(always(emulator.Action{Rewrite: func(a *emulator.Answer) {
					a.Payload = []byte(payload)
					a.Set(wire.PropStatus, status)
					a.Delete(wire.PropTimestamp)
				}}))
				for _, c := range []client.Command{client.Get("k"), client.Set("k", ""), client.Del("k"), client.VDel("k", "")} {
					_, err := s.Do(t.Context(), c)
					if e := as[*wire.StoreError](t, err); e.Text != test.text || e.Kind() != test.kind {
						t.Errorf("%q: got %q, %s", payload, e.Text, e.Kind())
					}
				}
			}
		}
	}
	store.Intercept(always(emulator.Action{Rewrite: func(a *emulator.Answer) { a.Payload = []byte("-WRONGTYPE no\r\n") }}))
	_, err := s.Get(t.Context(), "k")
	if e := as[*wire.StoreError](t, err); e.Text != "WRONGTYPE no" {
		t.Errorf("got %q", e.Text)
	}
}

func TestClockAhead(t *testing.T) {
	t.Parallel()
	onBoth(t, emulator.Options{Skew: -70 * time.Second}, client.Options{}, func(t *testing.T, _ *emulator.Server, s *client.Session) {
		_, err := s.Set(t.Context(), "k", nil)
		if e := as[*wire.StoreError](t, err); e.Kind() != wire.ErrorClockAhead {
			t.Error(err)
		}
	})
}

func TestQuota(t *testing.T) {
	t.Parallel()
	onBoth(t, emulator.Options{MaxKeys: 1}, client.Options{}, func(t *testing.T, _ *emulator.Server, s *client.Session) {
		must(s.Set(t.Context(), "k", nil))(t)
		_, err := s.Set(t.Context(), "l", nil)
		if e := as[*wire.StoreError](t, err); e.Kind() != wire.ErrorQuota {
			t.Error(err)
		}
	})
}

func TestNotAuthorizedForAKey(t *testing.T) {
	t.Parallel()
	rules := emulator.Options{Policy: emulator.PolicyFunc(func(a emulator.Access) bool {
		return a.ClientID == "reader" && a.On != "l" && a.Method != emulator.Write
	})}
	onBoth(t, rules, client.Options{ClientID: "reader"}, func(t *testing.T, _ *emulator.Server, s *client.Session) {
		must(s.Get(t.Context(), "k"))(t)
		for _, c := range []client.Command{client.Get("l"), client.Set("k", ""), client.Del("k")} {
			_, err := s.Do(t.Context(), c)
			if e := as[*wire.StoreError](t, err); e.Kind() != wire.ErrorNotAuthorized {
				t.Error(err)
			}
		}
	})
}
