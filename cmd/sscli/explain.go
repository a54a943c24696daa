package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/client/mqtt"
	"github.com/sscli/sscli/client/wire"
	"github.com/sscli/sscli/cmd/sscli/internal/child"
	"github.com/sscli/sscli/cmd/sscli/internal/config"
	"github.com/sscli/sscli/format"
)

// An explanation is what sscli says of one kind of error.
type explanation struct {
	kind  string // for programs
	code  int
	cause string // for the documentation
	hint  string // the next thing to try
	is    func(error) bool
}

// explain turns any error into what the user sees.
func explain(err error) format.Fault {
	f := format.Fault{Code: codeConnection, Kind: "error", Message: message(err)}
	if store, ok := errors.AsType[*wire.StoreError](err); ok {
		f.StoreError = store.Text
	}
	for _, e := range explanations() {
		if e.is(err) {
			f.Code, f.Kind, f.Hint = e.code, e.kind, e.hint
			break
		}
	}
	if u, ok := errors.AsType[*usageError](err); ok && u.hint != "" {
		f.Hint = u.hint
	}
	if c, ok := errors.AsType[*config.Error](err); ok && strings.HasPrefix(c.Source, "--") {
		f.Hint = "" // whoever wrote a flag needs no list of variables
		if c.Source == "--output" {
			f.Hint = "sscli help output"
		}
	} else if ok {
		if name, of := strings.CutPrefix(c.Source, "context "); of {
			name, flag, _ := strings.Cut(name, ": ")
			f.Hint = "sscli context set " + name + " with another --" + flag
		}
	}
	if c, ok := errors.AsType[*config.FileError](err); ok {
		f.Hint = c.Hint
	}
	if p, ok := errors.AsType[*protectedError](err); ok && p.refused {
		f.Hint = ""
	}
	if s, ok := errors.AsType[*interruptError](err); ok {
		f.Code = 128 + int(s.signal)
	}
	if x, ok := errors.AsType[*expectError](err); ok {
		f.Code = max(x.got, codeNo)
	}
	if c, ok := errors.AsType[*child.StartError](err); ok {
		f.Code = c.Code
	}
	return f
}

