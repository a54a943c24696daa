// Package via connects to a broker in a Kubernetes cluster through the user's own kubectl, with its
// login, contexts and plugins.
//
//	w := via.New(via.Options{Target: *settings.Via, CA: settings.ClusterCA(), Account: settings.ClusterAccount(), Roots: pool})
//	defer w.Close()
//	o := client.Options{Address: settings.Address, TLS: &tls.Config{RootCAs: pool}, Dial: w.Dial, ReadToken: w.Token}
//
// The first Dial, Open, CA or Token of a [Way] starts up to three kubectl processes in parallel:
// port-forward, get --raw for the config map with the broker's CA, and create token. The
// port-forward keeps running. After it has ended, for example because its pod was deleted, the next
// [Way.Dial] starts another.
//
// The CA and the token stay in memory. Each kubectl is a [process.Background], so it ends when sscli
// ends, even if sscli is killed. When kubectl fails, the error is an *[Error]. When the caller's
// context ends first, the error wraps the cause of the context.
package via

import (
	"bytes"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"math"
	"net"
	"sync"
	"time"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/cmd/sscli/internal/config"
	"github.com/sscli/sscli/cmd/sscli/internal/suggest"
)

// Audience is the audience of the tokens that a [Way] requests. The broker's default listener accepts
// this audience unless the listener's BrokerAuthentication names another (protocol.md 7.2).
const Audience = "aio-internal"

// Options configure a [Way].
type Options struct {
	Target  config.Via
	CA      string         // config map with the broker's CA; empty = don't read a CA
	Roots   *x509.CertPool // pool to which the Way adds the CA, before the first connection; required with CA
	Account string         // service account to log in as; empty = don't create tokens

	// Inform shows a message to the user: the reason for a long wait, or a line from a kubectl that
	// may be asking for a login. Inform may be called concurrently. nil = show nothing.
	Inform func(string)

	// Temp is a directory that is removed if sscli is killed while a kubectl runs; empty = none.
	Temp string
}

// A Way connects to one broker in a cluster. Its methods may be called concurrently.
type Way struct {
	o      Options
	ctx    context.Context // ends with Close; its cause is errClosed
	cancel context.CancelCauseFunc
	wg     sync.WaitGroup

	mu       sync.Mutex
	forward  *forward  // the newest; nil = none was started yet
	failures int       // number of forwards started since a connection last received data
	started  time.Time // start of the newest forward; in the future while the forward is delayed
	ca       *call     // reads the CA; nil = not started; replaced if it failed
	bundle   []byte    // the CA in PEM; nil = o.Roots does not have the CA yet
	token    *call     // creates the token in use; replaced if it failed
	renewal  *call     // creates the next token; nil = none is being created
}

// New returns a Way. It does not run kubectl yet.
func New(o Options) *Way {
	if o.Inform == nil {
		o.Inform = func(string) {}
	}
	w := &Way{o: o}
	w.ctx, w.cancel = context.WithCancelCause(context.Background())
	return w
}

// begin starts each kubectl that the first connection needs, unless it was started before. The deadline
// of ctx limits how long the port-forward waits for a pod.
func (w *Way) begin(ctx context.Context) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ctx.Err() != nil {
		return
	}
	if w.forward == nil {
		w.startForward(ctx, 0)
	}
	w.readCA()
	if w.o.Account != "" && w.token == nil {
		w.token = w.createToken()
	}
}

// Dial connects to the broker through a port-forward, and starts a port-forward if there is none. It
// ignores its last two parameters, the network and the address.
func (w *Way) Dial(ctx context.Context, _, _ string) (net.Conn, error) {
	f, err := w.open(ctx)
	if err != nil {
		return nil, err
	}
	return f.dial(ctx)
}

// Open waits until the CA is known and a port-forward is ready.
func (w *Way) Open(ctx context.Context) error {
	_, err := w.open(ctx)
	return err
}

// open adds the CA to w.o.Roots, and returns a port-forward that is ready.
func (w *Way) open(ctx context.Context) (*forward, error) {
	defer w.explainWait("kubectl port-forward " + w.o.Target.Resource)()
	w.begin(ctx)
	if err := w.trust(ctx); err != nil {
		return nil, err
	}
	return w.openForward(ctx)
}

// explainWait shows the user what the caller waits for, if the wait takes longer than 3 s. The caller
// calls stop after the wait.
func (w *Way) explainWait(what string) (stop func()) {
	const long = 3 * time.Second
	t := time.AfterFunc(long, func() { w.o.Inform("waiting for " + what) })
	return func() { t.Stop() }
}

