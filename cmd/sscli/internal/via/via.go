// Package via connects to a broker in a Kubernetes cluster through the user's own kubectl, with its
// login, contexts and plugins.
//
//	w := via.New(via.Options{Target: *settings.Via, CA: settings.ClusterCA(), Account: settings.ClusterAccount(), Roots: pool})
//	defer w.Close()
//	o := client.Options{Address: settings.Address, TLS: &tls.Config{RootCAs: pool}, Dial: w.Dial, ReadToken: w.Token}
//
// When a [Way] is first used, it starts kubectl three times in parallel: port-forward, get --raw for the
// config map with the broker's CA, and create token. The port-forward keeps running. When it ends, for example
// because its pod was deleted, the next [Way.Dial] starts another.
//
// The CA and the token stay in memory. Each kubectl is a [process.Background], so it ends with sscli
// even if sscli is killed. When kubectl fails, the error is an *[Error]. When the caller's context
// ends first, the error wraps its cause.
package via

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/cmd/sscli/internal/config"
)

// Audience is the audience of the tokens that a [Way] requests. The broker's default listener accepts it
// unless the listener's BrokerAuthentication names another (protocol.md 7.2).
const Audience = "aio-internal"

// Options configure a [Way].
type Options struct {
	Target  config.Via
	CA      string         // config map with the broker's CA; empty = no CA is needed
	Roots   *x509.CertPool // gets the CA before Dial returns for the first time; required with CA
	Account string         // service account to log in as; empty = no token is needed

	// Inform is called with messages for the user: the reason for a long wait, and the lines of a
	// kubectl that may be asking for a login. Several goroutines may call it at once. It may be nil.
	Inform func(string)

	// Temp is a directory that is removed if sscli dies; empty = none.
	Temp string
}

// A Way connects to one broker in a cluster. Its methods may be called concurrently.
type Way struct {
	o      Options
	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	wg     sync.WaitGroup

	mu       sync.Mutex
	forward  *forward  // the newest; nil = none was started yet
	failures int       // forwards started since a connection last received data
	started  time.Time // when the newest forward starts, after its delay
	ca       *call     // reads the CA; nil = not started; replaced if it failed
	token    *call     // creates the token in use; replaced if it failed
	renewal  *call     // creates the next token; nil = none is being created
	trusted  bool      // o.Roots has the CA
}

// New returns a Way. It does not run kubectl yet.
func New(o Options) *Way {
	if o.Inform == nil {
		o.Inform = func(string) {}
	}
	w := &Way{o: o}
	w.ctx, w.cancel = context.WithCancel(context.Background())
	return w
}

// begin starts each kubectl that the first connection needs, unless it was already started. ctx is
// the caller's, who waits for them.
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

// Dial connects through a port-forward, and starts one if there is none. It ignores network and
// address.
func (w *Way) Dial(ctx context.Context, _, _ string) (net.Conn, error) {
	defer w.explainWait("kubectl port-forward " + w.o.Target.Resource)()
	w.begin(ctx)
	if err := w.trust(ctx); err != nil {
		return nil, err
	}
	f, err := w.openForward(ctx)
	if err != nil {
		return nil, err
	}
	return f.dial(ctx)
}

// Open waits until the CA is known and a port-forward is ready.
func (w *Way) Open(ctx context.Context) error {
	defer w.explainWait("kubectl port-forward " + w.o.Target.Resource)()
	w.begin(ctx)
	if err := w.trust(ctx); err != nil {
		return err
	}
	_, err := w.openForward(ctx)
	return err
}

// explainWait tells the user what the caller waits for, if the wait takes longer than 3 s. The
// caller calls over after the wait.
func (w *Way) explainWait(what string) (over func()) {
	const long = 3 * time.Second
	t := time.AfterFunc(long, func() { w.o.Inform("waiting for " + what) })
	return func() { t.Stop() }
}

// readCA starts to read the CA unless none is needed or a read has started and not failed. w.mu must
// be held.
func (w *Way) readCA() {
	if w.o.CA != "" && (w.ca == nil || w.ca.failed()) {
		// Without --raw, kubectl would first look up what a configmap is.
		path := "/api/v1/namespaces/" + w.o.Target.Namespace + "/configmaps/" + w.o.CA
		w.ca = w.startAs("kubectl get configmap "+w.o.CA, "get", "--raw", path)
	}
}

