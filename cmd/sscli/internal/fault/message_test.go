package fault

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/cmd/sscli/internal/via"
	"github.com/sscli/sscli/internal/mqtt"
)

// TestMessage: the words of the message change the reason, but no key or value with the same text.
func TestMessage(t *testing.T) {
	kubectl := dialError(mqtt.StageTCP, &via.Error{Call: "kubectl get", Why: "no"})
	subscribe := dialError(mqtt.StageSubscribe, &mqtt.ReasonError{Packet: "SUBACK", Code: 0x87, Topic: "t"})
	refused := &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("refused")}
	proxy := dialError(mqtt.StageProxy, &mqtt.ProxyError{Proxy: "p:1", Err: refused})
	lookup := &net.DNSError{Err: "no such host", Name: "broker"}
	slow := &net.DNSError{Err: "slow", Name: "broker", UnwrapErr: context.DeadlineExceeded}
	get := func(key string, err error) error { return Describe(client.Get(key), err) }
	for _, tt := range []struct {
		err  error
		want string
	}{
		{get("a", kubectl), `get "a": kubectl get: no`},
		{get(kubectl.Error(), kubectl), `get "connect to broker:8883: kubectl get: no": kubectl get: no`},
		{get("a", subscribe), `get "a": SUBACK 0x87 not authorized for "t"`},
		{fmt.Errorf("%s: %w", subscribe, subscribe), `MQTT SUBSCRIBE at broker:8883: SUBACK 0x87 not authorized for "t": SUBACK 0x87 not authorized for "t"`},
		{get("a", dialError(mqtt.StageTCP, refused)), `get "a": connect to broker:8883: refused`},
		{get("dial tcp: refused", dialError(mqtt.StageTCP, refused)), `get "dial tcp: refused": connect to broker:8883: refused`},
		{get("dial tcp: refused", proxy), `get "dial tcp: refused": connect by proxy to broker:8883: proxy p:1: refused`},
		{dialError(mqtt.StageLookup, lookup), `look up broker:8883: no such host`},
		{get(slow.Error(), dialError(mqtt.StageLookup, slow)), `get "lookup broker: slow": look up broker:8883: timed out`},
		{get("context deadline exceeded", context.DeadlineExceeded), `get "context deadline exceeded": timed out`},
		{fmt.Errorf("context c: %w", get("context deadline exceeded", lostError(context.DeadlineExceeded))), `context c: get "context deadline exceeded": connection lost: timed out`},
		{&UnknownError{Err: lostError(context.DeadlineExceeded), Why: `the key holds "context deadline exceeded"`},
			`unknown if it was applied: connection lost: timed out; the key holds "context deadline exceeded"`},
		{&OverTLSError{&DetailError{Err: dialError(mqtt.StageConnect, context.DeadlineExceeded), Details: []string{"sent: user context deadline exceeded"}}},
			"MQTT CONNECT to broker:8883: timed out; sent: user context deadline exceeded"},
		{errors.Join(get("a", kubectl), get("b", subscribe)), "get \"a\": kubectl get: no\nget \"b\": SUBACK 0x87 not authorized for \"t\""},
	} {
		if got := Message(tt.err); got != tt.want {
			t.Errorf("got  %s\nwant %s", got, tt.want)
		}
	}
}

// TestDetails: what a short form leaves out is apart from the message, however the error is wrapped.
func TestDetails(t *testing.T) {
	refused := &client.StoreError{Text: "no"}
	detailed := &DetailError{Err: refused, Details: []string{"a", "b"}}
	for _, test := range []struct {
		err     error
		message string
		details string
	}{
		{detailed, "the store answered: no", "a|b"},
		{Describe(client.Get("k"), detailed), `get "k": the store answered: no`, "a|b"},
		{&NextError{Err: &DetailError{Err: Describe(client.Get("k"), detailed), Details: []string{"c"}}}, `get "k": the store answered: no`, "a|b|c"},
		{errors.Join(nil, &OverTLSError{About("k", detailed)}), "the store answered: no", "a|b"},
		{fmt.Errorf("lock: %w", detailed), "lock: the store answered: no", "a|b"},
		{&ownWords{detailed}, "in its own words", ""},
		{&CauseError{What: "no lock", Err: detailed}, "no lock", "the store answered: no|a|b"},
		{&UnknownError{Err: context.DeadlineExceeded, Within: time.Second, Why: "why"}, "unknown if it was applied: no reply within 1s (--timeout)", "why"},
		{&NotAppliedError{Err: detailed}, "the write was not applied: the store answered: no", "a|b"},
		{&ProtectedError{What: "del", Details: []string{"old"}, Refused: true}, "del: cancelled, nothing was sent", ""},
		{&ProtectedError{What: "del", Details: []string{"old"}}, "del: this must be confirmed, and there is no terminal", "old"},
		{errors.Join(detailed, detailed), "the store answered: no; a; b\nthe store answered: no; a; b", ""},
	} {
		message, details := describe(test.err)
		if message != test.message || strings.Join(details, "|") != test.details {
			t.Errorf("%v: %q, %q, want %q, %q", test.err, message, details, test.message, test.details)
		}
	}
}

// ownWords is an error that does not repeat what it wraps.
type ownWords struct{ error }

func (*ownWords) Error() string { return "in its own words" }

func (e *ownWords) Unwrap() error { return e.error }
