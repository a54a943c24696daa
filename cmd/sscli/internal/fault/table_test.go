package fault

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/cmd/sscli/internal/config"
	"github.com/sscli/sscli/cmd/sscli/internal/process"
	"github.com/sscli/sscli/cmd/sscli/internal/signals"
	"github.com/sscli/sscli/cmd/sscli/internal/suggest"
	"github.com/sscli/sscli/cmd/sscli/internal/terminal"
	"github.com/sscli/sscli/cmd/sscli/internal/via"
	"github.com/sscli/sscli/emulator"
	"github.com/sscli/sscli/format"
	"github.com/sscli/sscli/internal/mqtt"
	"github.com/sscli/sscli/internal/neterr"
	"github.com/sscli/sscli/internal/wire"
)

func dialError(stage mqtt.Stage, err error) error {
	return &mqtt.DialError{Stage: stage, Address: "broker:8883", Err: err}
}

func lostError(err error) error { return &mqtt.LostError{Err: err} }

func reasonError(packet string, code byte) error {
	return &mqtt.ReasonError{Packet: packet, Code: code}
}

func storeError(text string) error { return &wire.StoreError{Text: text} }

func verifyError(err error) error { return &tls.CertificateVerificationError{Err: err} }

// explained has at least one error for each row of the table.
var explained = []struct {
	kind string
	code int
	err  error
}{
	{"interrupted", 130, &signals.Interrupted{Signal: syscall.SIGINT}},
	{"interrupted", 143, &UnknownError{Err: &signals.Interrupted{Signal: syscall.SIGTERM}, Why: "why"}},
	{"expectation", 1, &ExpectError{Want: 1, Got: 0}},
	{"expectation", 5, &ExpectError{Want: 1, Got: 5}},
	{"outcome_unknown", 11, &UnknownError{Err: context.DeadlineExceeded, Why: "why"}},
	{"outcome_unknown", 11, &UnknownError{Err: lostError(reasonError("DISCONNECT", 0x8E)), Why: "why"}},
	{"gap", 10, ErrGap},
	{"overflow", 10, client.ErrOverflow},
	{"no_store", 3, &client.NoStoreError{}},
	{"stores", 5, &StoresError{Answers: 2}},
	{"not_applied", 124, &NotAppliedError{Err: lostError(mqtt.ErrBrokerClosed)}},
	{"child", 125, &process.StartError{Name: "x", Code: 125, Err: syscall.ENOMEM}},
	{"child", 127, &process.StartError{Name: "x", Code: 127, Err: fs.ErrNotExist}},
	{"guard", 125, fmt.Errorf("lock %q: %w", "a", process.ErrGuardDied)},
	{"lock_lost", 8, fmt.Errorf("%w; the command was ended", &client.LockLostError{Name: "a", Loss: client.LossNoRenewal, Err: context.DeadlineExceeded})},
	{"lock_lost", 8, fmt.Errorf("no token: %w", client.ErrLockLost)},
	{"usage", 2, Usagef("what")},
	{"usage", 2, &UsageError{Err: &fs.PathError{Op: "open", Path: "x", Err: fs.ErrNotExist}}},
	{"no_broker", 2, &config.NoBrokerError{}},
	{"config", 2, &config.Error{Source: config.Source{Env: "SSCLI_URL"}, Why: "why"}},
	{"context", 2, &config.UnknownContextError{Source: "--context", Name: "prdo", Near: []string{"prod"}}},
	{"config_file", 2, &config.FileError{File: "config.yaml", Line: 3, Key: "contexts.lab.password", Why: "why"}},
	{"protected", 2, &ProtectedError{Context: "prod", What: "set \"a\""}},
	{"protected", 2, &ProtectedError{Context: "prod", What: "set \"a\"", Refused: true}},
	{"terminal", 2, &terminal.Error{Err: &fs.PathError{Op: "open", Path: "/dev/tty", Err: syscall.ENXIO}}},
	{"response_topic", 2, &client.InvalidError{Err: wire.ErrForbiddenResponseTopic}},
	{"invalid", 2, &client.InvalidError{Err: errors.New("why")}},
	{"too_large", 2, &mqtt.TooLargeError{}},
	{"output", 12, &OutputError{Err: &fs.PathError{Op: "write", Path: "/dev/stdout", Err: syscall.ENOSPC}}},
	{"other_store", 15, fmt.Errorf("attach: %w", &emulator.OtherStoreError{})},
	{"self_test", 4, &emulator.SelfTestError{Topic: "t"}},
	{"data_file", 13, &DataError{Err: &fs.PathError{Op: "open", Path: "x", Err: fs.ErrPermission}}},
	{"data_file", 13, fmt.Errorf("attach: %w", &DataError{Err: syscall.ENOSPC})},
	{"output", 12, &OutputError{Err: syscall.EPIPE, Done: true}},
	{"output", 12, &OutputError{Err: &fs.PathError{Op: "write", Path: "x", Err: syscall.ENOSPC}, File: true}},
	{"lock_lost", 8, &client.LockLostError{Name: "l", Loss: client.LossNoRenewal, Err: context.DeadlineExceeded}},
	{"lock_not_held", 8, &client.NotHolderError{}},
	{"lock_busy", 1, &client.LockBusyError{}},
	{"fencing_required", 6, storeError(wire.TextFenceRequired)},
	{"fencing_lower", 6, storeError(wire.TextFenceLower)},
	{"fencing_ahead", 6, storeError(wire.TextFenceAhead)},
	{"timestamp_malformed", 6, storeError(wire.TextMalformedTimestamp)},
	{"clock_ahead", 7, storeError(wire.TextClockAhead)},
	{"local_clock", 7, fmt.Errorf("the local clock: %w", wire.ErrDrift)},
	{"key_not_authorized", 4, storeError(wire.TextNotAuthorized)},
	{"quota", 5, storeError(wire.TextQuota)},
	{"syntax", 5, storeError(wire.TextSyntax)},
	{"no_scan", 5, &NoScanError{storeError(wire.TextUnknownCommand)}},
	{"unknown_command", 5, storeError(wire.TextUnknownCommand)},
	{"wrong_arguments", 5, storeError(wire.TextWrongArguments)},
	{"timestamp_missing", 5, storeError(wire.TextMissingTimestamp)},
	{"key_empty", 5, storeError(wire.TextEmptyKey)},
	{"store_error", 5, storeError("the moon is too low")},
	{"status", 5, &client.StatusError{Status: 500}},
	{"answer", 9, &client.ReplyError{Err: errors.New("why")}},
	{"token_expired", 4, dialError(mqtt.StageConnect, &client.TokenError{File: "x", Expiry: time.Unix(1, 0), Err: reasonError("CONNACK", 0x87)})},
	{"token", 2, dialError(mqtt.StageConnect, &client.TokenError{File: "x", Err: fs.ErrNotExist})},
	{"reauth", 4, lostError(&mqtt.ReauthError{Err: &mqtt.ReasonError{Packet: "DISCONNECT", Code: 0x87}})},
	{"auth_later", 3, dialError(mqtt.StageConnect, mqtt.ErrAuthLater)},
	{"login", 4, dialError(mqtt.StageConnect, reasonError("CONNACK", 0x86))},
	{"connect_denied", 4, dialError(mqtt.StageConnect, reasonError("CONNACK", 0x87))},
	{"not_authorized", 4, dialError(mqtt.StageSubscribe, reasonError("SUBACK", 0x87))},
	{"not_authorized", 4, reasonError("PUBACK", 0x87)},
	{"banned", 4, dialError(mqtt.StageConnect, reasonError("CONNACK", 0x8A))},
	{"auth_method", 4, dialError(mqtt.StageConnect, reasonError("CONNACK", 0x8C))},
	{"taken_over", 3, lostError(reasonError("DISCONNECT", 0x8E))},
	{"packet_too_large", 5, lostError(reasonError("DISCONNECT", 0x95))},
	{"busy", 3, reasonError("PUBACK", 0x97)},
	{"busy_login", 3, dialError(mqtt.StageConnect, reasonError("CONNACK", 0x89))},
	{"busy", 3, lostError(reasonError("DISCONNECT", 0x89))},
	{"moved", 3, dialError(mqtt.StageConnect, reasonError("CONNACK", 0x9D))},
	{"mqtt_version", 3, dialError(mqtt.StageConnect, reasonError("CONNACK", 0x84))},
	{"qos", 3, dialError(mqtt.StageConnect, lostError(mqtt.ErrQoS0))},
	{"qos", 3, dialError(mqtt.StageSubscribe, mqtt.ErrQoS0)},
	{"client_id", 4, dialError(mqtt.StageConnect, reasonError("CONNACK", 0x85))},
	{"topic_refused", 2, lostError(reasonError("DISCONNECT", 0x90))},
	{"topic_refused", 2, dialError(mqtt.StageSubscribe, reasonError("SUBACK", 0x8F))},
	{"client_certificate", 4, &OverTLSError{dialError(mqtt.StageConnect, &mqtt.ClientCertificateError{Err: lostError(mqtt.ErrBrokerClosed)})}},
	{"client_certificate", 4, dialError(mqtt.StageTLS, &mqtt.ClientCertificateError{Err: &net.OpError{Op: "remote error", Err: errors.New("tls: bad certificate")}})},
	{"client_certificate_refused", 4, dialError(mqtt.StageTLS, &mqtt.ClientCertificateError{Given: true, Err: &net.OpError{Op: "remote error", Err: errors.New("tls: bad certificate")}})},
	{"proxy_login", 4, dialError(mqtt.StageProxy, &mqtt.ProxyError{Proxy: "http://proxy:80", Status: 407})},
	{"proxy", 3, dialError(mqtt.StageProxy, &mqtt.ProxyError{Proxy: "http://proxy:80", Err: &net.OpError{Op: "dial", Err: os.NewSyscallError("connect", neterr.Refused)}})},
	{"proxy", 3, dialError(mqtt.StageProxy, &mqtt.ProxyError{Proxy: "http://proxy:80", Err: &net.DNSError{Err: "no such host", Name: "proxy"}})},
	{"proxy", 3, dialError(mqtt.StageProxy, &mqtt.ProxyError{Proxy: "https://proxy:443", Err: verifyError(x509.UnknownAuthorityError{})})},
	{"timeout", 124, dialError(mqtt.StageProxy, &mqtt.ProxyError{Proxy: "http://proxy:80", Err: context.DeadlineExceeded})},
	{"websocket", 3, dialError(mqtt.StageWebSocket, errors.New("the server answered 404 Not Found, not with a WebSocket"))},
	{"websocket", 3, dialError(mqtt.StageWebSocket, mqtt.ErrBrokerClosed)},
	{"lookup", 3, dialError(mqtt.StageLookup, &net.DNSError{Err: "no such host", Name: "broker"})},
	{"refused", 3, dialError(mqtt.StageTCP, &net.OpError{Op: "dial", Err: os.NewSyscallError("connect", neterr.Refused)})},
	{"certificate_authority", 4, dialError(mqtt.StageTLS, verifyError(x509.UnknownAuthorityError{}))},
	{"certificate_name", 4, dialError(mqtt.StageTLS, verifyError(x509.HostnameError{Certificate: &x509.Certificate{}, Host: "broker"}))},
	{"certificate_time", 4, dialError(mqtt.StageTLS, verifyError(x509.CertificateInvalidError{Reason: x509.Expired}))},
	{"certificate", 4, dialError(mqtt.StageTLS, verifyError(x509.CertificateInvalidError{Reason: x509.NotAuthorizedToSign}))},
	{"timeout", 124, dialError(mqtt.StageLookup, &net.DNSError{UnwrapErr: context.DeadlineExceeded, Err: "i/o timeout", Name: "broker", IsTimeout: true})},
	{"tls_on_plain_port", 4, dialError(mqtt.StageTLS, tls.RecordHeaderError{Msg: "first record does not look like a TLS handshake"})},
	{"tls_on_plain_port", 4, dialError(mqtt.StageTLS, mqtt.ErrBrokerClosed)},
	{"tls_on_plain_port", 4, dialError(mqtt.StageTLS, &net.OpError{Op: "read", Err: os.NewSyscallError("read", neterr.Reset)})},
	{"tls", 4, dialError(mqtt.StageTLS, &net.OpError{Op: "remote error", Err: errors.New("tls: handshake failure")})},
	{"tls", 4, &OverTLSError{dialError(mqtt.StageConnect, lostError(&net.OpError{Op: "remote error", Err: errors.New("tls: certificate required")}))}},
	{"plain_on_tls_port", 3, dialError(mqtt.StageConnect, lostError(mqtt.ErrBrokerClosed))},
	{"lost", 3, &OverTLSError{dialError(mqtt.StageConnect, lostError(mqtt.ErrBrokerClosed))}},
	{"timeout", 124, dialError(mqtt.StageTCP, context.DeadlineExceeded)},
	{"timeout", 124, dialError(mqtt.StageTLS, context.DeadlineExceeded)},
	{"timeout", 124, context.DeadlineExceeded},
	{"unreachable", 3, dialError(mqtt.StageTCP, &net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.ENETUNREACH)})},
	{"refused_login", 3, dialError(mqtt.StageConnect, reasonError("CONNACK", 0x80))},
	{"request_refused", 5, reasonError("PUBACK", 0x83)},
	{"lost", 3, lostError(mqtt.ErrKeepAlive)},
	{"lost", 3, lostError(reasonError("DISCONNECT", 0x8B))},
	{"disconnected", 3, reasonError("SUBACK", 0x80)},
	{"kubectl_missing", 2, &via.Error{Call: "kubectl version", Kind: via.Missing}},
	{"kubectl_unreachable", 3, &via.Error{Call: "kubectl port-forward", Kind: via.Unreachable}},
	{"kubectl_login", 4, &via.Error{Call: "kubectl create token", Kind: via.Unauthorized}},
	{"kubectl_forbidden", 4, &via.Error{Call: "kubectl create token", Kind: via.Forbidden}},
	{"kubectl_not_found", 3, &via.Error{Call: "kubectl get configmap", Kind: via.NotFound}},
	{"kubectl", 3, &via.Error{Call: "kubectl port-forward", Why: "exit status 1"}},
	{"not_dataset", 1, &DatasetError{Err: errors.New("line 1: expected a record")}},
	{"not_written", 1, &NotWrittenError{Why: "the key changed"}},
	{"file", 2, &fs.PathError{Op: "write", Path: "x", Err: fs.ErrPermission}},
}

