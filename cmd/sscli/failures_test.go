package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/sscli/sscli/cmd/sscli/internal/fault"
	"github.com/sscli/sscli/cmd/sscli/internal/suggest"
)

// failures lists the ways in which a connection fails: a part of each error message, and the kind of the error. A
// script must show each one with its hint and its exit code.
var failures = []struct{ what, kind, message string }{
	{"nothing configured", "no_broker", "no broker is configured"},
	{"name not found", "lookup", "look up broker.invalid:1883: no such host"},
	{"refused", "refused", "connect to 127.0.0.1:1: connect: connection refused"},
	{"timeout of TCP", "timeout", "connect to 127.0.0.1:PORT: timed out"},
	{"timeout of the proxy", "timeout", "connect by proxy to broker.example:1883: proxy http://127.0.0.1:PORT: timed out"},
	{"timeout of TLS", "timeout", "TLS handshake with 127.0.0.1:PORT: timed out"},
	{"timeout of the WebSocket", "timeout", "WebSocket upgrade at 127.0.0.1:PORT: timed out"},
	{"timeout of CONNECT", "timeout", "MQTT CONNECT to 127.0.0.1:PORT: timed out"},
	{"timeout of SUBSCRIBE", "timeout", "MQTT SUBSCRIBE at 127.0.0.1:PORT: timed out"},
	{"timeout of a request", "timeout", "get \"a\": timed out"},
	{"TLS on a plain port", "tls_on_plain_port", "TLS handshake with 127.0.0.1:PORT: the broker closed the connection"},
	{"plain on a TLS port", "plain_on_tls_port", "MQTT CONNECT to 127.0.0.1:PORT: connection lost: the broker closed the connection"},
	{"unknown CA", "certificate_authority", "certificate signed by unknown authority"},
	{"certificate expired", "certificate_time", "expired at TIME"},
	{"certificate not yet valid", "certificate_time", "not valid before TIME"},
	{"wrong host name", "certificate_name", "issued for broker.example, not for 127.0.0.1"},
	{"client certificate not given", "client_certificate", "MQTT CONNECT to 127.0.0.1:PORT: the broker asked for a client certificate and got none"},
	{"the same with TLS 1.2", "client_certificate", "TLS handshake with 127.0.0.1:PORT: the broker asked for a client certificate and got none"},
	{"bad client certificate", "client_certificate_refused", "the broker refused the client certificate"},
	{"key password wrong", "config", "wrong is not the password of client-key-encrypted.pem"},
	{"bad login", "login", "CONNACK 0x86 bad user name or password"},
	{"no rule to connect", "connect_denied", "CONNACK 0x87 not authorized"},
	{"bad client id", "client_id", "CONNACK 0x85 client identifier not valid"},
	{"banned", "banned", "CONNACK 0x8A banned"},
	{"another way to log in", "auth_method", "CONNACK 0x8C bad authentication method"},
	{"another broker", "moved", "CONNACK 0x9D server moved"},
	{"another MQTT", "mqtt_version", "CONNACK 0x84 unsupported protocol version"},
	{"server busy", "busy_login", "CONNACK 0x89 server busy"},
	{"refused for another reason", "refused_login", "CONNACK 0x80 unspecified error"},
	{"SUBACK 0x87", "not_authorized", "SUBACK 0x87 not authorized for \"clients/CLIENT/"},
	{"PUBACK 0x87", "not_authorized", "PUBACK 0x87 not authorized"},
	{"key not authorized", "key_not_authorized", "the store answered: not authorized"},
	{"takeover", "taken_over", "DISCONNECT 0x8E session taken over"},
	{"quota", "busy", "PUBACK 0x97 quota exceeded"},
	{"quota of the connection", "busy", "DISCONNECT 0x97 quota exceeded"},
	{"packet too large, known before", "too_large", "is larger than the 300 bytes that the broker accepts"},
	{"packet too large", "packet_too_large", "DISCONNECT 0x95 packet too large"},
	{"token expired", "token_expired", "the token in expired expired at"},
	{"no token", "token", "service-account token in missing"},
	{"forbidden response topic", "response_topic", "the broker forbids this response topic"},
	{"response topic refused", "topic_refused", "DISCONNECT 0x90 topic name invalid"},
	{"proxy refused", "proxy", "proxy http://127.0.0.1:1: connect: connection refused"},
	{"proxy wants a login", "proxy_login", "answered 407 Proxy Authentication Required"},
	{"no WebSocket", "websocket", "the server answered 404 Not Found, not with a WebSocket"},
	{"certificate bad otherwise", "certificate", "not for servers"},
	{"an alert about no certificate", "tls", "TLS handshake with 127.0.0.1:PORT: tls: handshake failure"},
	{"AUTH 0x18", "auth_later", "the broker cannot verify the login now (AUTH 0x18)"},
	{"no store", "no_store", "no state store is listening on this broker (PUBACK 0x10)"},
	{"another store", "other_store", "another state store answers on this broker"},
	{"unreachable", "unreachable", "connect to 224.0.0.1:1883: connect: network is unreachable"},
	{"PUBACK for another reason", "request_refused", "PUBACK 0x83 implementation specific error for \"statestore/"},
	{"SUBACK for another reason", "disconnected", "SUBACK 0x80 unspecified error for \"clients/CLIENT/"},
	{"a directory", "file", "mkdir $WORK/k: not a directory"},
	{"a file that cannot be written", "output", "write missing/file: no such file or directory"},
	{"connection lost", "lost", "connection lost: the broker closed the connection"},
}

