package fault

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io/fs"
	"net"
	"net/http"
	"slices"
	"strings"

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

// A Row of the table of errors defines what sscli prints for one kind of error.
type Row struct {
	Kind  string           // the name, which scripts may rely on
	Code  int              // the exit code
	Cause string           // the explanation in docs/troubleshooting.md
	Hint  string           // the next thing to do, as suggest.Try parses it; empty = no hint
	is    func(error) bool // reports whether an error is of this kind
}

// Of returns what sscli prints for an error: the error's message, and the contents of the first row of
// [Table] that fits. If no row fits, the kind is "error". f.Hint is empty: what the user can follow of the
// hint depends on the command.
func Of(err error) (f format.Fault, hint suggest.Hint) {
	f = format.Fault{Code: CodeConnection, Kind: "error"}
	f.Message, f.Details = describe(err)
	if store, ok := errors.AsType[*wire.StoreError](err); ok {
		f.StoreError = store.Text
	}
	for _, row := range Table() {
		if row.is(err) {
			f.Code, f.Kind, hint = row.Code, row.Kind, suggest.Try(row.Hint)
			break
		}
	}
	if advice, ok := Advice(err); ok {
		hint = advice
	}
	if e, ok := errors.AsType[exitCoder](err); ok {
		f.Code = e.ExitCode()
	}
	if IsA[*UnknownError](err) {
		f.Outcome = "unknown"
	}
	return f, fill(hint, err)
}

// An adviser is an error with its own hint. If ok is true, the hint replaces the row's hint; an empty
// hint then means that there is nothing to suggest. If ok is false, the row's hint stays.
type adviser interface {
	error
	Advice() (hint suggest.Hint, ok bool)
}

// An exitCoder is an error with its own exit code, which replaces the row's code.
type exitCoder interface {
	error
	ExitCode() int
}

// Advice returns the hint of the outermost error that has its own hint. The hint may be empty. ok is
// false if no error has one.
func Advice(err error) (hint suggest.Hint, ok bool) {
	for e, is := errors.AsType[adviser](err); is; e, is = errors.AsType[adviser](errors.Unwrap(e)) {
		if hint, ok = e.Advice(); ok {
			return hint, true
		}
	}
	return nil, false
}

// fill fills the places in a hint with values from the error: the lock, the key, the request's fencing
// token, and the addresses of the WebSocket and the proxy.
func fill(hint suggest.Hint, err error) suggest.Hint {
	var name, key, token string
	if e, ok := errors.AsType[*keyError](err); ok {
		name, key = e.key, e.key
	}
	if e, ok := errors.AsType[*client.LockLostError](err); ok {
		name = e.Name
	}
	if e, ok := errors.AsType[*client.NotHolderError](err); ok {
		name = e.Status.Name
	}
	if e, ok := errors.AsType[*client.LockBusyError](err); ok {
		name = e.Status.Name
	}
	if e, ok := errors.AsType[*client.WatchError](err); ok {
		key = e.Key
	}
	if e, ok := errors.AsType[*requestError](err); ok {
		key, token = e.key, e.token
	}
	hint = hint.Fill(suggest.Name, name).Fill(suggest.Key, key).Fill(suggest.Token, token)
	if e, ok := errors.AsType[*mqtt.ProxyError](err); ok {
		scheme, address, _ := strings.Cut(e.Proxy, "://")
		hint = hint.Fill(suggest.Proxy, scheme+"://USER:PASSWORD@"+address)
	}
	if e, ok := errors.AsType[*mqtt.DialError](err); ok && e.Stage == mqtt.StageWebSocket {
		hint = hint.Fill(suggest.WebSocket, "ws://"+e.Address)
	}
	return hint
}