// explanations is the one table of error kinds; the first that fits counts.
func explanations() []explanation {
	return []explanation{
		{"interrupted", 128, "a signal asked sscli to end; its number is added to the code", "", isA[*interruptError]},
		{"expectation", codeNo, "a command of a batch ended with another code than expected; the code is the command's, if that is above 1", "", isA[*expectError]},
		{"outcome_unknown", codeUnknown, "a write was sent, no answer came, and the key does not tell whether it was applied",
			"read the key and decide; a write may be repeated if it does not matter that it is done twice", isA[*unknownError]},
		{"gap", codeContinuity, "the watch was broken, and that nothing was missed cannot be proven",
			"read the keys again and start a new watch", is(errGap)},
		{"overflow", codeContinuity, "the watch's reader is slower than the changes come",
			"a faster reader, a larger --buffer, or fewer keys", is(client.ErrOverflow)},
		{"lock_lost", codeLockLost, "a lock was lost while it was held: it was not renewed in time, or its key was deleted or taken",
			"read again what the lock protects; sscli lock status NAME tells who holds it", is(client.ErrLockLost)},
		{"lock_not_held", codeLockLost, "a lock that was to be renewed or released is free, or another's: it ran out, or was released",
			"sscli lock status NAME tells who holds it; acquire it again", is(client.ErrNotHolder)},
		{"lock_busy", codeNo, "another holds the lock, and there was no time to wait, or no more",
			"a longer --wait; sscli lock status NAME --observe 10s tells whether its holder is alive", is(client.ErrLockBusy)},
		{"not_applied", codeTimeout, "a write was sent, no answer came, and the key is as it was before",
			"run it again", isA[*notAppliedError]},
		{"child", child.CodeSetup, "the command behind -- could not be started (125, 126, 127)", "", isA[*child.StartError]},
		{"guard", child.CodeSetup, "the process that guards the command of a lock was killed, so the command was killed too", "run it again; what killed it may be short of memory", is(child.ErrGuardDied)},
		{"usage", codeUsage, "the command line cannot be understood", "", isA[*usageError]},
		{"no_broker", codeUsage, "no flag, no variable and no context names a broker",
			"-u mqtt://HOST:PORT, export SSCLI_URL, or sscli context set; without a broker: --embedded, or sscli serve", is(config.ErrNoBroker)},
		{"config", codeUsage, "a flag, a variable or a context has a value that it cannot have", "sscli help environment", isA[*config.Error]},
		{"context", codeUsage, "no context has this name", "sscli context list", isA[*config.UnknownContextError]},
		{"config_file", codeUsage, "the file of contexts cannot be read or written, is not understood, or others can write to it", "", isA[*config.FileError]},
		{"protected", codeUsage, "the context is protected, and nobody confirmed the write", "--yes", isA[*protectedError]},
		{"terminal", codeUsage, "a question cannot be asked: sscli was not started from a terminal",
			"--password-file in place of --askpass, --yes in place of an answer", isA[*terminalError]},
		{"response_topic", codeUsage, "the broker disconnects clients that ask for replies on this topic",
			"another --response-topic, or none", is(wire.ErrForbiddenResponseTopic)},
		{"invalid", codeUsage, "the request is wrong by itself and was not sent", "", isA[*client.InvalidError]},
		{"too_large", codeUsage, "the request is larger than the broker's Maximum Packet Size and was not sent",
			"a smaller value, or a larger limit at the broker", isA[*mqtt.TooLargeError]},
		{"output", codeOutput, "it is done, but the result could not be printed: standard output is full or closed, the file of get -f cannot be written, or the template does not suit it", "", isA[*outputError]},

		{"fencing_required", codeFencing, "the key is protected by a fencing token and the request had none",
			"sscli lock run LOCK -- sscli … --fence lock, with the lock that protects the key; or --fence TOKEN", isStore(wire.ErrorFenceRequired)},
		{"fencing_lower", codeFencing, "a newer token has written the key: whoever held the old one lost the lock",
			"acquire the lock again, read the key again, then write with the new token", isStore(wire.ErrorFenceLower)},
		{"fencing_ahead", codeFencing, "the token lies over a minute ahead of the store's clock: it is not one of this store's, or a clock is wrong",
			"the token as the lock's reply gave it; sscli hlc parse TOKEN shows its time", isStore(wire.ErrorFenceAhead)},
		{"timestamp_malformed", codeFencing, "the store cannot read the fencing token",
			"sscli hlc parse TOKEN", isStore(wire.ErrorMalformedTimestamp)},
		{"clock_ahead", codeClock, "the local clock is over a minute ahead of the store's",
			"compare date -u here and on the broker's nodes, and synchronize both", isStore(wire.ErrorClockAhead)},
		{"local_clock", codeClock, "the local clock went back by more than a minute", "synchronize the local clock", is(wire.ErrDrift)},
		{"key_not_authorized", codeLogin, "the broker's rules do not allow this client this access to the key",
			"a stateStoreResources rule: Read for get and watch, Write for set, del and vdel", isStore(wire.ErrorNotAuthorized)},
		{"quota", codeStore, "the store holds as many keys as it may",
			"delete keys, let them expire (PX), or a larger memory profile of the broker", isStore(wire.ErrorQuota)},
		{"syntax", codeStore, "the store does not understand the request", "--trace shows what was sent", isStore(wire.ErrorSyntax)},
		{"no_scan", codeStore, "this broker does not know SCAN, which came after the state store itself: its keys cannot be listed",
			"get and watch with the names of keys, or a newer broker", isA[*noScanError]},
		{"unknown_command", codeStore, "this broker does not know the verb",
			"the verb in upper case, or a newer broker", isStore(wire.ErrorUnknownCommand)},
		{"wrong_arguments", codeStore, "the verb has another number of arguments", "--trace shows what was sent", isStore(wire.ErrorWrongArguments)},
		{"timestamp_missing", codeStore, "the request had no timestamp", "--trace shows what was sent", isStore(wire.ErrorMissingTimestamp)},
		{"key_empty", codeStore, "the key is empty", "a key of at least one byte", isStore(wire.ErrorEmptyKey)},
		{"store_error", codeStore, "the store refused for a reason that sscli does not know", "--trace shows what was sent", isA[*wire.StoreError]},
		{"status", codeStore, "the broker refused the request before the store saw it", "--trace shows what was sent", isA[*client.StatusError]},
		{"answer", codeAnswer, "the answer is not what the protocol allows", "--trace shows it", isA[*client.AnswerError]},

		{"token_expired", codeLogin, "the broker refused a service-account token that had expired by the local clock",
			"a new token in the file of --sat-file, as kubectl create token gives it", isExpired},
		{"token", codeUsage, "the file of the service-account token cannot be read or holds none", "another --sat-file", isA[*client.TokenError]},
		{"auth_later", codeConnection, "the broker cannot verify the login at the moment (AUTH 0x18)", "again later", is(mqtt.ErrAuthLater)},
		{"reauth", codeLogin, "the broker refused the new service-account token of a connection", "a token in the file of --sat-file that the broker accepts",
			isA[*mqtt.ReauthError]},
		{"login", codeLogin, "the broker refuses user name, password or credentials (0x86; some brokers say 0x87 to CONNECT)",
			"--username and --password-file, --sat-file, or --cert-file and --key-file: what the broker's port wants", isLogin},
		{"not_authorized", codeLogin, "the broker's rules do not allow this client what it asked for (0x87)",
			"an authorization rule for the topic or the client id; --trace shows the topics", isReason("", mqtt.ReasonNotAuthorized)},
		{"banned", codeLogin, "the broker has banned the client (0x8A)", "another --client-id", isReason("", mqtt.ReasonBanned)},
		{"auth_method", codeLogin, "the broker wants another way of authentication (0x8C)",
			"--username and --password-file, --sat-file, or --cert-file and --key-file: what the broker's port wants", isReason("", mqtt.ReasonBadAuthMethod)},
		{"taken_over", codeConnection, "another client connected with the same client id (0x8E)",
			"another --client-id, or none for a random one", isReason("", mqtt.ReasonTakenOver)},
		{"packet_too_large", codeStore, "the broker refuses packets of this size (0x95)",
			"a smaller value, or a larger limit at the broker", isReason("", mqtt.ReasonPacketTooLarge)},
		{"busy_login", codeConnection, "the broker lets nobody else in at the moment (0x88, 0x89, 0x97, 0x9F to CONNECT)", "again later",
			isReason("CONNACK", 0x88, mqtt.ReasonServerBusy, mqtt.ReasonQuotaExceeded, 0x9F)},
		{"busy", codeConnection, "the broker has no room for more at the moment (0x97, 0x89)",
			"again later; --high-priority passes where the broker allows it", isReason("", mqtt.ReasonQuotaExceeded, mqtt.ReasonServerBusy)},
		{"moved", codeConnection, "the broker sends clients to another one (0x9C, 0x9D)", "the other broker's address, with --host or --url", isReason("", 0x9C, 0x9D)},
		{"mqtt_version", codeConnection, "the broker does not speak MQTT 5 (0x84)", "a broker, or a listener of it, that speaks MQTT 5", isReason("CONNACK", 0x84)},
		{"client_id", codeLogin, "the broker does not accept the client id (0x85)", "another --client-id", isReason("CONNACK", 0x85)},
		{"topic_refused", codeUsage, "the broker does not accept the response topic (0x90, 0x8F)", "another --response-topic, or none", isReason("", 0x90, 0x8F)},

		{"client_certificate", codeLogin, "the broker wants a client certificate and got none, or none of the CAs that the broker names",
			"--cert-file and --key-file, of a CA that the broker trusts for clients", isClientCertificate(false)},
		{"client_certificate_refused", codeLogin, "the broker refused the client certificate",
			"one of a CA that the broker trusts for clients, and the certificates up to it, in --cert-file", isClientCertificate(true)},
		{"proxy_login", codeLogin, "the proxy wants another user name or password (407)",
			"export SSCLI_PROXY=http://USER:PASSWORD@HOST:PORT", isProxyLogin},
		{"proxy", codeConnection, "the proxy cannot be reached, or does not connect",
			"another --proxy; NO_PROXY names hosts that ALL_PROXY is not for", isStage(mqtt.StageProxy)},
		{"websocket", codeConnection, "the port does not answer with a WebSocket",
			"the broker's path, as in ws://HOST:PORT/mqtt, and wss:// for TLS", isStage(mqtt.StageWebSocket)},
		{"lookup", codeConnection, "the host name is not known", "check the host's name; from outside the cluster, forward a port first", isStage(mqtt.StageLookup)},
		{"refused", codeConnection, "nothing listens on that port",
			"check host and port (8883 with TLS, 1883 without); is the broker running?", is(syscall.ECONNREFUSED)},
		{"certificate_authority", codeLogin, "the broker's certificate leads to no CA that is trusted here",
			"--ca-file with the certificate of the broker's CA", isA[x509.UnknownAuthorityError]},
		{"certificate_name", codeLogin, "the broker's certificate is for another name",
			"a --host that the certificate names, or --tls-server-name", isA[x509.HostnameError]},
		{"certificate_time", codeLogin, "the broker's certificate has run out, or is not valid yet, by the local clock",
			"date -u, to see that the clock is right; else the broker needs a new certificate", isOutOfTime},
		{"certificate", codeLogin, "the broker's certificate does not verify", "--ca-file with the certificate of the broker's CA", isA[*tls.CertificateVerificationError]},
		{"tls_on_plain_port", codeLogin, "the port does not speak TLS", "--no-tls or mqtt://, or the port with TLS (8883)", isPlainPort},
		{"tls", codeLogin, "the TLS handshake was broken off", "", isAlert},
		{"plain_on_tls_port", codeConnection, "the broker closed a connection without TLS before it answered: perhaps the port speaks TLS",
			"--tls or mqtts://, or the port without TLS (1883)", isTLSPort},
		{"no_store", codeTimeout, "the broker accepted the request and said that nobody takes it (PUBACK 0x10)",
			"check that the broker has a state store; sscli serve is one for development", isA[*client.NoStoreError]},
		{"timeout", codeTimeout, "the time was over", "a longer --timeout; --trace shows what was waited for", isTimeout},
		{"unreachable", codeConnection, "the broker cannot be reached", "check host and port, and the network between", isStage(mqtt.StageTCP)},
		{"refused_login", codeConnection, "the broker refused the connection", "--trace shows what was sent; the broker's log may tell more", isReason("CONNACK")},
		{"request_refused", codeStore, "the broker refused the request", "--trace shows what was sent", isReason("PUBACK")},
		{"lost", codeConnection, "the connection was lost", "again; --trace shows what came before", isA[*mqtt.LostError]},
		{"disconnected", codeConnection, "the broker ended the connection", "", isA[*mqtt.ReasonError]},
		{"file", codeUsage, "a file cannot be read or written", "", isA[*fs.PathError]},
	}
}