func TestExplain(t *testing.T) {
	seen := make(map[string]bool)
	for _, c := range explained {
		seen[c.kind] = true
		err := fmt.Errorf("get %q: %w", "a", c.err)
		f, _ := Of(err)
		if f.Kind != c.kind || f.Code != c.code {
			t.Errorf("%v: %s, code %d, want %s, code %d", err, f.Kind, f.Code, c.kind, c.code)
		}
		if strings.Contains(f.Message, "failed") || strings.Contains(f.Message, "context deadline") || strings.ContainsAny(f.Message, "\n") {
			t.Errorf("the message of %s: %q", c.kind, f.Message)
		}
	}
	for _, e := range Table() {
		if !seen[e.Kind] {
			t.Errorf("no error here is %s", e.Kind)
		}
	}
}

// TestClass: the class of an error of the client is the exit code of the command line.
func TestClass(t *testing.T) {
	ours := " interrupted expectation outcome_unknown gap stores not_applied child guard usage no_broker config context config_file protected terminal " +
		"output other_store self_test data_file not_dataset not_written file kubectl kubectl_missing kubectl_login kubectl_forbidden kubectl_unreachable kubectl_not_found " // not the client's
	n := 0
	for _, c := range explained {
		if strings.Contains(ours, " "+c.kind+" ") {
			continue
		}
		n++
		if got := int(client.Class(fmt.Errorf("get %q: %w", "a", c.err))); got != c.code {
			t.Errorf("%v: class %d, want %d", c.err, got, c.code)
		}
	}
	for err, want := range map[error]client.ErrorClass{
		nil: client.ClassOK, context.Canceled: client.ClassCanceled, &client.LockUnknownError{}: client.ClassUnknown,
		&client.LostReplyError{Err: context.DeadlineExceeded}: client.ClassUnknown,
		errors.New("mine"): client.ClassOther, fmt.Errorf("my database: %w", &net.OpError{Op: "dial", Err: errors.New("refused")}): client.ClassOther,
	} {
		if got := client.Class(err); got != want {
			t.Errorf("%v: class %d, want %d", err, got, want)
		}
	}
	if n < 60 {
		t.Errorf("only %d errors", n)
	}
}