// Table returns the table of all kinds of errors. The first row that fits an error applies.
func Table() []Row {
	const (
		trace       = "`--trace` shows what was sent"
		credentials = "`--username with --askpass` or `--password-file`; `--sat-file`; or `--cert-file with --key-file`, as the broker's port requires"
	)
	return []Row{
		{"interrupted", 128, "a signal ended sscli; its number is added to the code", "", IsA[*signals.Interrupted]},
		{"expectation", CodeNo, "a command of a batch ended with another code than expected; the code is the command's, if that is above 1", "", IsA[*ExpectError]},
		{"outcome_unknown", CodeUnknown, "a write was sent, no usable reply came, and the key does not show whether it was applied",
			"read the key and decide; repeat the write if it may safely be applied twice", IsA[*UnknownError]},
		{"gap", codeContinuity, "the watch was interrupted and cannot prove that it missed nothing",
			"read the keys again and start a new watch", is(ErrGap)},
		{"overflow", codeContinuity, "events arrive faster than the reader of the watch takes them",
			"use a faster reader, a larger `--buffer`, or fewer keys", is(client.ErrOverflow)},
		{"lock_lost", CodeLockLost, "a lock was lost while it was held: it was not renewed in time, or its key was deleted or taken",
			"`sscli lock status NAME` shows who holds it; read again what it protects", is(client.ErrLockLost)},
		{"lock_not_held", CodeLockLost, "a lock could not be renewed or released: it expired, was released, or has another holder",
			"`sscli lock status NAME` shows who holds it; acquire it again", is(client.ErrNotHolder)},
		{"lock_busy", CodeNo, "the lock has another holder, and the time to wait (if any) is over",
			"`sscli lock status NAME --observe 30s` shows if it is renewed; use a longer `--wait`", is(client.ErrLockBusy)},
		{"not_dataset", CodeNo, "the value is not a data set: JSON Lines, one object a line", "", IsA[*DatasetError]},
		{"not_written", CodeNo, "a value was not written, or a lock not broken: another client changed the key, or, in edit, the editor ended with an exit code other than 0, or the text is not JSON or empty", "", IsA[*NotWrittenError]},
		{"not_applied", codeTimeout, "a write was sent, no usable reply came, and the key is as it was before",
			"run it again", IsA[*NotAppliedError]},
		{"child", process.CodeSetup, "the command after -- could not be started (125, 126, 127)", "", IsA[*process.StartError]},
		{"guard", process.CodeSetup, "the process that guards the command of a lock was killed, so the command was killed too", "run it again, and check whether the machine is short of memory", is(process.ErrGuardDied)},
		{"usage", CodeUsage, "the command line cannot be understood", "", IsA[*UsageError]},
		{"no_broker", CodeUsage, "no flag, variable or context names a broker",
			"`-u mqtt://HOST:PORT`, export SSCLI_URL, or `sscli context set`; without a broker: `--embedded`, or `sscli serve`", IsA[*config.NoBrokerError]},
		{"config", CodeUsage, "the value of a flag, a variable or a context is invalid", "`sscli help environment`", IsA[*config.Error]},
		{"context", CodeUsage, "no context has this name", "`sscli context list`", IsA[*config.UnknownContextError]},
		{"config_file", CodeUsage, "the file of contexts cannot be read or written, is invalid, or is writable by others", "", IsA[*config.FileError]},
		{"protected", CodeUsage, "a write in a protected context, del --match, apply --prune or lock break was not confirmed", "`--yes`", IsA[*ProtectedError]},
		{"terminal", CodeUsage, "a question cannot be asked: sscli was not started from a terminal",
			"`--password-file in place of --askpass`, `--yes` in place of an answer", IsA[*terminal.Error]},
		{"response_topic", CodeUsage, "the broker disconnects clients that ask for replies on this topic",
			"use another `--response-topic`, or none", is(wire.ErrForbiddenResponseTopic)},
		{"invalid", CodeUsage, "the request is invalid and was not sent", "", IsA[*client.InvalidError]},
		{"too_large", CodeUsage, "the request is larger than the broker's Maximum Packet Size and was not sent",
			"use a smaller value, or raise the broker's limit", IsA[*mqtt.TooLargeError]},
		{"output", CodeOutput, "the request was carried out, but its result could not be printed: standard output is full or closed, the file of get -f cannot be written, or the template does not fit", "", IsA[*OutputError]},
		{"data_file", CodeData, "the file of serve --data cannot be used: another process has it, it is damaged, or the disk has no room or an error",
			"`sscli serve --data-check FILE`", IsA[*DataError]},

		{"fencing_required", CodeFencing, "the key is protected by a fencing token and the request had none",
			"`sscli explain KEY --ask`; `sscli lock run LOCK -- sscli … --fence lock`, with the lock of the key; `--fence TOKEN`, with that lock's token; `--force-fence` overrides the key's token, if no holder of the lock is at work", IsStoreError(wire.ErrorFenceRequired)},
		{"fencing_lower", CodeFencing, "the key was written with a newer token, so the lock of this token was lost",
			"`sscli explain KEY --ask`; acquire the lock again and use its token; read the key again before you write it; `--force-fence in place of --fence` overrides the key's token, if no holder of the lock is at work", IsStoreError(wire.ErrorFenceLower)},
		{"fencing_ahead", CodeFencing, "the token is more than a minute ahead of the store's clock: another store issued it, or a clock is wrong",
			"`sscli hlc parse TOKEN` shows its time; use the token exactly as the lock's reply gave it", IsStoreError(wire.ErrorFenceAhead)},
		{"timestamp_malformed", CodeFencing, "the store cannot parse the fencing token",
			"`sscli hlc parse TOKEN`", IsStoreError(wire.ErrorMalformedTimestamp)},
		{"clock_ahead", CodeClock, "the local clock is more than a minute ahead of the store's",
			"`sscli doctor --write` shows by how much; synchronize the clocks here and on the broker's nodes", IsStoreError(wire.ErrorClockAhead)},
		{"local_clock", CodeClock, "the local clock is more than a minute behind the store's", "synchronize the local clock", is(wire.ErrDrift)},
		{"key_not_authorized", CodeLogin, "the broker's rules do not allow this client to access the key like this",
			"grant access to `KEY` in stateStoreResources; Read for get and watch, Write for set, del and vdel", IsStoreError(wire.ErrorNotAuthorized)},
		{"quota", CodeStore, "the store holds the maximum number of keys",
			"delete keys, or let them expire (PX); use a larger memory profile of the broker", IsStoreError(wire.ErrorQuota)},
		{"syntax", CodeStore, "the store does not understand the request", trace, IsStoreError(wire.ErrorSyntax)},
		{"no_scan", CodeStore, "this broker has no SCAN, which is newer than the state store: its keys cannot be listed",
			"get and watch keys by their names, or use a newer broker", IsA[*NoScanError]},
		{"unknown_command", CodeStore, "this broker does not know the verb",
			"the state store has SET, GET, DEL, VDEL and KEYNOTIFY", IsStoreError(wire.ErrorUnknownCommand)},
		{"wrong_arguments", CodeStore, "the verb takes another number of arguments", trace, IsStoreError(wire.ErrorWrongArguments)},
		{"timestamp_missing", CodeStore, "the request had no timestamp", trace, IsStoreError(wire.ErrorMissingTimestamp)},
		{"key_empty", CodeStore, "the key is empty", "use a key of at least one byte", IsStoreError(wire.ErrorEmptyKey)},
		{"store_error", CodeStore, "the store refused the request for a reason that sscli does not know", trace, IsA[*wire.StoreError]},
		{"status", CodeStore, "the broker refused the request before the store saw it", trace, IsA[*client.StatusError]},
		{"answer", codeAnswer, "the reply is not what the protocol allows", "`--trace` shows it", IsA[*client.ReplyError]},

		{"kubectl_missing", CodeUsage, "kubectl is not installed, or is too old", "", isKubectl(via.Missing)},
		{"kubectl_unreachable", CodeConnection, "kubectl cannot reach the cluster or the broker's pod", "", isKubectl(via.Unreachable)},
		{"kubectl_login", CodeLogin, "the cluster does not accept kubectl's login", "", isKubectl(via.Unauthorized)},
		{"kubectl_forbidden", CodeLogin, "the cluster's rules (RBAC) do not allow what --via needs", "", isKubectl(via.Forbidden)},
		{"kubectl_not_found", CodeConnection, "the cluster has no such service, pod, config map or service account, or kubectl no such context", "", isKubectl(via.NotFound)},
		{"kubectl", CodeConnection, "kubectl ended with an error that sscli does not know", "", IsA[*via.Error]},

		{"token_expired", CodeLogin, "the broker refused a service-account token that had expired by the local clock",
			"write a new token to the file of --sat-file; kubectl create token prints one", matches(isExpired)},
		{"token", CodeUsage, "the file of the service-account token cannot be read, or holds no token", "use another `--sat-file`", IsA[*client.TokenError]},
		{"auth_later", CodeConnection, "the broker cannot verify the login at the moment (AUTH 0x18)", "try again later", is(mqtt.ErrAuthLater)},
		{"reauth", CodeLogin, "the broker refused the new service-account token of a connection", "write a token that the broker accepts to the file of --sat-file",
			IsA[*mqtt.ReauthError]},
		{"login", CodeLogin, "the broker refuses user name, password or credentials (0x86)", credentials, isReason("", mqtt.ReasonBadLogin)},
		{"connect_denied", CodeLogin, "the broker does not let this client connect (0x87): no Connect rule allows its client id, or, at some brokers, the login is wrong",
			"`-i` with a client id that a Connect rule allows; check the login too, because some brokers answer a wrong one so; `sscli doctor` shows the rule to ask for", isReason("CONNACK", mqtt.ReasonNotAuthorized)},
		{"not_authorized", CodeLogin, "the broker's rules do not allow this client to publish or subscribe (0x87)",
			"add a rule for the topic or the client id; `sscli doctor` shows the rule to ask for; `--trace` shows the topics", isReason("", mqtt.ReasonNotAuthorized)},
		{"banned", CodeLogin, "the broker has banned the client (0x8A)", "use another `--client-id`", isReason("", mqtt.ReasonBanned)},
		{"auth_method", CodeLogin, "the broker requires another authentication method (0x8C)",
			credentials, isReason("", mqtt.ReasonBadAuthMethod)},
		{"taken_over", CodeConnection, "another client connected with the same client id (0x8E)",
			"use another `--client-id`, or none for a random one", isReason("", mqtt.ReasonTakenOver)},
		{"packet_too_large", CodeStore, "the broker refuses packets of this size (0x95)",
			"use a smaller value, or raise the broker's limit", isReason("", mqtt.ReasonPacketTooLarge)},
		{"busy_login", CodeConnection, "the broker accepts no more clients at the moment (0x88, 0x89, 0x97, 0x9F to CONNECT)", "try again later",
			isReason("CONNACK", 0x88, mqtt.ReasonServerBusy, mqtt.ReasonQuotaExceeded, 0x9F)},
		{"busy", CodeConnection, "the broker accepts no more requests at the moment (0x97, 0x89)",
			"try again later, or with `--high-priority` where the broker allows it", isReason("", mqtt.ReasonQuotaExceeded, mqtt.ReasonServerBusy)},
		{"moved", CodeConnection, "the broker sends clients to another broker (0x9C, 0x9D)", "use the other broker's address, with `--host` or `--url`", isReason("", 0x9C, 0x9D)},
		{"mqtt_version", CodeConnection, "the broker does not speak MQTT 5 (0x84)", "use a broker, or a listener of this broker, that speaks MQTT 5", isReason("CONNACK", 0x84)},
		{"qos", CodeConnection, "the broker supports only QoS 0", "use a broker, or a listener of this broker, that supports QoS 1", is(mqtt.ErrQoS0)},
		{"client_id", CodeLogin, "the broker does not accept the client id (0x85)", "use another `--client-id`", isReason("CONNACK", 0x85)},
		{"topic_refused", CodeUsage, "the broker does not accept the response topic (0x90, 0x8F)", "use another `--response-topic`, or none", isReason("", 0x90, 0x8F)},

		{"client_certificate", CodeLogin, "the broker requires a client certificate, and there was none, or none from the CAs that it names",
			"`--cert-file` and `--key-file`, from a CA that the broker trusts", isClientCertificate(false)},
		{"client_certificate_refused", CodeLogin, "the broker refused the client certificate",
			"a `--cert-file` from a CA that the broker trusts for clients; with all intermediate certificates", isClientCertificate(true)},
		{"proxy_login", CodeLogin, "the proxy refused the user name or the password (407)",
			"`export SSCLI_PROXY=http://USER:PASSWORD@HOST:PORT`", matches(isProxyLogin)},
		{"proxy", CodeConnection, "the proxy is unreachable, or cannot connect to the broker",
			"use another `--proxy`, or none; `sscli context show` says what names it", isStage(mqtt.StageProxy)},
		{"websocket", CodeConnection, "the port does not answer with a WebSocket",
			"add the broker's path: `ws://HOST:PORT/mqtt`; use wss:// for TLS", isStage(mqtt.StageWebSocket)},
		{"lookup", CodeConnection, "the host name is unknown", "check the host name; from outside the cluster: `--via kubectl`, or forward a port first", isStage(mqtt.StageLookup)},
		{"refused", CodeConnection, "nothing listens on that port",
			"check host and port (8883 with TLS, 1883 without); is the broker running?", is(neterr.Refused)},
		{"certificate_authority", CodeLogin, "the broker's certificate is not from a CA that is trusted here",
			"`--ca-file` with the certificate of the broker's CA", IsA[x509.UnknownAuthorityError]},
		{"certificate_name", CodeLogin, "the broker's certificate is for another host name",
			"use a `--host` that the certificate names, or `--tls-server-name`", IsA[x509.HostnameError]},
		{"certificate_time", CodeLogin, "the broker's certificate has expired, or is not valid yet, by the local clock",
			"check the local clock with date -u; if it is right, the broker needs a new certificate", matches(isOutOfTime)},
		{"certificate", CodeLogin, "the broker's certificate does not verify", "the broker needs a certificate for servers, from a CA that may issue it", IsA[*tls.CertificateVerificationError]},
		{"tls_on_plain_port", CodeLogin, "the port does not speak TLS", "use `--no-tls` or mqtt://, or the port with TLS (8883)", isPlainPort},
		{"tls", CodeLogin, "the TLS handshake was aborted", "", matches(isAlert)},
		{"plain_on_tls_port", CodeConnection, "the broker closed a connection without TLS before it answered: perhaps the port speaks TLS",
			"use `--tls` or mqtts://, or the port without TLS (1883)", isTLSPort},
		{"no_store", CodeConnection, "no state store is listening on this broker: for a second, it discarded every copy of the request (PUBACK 0x10)",
			"check that the broker has a state store; for development, `sscli serve --attach` adds one", IsA[*client.NoStoreError]},
		{"stores", CodeStore, "two state stores answer on one broker: one request got several replies",
			"end all but one of them; each sscli serve --attach is a store, and the broker may have its own", IsA[*StoresError]},
		{"other_store", codeOtherStore, "serve --attach: another state store serves on this broker, so this one does not",
			"end the other one first, or use `--standby`, which waits until it has gone", IsA[*emulator.OtherStoreError]},
		{"self_test", CodeLogin, "serve --attach: its requests to itself got no answer: usually the broker does not let it read or write a topic",
			"let the user of serve --attach use clients/# and the topic for requests", IsA[*emulator.SelfTestError]},
		{"timeout", codeTimeout, "no reply came in time", "use a longer `--timeout`; `--trace` shows what was waited for", IsTimeout},
		{"unreachable", CodeConnection, "the broker is unreachable", "check host and port, and the network between", isStage(mqtt.StageTCP)},
		{"refused_login", CodeConnection, "the broker refused the connection", "`--trace` shows what was sent; the broker's log may say more", isReason("CONNACK")},
		{"request_refused", CodeStore, "the broker refused the request", trace, isReason("PUBACK")},
		{"lost", CodeConnection, "the connection was lost", "try again; `--trace` shows what came before", IsA[*mqtt.LostError]},
		{"disconnected", CodeConnection, "the broker ended the connection", "", IsA[*mqtt.ReasonError]},
		{"file", CodeUsage, "a file cannot be read or written", "", IsA[*fs.PathError]},
	}
}