func is(target error) func(error) bool {
	return func(err error) bool { return errors.Is(err, target) }
}

func isStore(kind wire.ErrorKind) func(error) bool {
	return func(err error) bool {
		e, ok := errors.AsType[*wire.StoreError](err)
		return ok && e.Kind() == kind
	}
}

// isReason fits a ReasonError of that packet (any if empty) and one of those
// codes (any if there are none).
func isReason(packet string, codes ...byte) func(error) bool {
	return func(err error) bool {
		e, ok := errors.AsType[*mqtt.ReasonError](err)
		if !ok || (packet != "" && e.Packet != packet) {
			return false
		}
		return len(codes) == 0 || strings.IndexByte(string(codes), e.Code) >= 0
	}
}

func isLogin(err error) bool {
	return isReason("", mqtt.ReasonBadLogin)(err) || isReason("CONNACK", mqtt.ReasonNotAuthorized)(err)
}

func isExpired(err error) bool {
	e, ok := errors.AsType[*client.TokenError](err)
	return ok && !e.Expiry.IsZero()
}

func isClientCertificate(given bool) func(error) bool {
	return func(err error) bool {
		e, ok := errors.AsType[*mqtt.ClientCertificateError](err)
		return ok && e.Given == given
	}
}

func isProxyLogin(err error) bool {
	e, ok := errors.AsType[*mqtt.ProxyError](err)
	return ok && e.Status == http.StatusProxyAuthRequired
}