// trust waits for the CA, and adds it to the roots.
func (w *Way) trust(ctx context.Context) error {
	if w.o.CA == "" {
		return nil
	}
	w.mu.Lock()
	w.readCA()
	call, trusted := w.ca, w.trusted
	w.mu.Unlock()
	if trusted {
		return nil
	}
	text, err := call.wait(ctx)
	if err != nil {
		return err
	}
	certificates, err := certificates(text)
	if err != nil {
		return &Error{Call: call.words, Kind: NotFound, Why: err.Error(), Hint: "use --ca-file, or --via-ca with another config map"}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.trusted {
		for _, c := range certificates {
			w.o.Roots.AddCert(c)
		}
		w.trusted = true
	}
	return nil
}

// CA returns the broker's CA in PEM; nil if none is needed.
func (w *Way) CA(ctx context.Context) ([]byte, error) {
	if w.o.CA == "" {
		return nil, nil
	}
	w.begin(ctx)
	if err := w.trust(ctx); err != nil {
		return nil, err
	}
	w.mu.Lock()
	call := w.ca
	w.mu.Unlock()
	text, err := call.wait(ctx)
	if err != nil {
		return nil, err
	}
	return pemOf(text)
}

// Authorities returns the certificates of the broker's CA. It is an error if no CA is needed.
func (w *Way) Authorities(ctx context.Context) ([]*x509.Certificate, error) {
	text, err := w.CA(ctx)
	if err != nil {
		return nil, err
	}
	return parseCertificates(text)
}

// Kubectl runs kubectl for the cluster and the namespace of the way, and returns its standard
// output, also with an error.
func (w *Way) Kubectl(ctx context.Context, words ...string) ([]byte, error) {
	w.mu.Lock()
	call := w.start(words...)
	w.mu.Unlock()
	return call.wait(ctx)
}

// Token returns the token to log in with. It starts to renew a token after 80 % of its lifetime.
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

// currentToken returns the kubectl call that provides the token to use now. If a renewal fails, the old token stays in
// use until it expires. w.mu must be held.
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
	due, expired := tokenAge(w.token.stdout.Bytes(), time.Now())
	if due && w.renewal == nil {
		w.renewal = w.createToken()
	}
	if expired && w.renewal != nil {
		return w.renewal
	}
	return w.token
}

// tokenAge reports whether a token is due for renewal, and whether it has expired. A token without
// an expiry time is neither.
func tokenAge(token []byte, now time.Time) (due, expired bool) {
	issued, expires := client.TokenTimes([]byte(strings.TrimSpace(string(token))))
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
	token := []byte(strings.TrimSpace(string(text)))
	if len(token) == 0 || len(token) > math.MaxUint16 {
		return nil, &Error{Call: call.words, Kind: Other, Why: fmt.Sprintf("printed %d bytes in place of a token", len(token))}
	}
	return token, nil
}

// Close stops every kubectl, and waits until all have ended.
func (w *Way) Close() error {
	w.mu.Lock()
	w.cancel()
	w.mu.Unlock()
	w.wg.Wait()
	return nil
}

var errClosed = errors.New("the connection into the cluster was closed")

// certificates reads the certificates in a config map.
func certificates(text []byte) ([]*x509.Certificate, error) {
	data, err := pemOf(text)
	if err != nil {
		return nil, err
	}
	return parseCertificates(data)
}

// pemOf returns the values of a config map, joined. It is an error if they hold no certificate in PEM.
func pemOf(text []byte) ([]byte, error) {
	var m struct {
		Data map[string]string `json:"data"`
	}
	if err := json.Unmarshal(text, &m); err != nil {
		return nil, fmt.Errorf("not a config map: %w", err)
	}
	var all []byte
	for _, key := range sortedKeys(m.Data) {
		all = append(all, strings.TrimSpace(m.Data[key])+"\n"...)
	}
	if _, err := parseCertificates(all); err != nil {
		return nil, err
	}
	return all, nil
}