func is(target error) func(error) bool {
	return func(err error) bool { return errors.Is(err, target) }
}

// IsStoreError returns a function that reports whether an error wraps a *wire.StoreError of the
// given kind.
func IsStoreError(kind wire.ErrorKind) func(error) bool {
	return matches(func(e *wire.StoreError) bool { return e.Kind() == kind })
}

// matches returns a function that reports whether an error is, or wraps, an E that fits.
func matches[E error](fits func(E) bool) func(error) bool {
	return func(err error) bool {
		e, ok := errors.AsType[E](err)
		return ok && fits(e)
	}
}

// isReason returns a function that reports whether an error wraps a ReasonError from the given packet
// and with one of the given codes. An empty packet means any packet, and no codes mean any code.
func isReason(packet string, codes ...byte) func(error) bool {
	return matches(func(e *mqtt.ReasonError) bool {
		return (packet == "" || e.Packet == packet) && (len(codes) == 0 || slices.Contains(codes, e.Code))
	})
}

func isKubectl(kind via.Kind) func(error) bool {
	return matches(func(e *via.Error) bool { return e.Kind == kind })
}

func isExpired(e *client.TokenError) bool { return !e.Expiry.IsZero() }

func isClientCertificate(given bool) func(error) bool {
	return matches(func(e *mqtt.ClientCertificateError) bool { return e.Given == given })
}