func isStage(stage mqtt.Stage) func(error) bool {
	return func(err error) bool {
		e, ok := errors.AsType[*mqtt.DialError](err)
		return ok && e.Stage == stage && !isTimeout(err)
	}
}

func isOutOfTime(err error) bool {
	e, ok := errors.AsType[x509.CertificateInvalidError](err)
	return ok && e.Reason == x509.Expired
}

// isAlert fits what either side of TLS objects to. With TLS 1.3 a broker that
// wants a certificate of the client says so only after the handshake.
func isAlert(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	return ok && (op.Op == "remote error" || op.Op == "local error")
}

func isPlainPort(err error) bool {
	return isA[tls.RecordHeaderError](err) || (isStage(mqtt.StageTLS)(err) && isCut(err))
}

func isTLSPort(err error) bool {
	return !isA[*overTLSError](err) && isStage(mqtt.StageConnect)(err) && (isCut(err) || isA[*mqtt.MalformedError](err))
}

func isCut(err error) bool {
	return errors.Is(err, mqtt.ErrBrokerClosed) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

// message is the error in one line: what sscli did, and why it did not work.
func message(err error) string {
	if isTimeout(err) {
		if dns, ok := errors.AsType[*net.DNSError](err); ok {
			return strings.Replace(err.Error(), dns.Error(), "timed out", 1)
		}
		return strings.ReplaceAll(err.Error(), context.DeadlineExceeded.Error(), "timed out")
	}
	dial, ok := errors.AsType[*mqtt.DialError](err)
	if !ok {
		return err.Error()
	}
	inner := dial.Err
	if proxy, ok := errors.AsType[*mqtt.ProxyError](inner); ok && proxy.Err != nil {
		inner = proxy.Err
	}
	if certificate, ok := errors.AsType[*mqtt.ClientCertificateError](inner); ok {
		inner = certificate.Err
	}
	why := inner.Error()
	if op, ok := errors.AsType[*net.OpError](inner); ok {
		why = op.Err.Error() // the address is in the message already
	}
	if dns, ok := errors.AsType[*net.DNSError](inner); ok {
		why = dns.Err
	}
	if e, ok := errors.AsType[*tls.CertificateVerificationError](inner); ok {
		why = certificateWords(e, time.Now())
	}
	return strings.Replace(err.Error(), inner.Error(), why, 1)
}

// certificateWords names the certificate that does not verify, and the reason.
func certificateWords(e *tls.CertificateVerificationError, now time.Time) string {
	why := strings.TrimPrefix(e.Err.Error(), "x509: ")
	if len(e.UnverifiedCertificates) == 0 {
		return why
	}
	c := e.UnverifiedCertificates[0]
	if invalid, ok := errors.AsType[x509.CertificateInvalidError](e.Err); ok && invalid.Cert != nil {
		c = invalid.Cert
		if invalid.Reason == x509.Expired {
			why = timeWords(c, now)
		}
	}
	if wrong, ok := errors.AsType[x509.HostnameError](e.Err); ok {
		why = fmt.Sprintf("it is for %s, not for %s", nameWords(c), wrong.Host)
	}
	return fmt.Sprintf("certificate of %q, issued by %q: %s", c.Subject, c.Issuer, why)
}

// timeWords says when a certificate is valid, and what the time is here.
func timeWords(c *x509.Certificate, now time.Time) string {
	when := func(t time.Time) string { return t.UTC().Format(time.RFC3339) }
	if now.Before(c.NotBefore) {
		return fmt.Sprintf("it is not valid before %s, and here it is %s", when(c.NotBefore), when(now))
	}
	return fmt.Sprintf("it expired at %s, and here it is %s", when(c.NotAfter), when(now))
}

// nameWords are the names in a certificate.
func nameWords(c *x509.Certificate) string {
	names := slices.Clone(c.DNSNames)
	for _, ip := range c.IPAddresses {
		names = append(names, ip.String())
	}
	const most = 8
	switch {
	case len(names) == 0:
		return "no host: it has no subject alternative name"
	case len(names) > most:
		names = append(names[:most], "…")
	}
	return strings.Join(names, ", ")
}

// describe says what an error is about. A lost answer says it itself.
func describe(c client.Command, err error) error {
	if c.Key() == "" {
		return fmt.Errorf("%s: %w", format.Verb(c.Verb()), err)
	}
	return fmt.Errorf("%s %s: %w", format.Verb(c.Verb()), format.Brief(c.Key()), err)
}