// loginHints are the hints for refused logins, by kind. They depend on the credentials that were sent.
var loginHints = map[string]string{
	"login":          "--username with --password-file; or --sat-file",
	"connect_denied": "--username with --password-file; or --sat-file",
	"auth_method":    "--username with --password-file; or --sat-file",
	"token_expired":  "write a token that the broker accepts to expired",
}

// unscripted are the kinds of connection failures that no script causes.
var unscripted = map[string]bool{
	// doctor prints it as a check that failed: doctor.txtar.
	"stores": true,
	// Its brokers let a store not read or not write a topic: TestAttachRights.
	"self_test": true,
	// The session reconnects with the new token, so a command seldom sees this failure.
	// TestRefusedReauthenticationMeansANewConnection in package client tests it.
	"reauth": true,
	// TestMosquittoWithoutQoS1 in package client has such a broker.
	"qos": true,
}

// TestFailuresHaveScripts looks for each failure in the expected output of the scripts.
func TestFailuresHaveScripts(t *testing.T) {
	t.Parallel()
	type shown struct{ message, hint, code string }
	var all []shown
	files, err := filepath.Glob("testdata/script/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(string(text), "\n")
		for i := 0; i+2 < len(lines); i++ {
			message, ok := strings.CutPrefix(lines[i], "! sscli: ")
			if !ok {
				continue
			}
			s := shown{message: message, code: strings.Trim(lines[i+1], "[]")}
			if hint, ok := strings.CutPrefix(lines[i+1], "!   try: "); ok {
				s.hint = hint
				s.code = strings.Trim(lines[i+2], "[]")
			}
			all = append(all, s)
		}
	}
	table := fault.Table()
	listed := make(map[string]bool)
	for _, f := range failures {
		listed[f.kind] = true
		i := slices.IndexFunc(table, func(e fault.Row) bool { return e.Kind == f.kind })
		if i < 0 {
			t.Errorf("%s: no kind %q", f.what, f.kind)
			continue
		}
		e := table[i]
		hint := suggest.Try(e.Hint)
		hints := []string{hint.String(), hint.Fill(suggest.WebSocket, "ws://127.0.0.1:WSPORT").String(), hint.Fill(suggest.Proxy, "http://USER:PASSWORD@127.0.0.1:PROXYPORT").String(), hint.Fill(suggest.Key, "secret").String()}
		if hint, ok := loginHints[f.kind]; ok {
			hints = []string{hint}
		}
		if !slices.ContainsFunc(all, func(s shown) bool {
			return strings.Contains(s.message, f.message) && s.code == strconv.Itoa(e.Code) && (slices.ContainsFunc(hints, func(whole string) bool {
				first, _, _ := strings.Cut(whole, "; ") // the others may not fit
				return s.hint == whole || strings.HasPrefix(s.hint, first)
			}) || e.Kind == "config" || strings.HasPrefix(s.hint, "the rule to ask for: "))
		}) {
			t.Errorf("%s: no script expects %q, then \"try: %s\", then [%d]", f.what, f.message, hints[0], e.Code)
		}
	}
	first := slices.IndexFunc(table, func(e fault.Row) bool { return e.Kind == "token_expired" })
	for _, e := range table[first:] {
		if listed[e.Kind] == unscripted[e.Kind] {
			t.Errorf("%s: want it in failures, with a script that shows it, or in unscripted", e.Kind)
		}
	}
}

// TestErrorsAreShort: an error with its hint takes at most three lines of 80 columns in the expected output of the scripts, but
// for those with the path of the test, and for what kubectl says, and the longest of the store's own texts.
func TestErrorsAreShort(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/script/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	lengths := strings.NewReplacer("PORT", "34567", "CLIENT", "sscli-abcdefghijklmnop", "AGE", "999ms ago", "TIME", "2026-11-28T20:00:00Z", "RANDOM", "abcdefgh")
	version := regexp.MustCompile(`\bV\d+\b`)
	rows := func(line string) int {
		return (len([]rune(version.ReplaceAllString(lengths.Replace(line), "1795383174773:1:StateStore"))) + 79) / 80
	}
	seen := 0
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(string(text), "\n")
		for i, line := range lines[:len(lines)-1] {
			message, ok := strings.CutPrefix(line, "! ")
			hint, _ := strings.CutPrefix(lines[i+1], "! ")
			if !ok || !strings.HasPrefix(message, "sscli: ") || !strings.HasPrefix(hint, "  try: ") || strings.HasPrefix(message, "sscli: warning: ") ||
				strings.Contains(message+hint, "$WORK") || strings.Contains(message, "kubectl") || strings.Contains(message, "system clocks are synchronized") {
				continue
			}
			if seen++; rows(message)+rows(hint) > 3 {
				t.Errorf("%s:%d: %d lines of 80 columns:\n%s\n%s", name, i+1, rows(message)+rows(hint), message, hint)
			}
		}
	}
	if seen < 200 {
		t.Errorf("the scripts show %d errors with hints", seen)
	}
}