func isProxyLogin(e *mqtt.ProxyError) bool { return e.Status == http.StatusProxyAuthRequired }

func isStage(stage mqtt.Stage) func(error) bool {
	is := matches(func(e *mqtt.DialError) bool { return e.Stage == stage })
	return func(err error) bool { return is(err) && !IsTimeout(err) }
}

func isOutOfTime(e x509.CertificateInvalidError) bool { return e.Reason == x509.Expired }

// isAlert reports whether an error is a TLS alert, sent or received, at any time. With TLS 1.3, a
// broker rejects a missing client certificate only after the client has completed the handshake.
func isAlert(e *net.OpError) bool { return e.Op == "remote error" || e.Op == "local error" }

func isPlainPort(err error) bool {
	return IsA[tls.RecordHeaderError](err) || (isStage(mqtt.StageTLS)(err) && isCut(err))
}

func isTLSPort(err error) bool {
	return !IsA[*OverTLSError](err) && isStage(mqtt.StageConnect)(err) && (isCut(err) || matches(func(e *mqtt.MalformedError) bool { return e.TLS })(err))
}

func isCut(err error) bool {
	return errors.Is(err, mqtt.ErrBrokerClosed) || errors.Is(err, neterr.Reset) || errors.Is(err, neterr.Broken)
}