// readCA starts a kubectl that reads the CA. It does nothing if no CA is needed, or if such a kubectl
// is running or has succeeded. w.mu must be held.
func (w *Way) readCA() {
	if w.o.CA != "" && (w.ca == nil || w.ca.failed()) {
		// Without --raw, kubectl would first ask the API server which resources exist.
		path := "/api/v1/namespaces/" + w.o.Target.Namespace + "/configmaps/" + w.o.CA
		w.ca = w.startAs("kubectl get configmap "+w.o.CA, "get", "--raw", path)
	}
}

// trust waits for the CA, and adds it to w.o.Roots.
func (w *Way) trust(ctx context.Context) error {
	if w.o.CA == "" {
		return nil
	}
	w.mu.Lock()
	w.readCA()
	call, trusted := w.ca, w.bundle != nil
	w.mu.Unlock()
	if trusted {
		return nil
	}
	text, err := call.wait(ctx)
	if err != nil {
		return err
	}
	bundle, certificates, err := parseConfigMap(text)
	if err != nil {
		return &Error{Call: call.name, Kind: NotFound, Why: err.Error(), Hint: suggest.Try("use `--ca-file`, or `--via-ca` with another config map")}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.bundle == nil {
		for _, c := range certificates {
			w.o.Roots.AddCert(c)
		}
		w.bundle = bundle
	}
	return nil
}

// CA returns the broker's CA in PEM; nil if [Options.CA] is empty.
func (w *Way) CA(ctx context.Context) ([]byte, error) {
	if w.o.CA == "" {
		return nil, nil
	}
	w.begin(ctx)
	if err := w.trust(ctx); err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.bundle, nil
}

// Authorities returns the certificates of the broker's CA. It fails if [Options.CA] is empty.
func (w *Way) Authorities(ctx context.Context) ([]*x509.Certificate, error) {
	text, err := w.CA(ctx)
	if err != nil {
		return nil, err
	}
	return parseCertificates(text)
}

// Kubectl runs kubectl with the kubectl context and the namespace of the Way. It returns kubectl's
// standard output, even if kubectl fails.
func (w *Way) Kubectl(ctx context.Context, words ...string) ([]byte, error) {
	w.mu.Lock()
	call := w.start(words...)
	w.mu.Unlock()
	return call.wait(ctx)
}

// Token returns the token to log in with. After 80 % of the token's lifetime, Token also starts the
// creation of the next token.
func (w *Way) Token(ctx context.Context) ([]byte, error) {
	defer w.explainWait("kubectl create token " + w.o.Account)()
	w.begin(ctx)
	w.mu.Lock()
	call := w.currentToken()
	w.mu.Unlock()
	if call == nil {
		return nil, errClosed
	}
	token, err := call.wait(ctx)
	if err != nil {
		return nil, err
	}
	return parseToken(call, token)
}

// currentToken returns the kubectl call that has created, or still creates, the token to use now. If a
// renewal fails, the old token stays in use until it expires. w.mu must be held.
func (w *Way) currentToken() *call {
	if w.token == nil || w.ctx.Err() != nil {
		return w.token
	}
	if w.renewal != nil && w.renewal.ended() {
		if !w.renewal.failed() {
			w.token = w.renewal
		}
		w.renewal = nil
	}
	if !w.token.ended() {
		return w.token
	}
	if w.token.failed() {
		w.token = w.createToken()
		return w.token
	}
	due, expired := tokenAge(w.token.stdout.bytes(), time.Now())
	if due && w.renewal == nil {
		w.renewal = w.createToken()
	}
	if expired && w.renewal != nil {
		return w.renewal
	}
	return w.token
}

// tokenAge reports whether a token is due for renewal, and whether it has expired. Both are false for a
// token without an expiry time.
func tokenAge(token []byte, now time.Time) (due, expired bool) {
	issued, expires := client.TokenTimes(bytes.TrimSpace(token))
	if expires.IsZero() {
		return false, false
	}
	if issued.IsZero() {
		issued = expires.Add(-time.Hour) // the lifetime that kubectl requests
	}
	return !now.Before(issued.Add(expires.Sub(issued) / 5 * 4)), !now.Before(expires)
}

func (w *Way) createToken() *call {
	return w.start("create", "token", w.o.Account, "--audience="+Audience)
}

func parseToken(call *call, text []byte) ([]byte, error) {
	token := bytes.TrimSpace(text)
	if len(token) == 0 || len(token) > math.MaxUint16 {
		return nil, &Error{Call: call.name, Kind: Other, Why: fmt.Sprintf("printed %d bytes in place of a token", len(token))}
	}
	return token, nil
}

// Close stops every kubectl, and waits until all of them have ended.
func (w *Way) Close() error {
	w.mu.Lock()
	w.cancel(errClosed)
	w.mu.Unlock()
	w.wg.Wait()
	return nil
}

var errClosed = errors.New("the connection into the cluster was closed")