func TestExplanations(t *testing.T) {
	seen := make(map[string]bool)
	for _, e := range Table() {
		if seen[e.Kind] {
			t.Errorf("%s is there twice", e.Kind)
		}
		seen[e.Kind] = true
		if e.Cause == "" || strings.HasSuffix(e.Cause, ".") || strings.HasSuffix(e.Hint, ".") {
			t.Errorf("%s: cause %q, hint %q", e.Kind, e.Cause, e.Hint)
		}
		code := strconv.Itoa(e.Code)
		if e.Code == 128 {
			code = "128+N"
		}
		if !slices.ContainsFunc(Codes(), func(c Code) bool { return c.Code == code }) {
			t.Errorf("%s has exit code %s, which is not in the table", e.Kind, code)
		}
	}
}

func TestHintNamesTheThing(t *testing.T) {
	denied := storeError(wire.TextNotAuthorized)
	for _, c := range []struct {
		err  error
		want string
	}{
		{&client.LockLostError{Name: "jobs/nightly"}, "sscli lock status jobs/nightly shows"},
		{&NextError{Err: &client.LockBusyError{Status: client.LockStatus{Name: "a"}}, Hint: suggest.Try("`sscli lock status NAME` shows the holder")}, "sscli lock status a shows"},
		{&client.LockLostError{Name: "two words"}, "sscli lock status 'two words' shows"},
		{&client.LockLostError{Name: "$(id)"}, "sscli lock status '$(id)' shows"},
		{&client.LockLostError{Name: "it's"}, `sscli lock status 'it'\''s' shows`},
		{&client.LockLostError{Name: "KEY-TOKEN"}, "sscli lock status KEY-TOKEN shows"},
		{&requestError{key: "the TOKEN", token: "1:2:KEY", err: &NextError{Err: denied, Hint: suggest.Try("NAME, `KEY`, `TOKEN`")}}, "NAME, 'the TOKEN', 1:2:KEY"},
		{client.ErrLockLost, "sscli lock status NAME shows"},
		{Describe(client.Get("line1/setpoint"), denied), "grant access to line1/setpoint in"},
		{Describe(client.Get("a\nb"), denied), `grant access to $'a\x0ab' in`},
		{denied, "grant access to KEY in"},
	} {
		_, hint := Of(c.err)
		if got := hint.String(); !strings.HasPrefix(got, c.want) {
			t.Errorf("%v: hint %q, want it to begin with %q", c.err, got, c.want)
		}
	}
}

// TestHintsAreShort: after a message of two lines, the first step of each hint fits.
func TestHintsAreShort(t *testing.T) {
	for _, row := range Table() {
		if row.Hint == "" {
			continue
		}
		whole := suggest.Try(row.Hint).Fill(suggest.Key, "deploy/site-a").Fill(suggest.Name, "deploy/site-a").Fill(suggest.Token, "1795383174773:1:StateStore").
			Fill(suggest.WebSocket, "ws://broker.example:8080").Fill(suggest.Proxy, "http://USER:PASSWORD@proxy.example:3128")
		var out bytes.Buffer
		p, err := format.New(&out, format.Options{Output: "human"})
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Print(format.Fault{Code: row.Code, Kind: row.Kind, Message: strings.Repeat("x", 150), Hint: whole.Steps()}); err != nil {
			t.Fatal(err)
		}
		_, hint, _ := strings.Cut(out.String(), "\n  try: ")
		if first := whole[:1].String(); !strings.HasPrefix(hint, first) || len(hint) > 74 {
			t.Errorf("%s: want %q in one line, got %q", row.Kind, first, hint)
		}
	}
}
