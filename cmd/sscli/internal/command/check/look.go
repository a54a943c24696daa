package check

import (
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/cmd/sscli/internal/app"
	"github.com/sscli/sscli/cmd/sscli/internal/certs"
	"github.com/sscli/sscli/cmd/sscli/internal/command/ping"
	"github.com/sscli/sscli/cmd/sscli/internal/fault"
)

// ClockKey is the key that is set, for a few seconds, to read the store's clock.
const ClockKey = "sscli/check"

const (
	clockTTL = 10 * time.Second
	inFlight = 64
)

// A view is what is known of a broker and of the keys that its checks read. Its mutex guards broker and seen.
type view struct {
	context string // the context's name or, without one, the broker's address
	specs   []*spec
	readers map[string][]*spec // by the key that they read
	shown   bool               // messages may show values
	metrics bool               // the series of the checks are wanted

	mu     sync.Mutex
	broker broker
	seen   map[*spec]*seen // of the checks that read a key
}

// errNotYet is why nothing is known of a broker before its first answer.
var errNotYet = errors.New("not connected yet")

func newView(context string, specs []*spec, shown, metrics bool) *view {
	v := &view{metrics: metrics, context: context, specs: specs, shown: shown, seen: make(map[*spec]*seen), readers: make(map[string][]*spec)}
	for _, s := range specs {
		if key := s.target(); key != "" {
			v.seen[s], v.readers[key] = &seen{}, append(v.readers[key], s)
		}
	}
	v.broker.err, v.broker.counts = errNotYet, make(map[string]count)
	return v
}

// contextOf returns the name of the broker of an App in messages and metrics.
func contextOf(a *app.App) string {
	if a.Settings.Embedded {
		return "embedded"
	}
	return cmp.Or(a.Settings.Context, a.Settings.Address)
}

// names returns the names of the keys to read, sorted.
func (v *view) names() []string { return slices.Sorted(maps.Keys(v.readers)) }

// verdicts judges all checks.
func (v *view) verdicts(local time.Time) []verdict {
	v.mu.Lock()
	defer v.mu.Unlock()
	all := make([]verdict, len(v.specs))
	for i, s := range v.specs {
		all[i] = judge(s, &v.broker, v.seen[s], local)
	}
	return all
}

// watchCertificates makes connections with the options record which certificate expires first: of the chain by which
// the broker was verified, or of the client's own.
func (v *view) watchCertificates(o *client.Options) {
	if o.TLS == nil {
		return
	}
	config := o.TLS.Clone()
	own, before, choose := config.Certificates, config.VerifyConnection, config.GetClientCertificate
	var state *tls.ConnectionState
	record := func(change func()) {
		v.mu.Lock()
		defer v.mu.Unlock()
		change()
		if state != nil {
			v.broker.cert, v.broker.verified = certs.FirstToExpire(*state, own), len(state.VerifiedChains) > 0
		}
	}
	config.VerifyConnection = func(peer tls.ConnectionState) error {
		record(func() { state = &peer })
		if before != nil {
			return before(peer)
		}
		return nil
	}
	if choose != nil { // the client's certificate may be replaced
		config.GetClientCertificate = func(info *tls.CertificateRequestInfo) (*tls.Certificate, error) {
			cert, err := choose(info)
			if err == nil && cert.Leaf != nil {
				record(func() { own = []tls.Certificate{*cert} })
			}
			return cert, err
		}
	}
	o.TLS = config
}

// readToken records when the service-account token ends.
func (v *view) readToken(o client.Options) {
	var token []byte
	var err error
	switch {
	case o.TokenFile != "":
		token, err = client.ReadToken(o.TokenFile)
	case o.ReadToken != nil:
		token, err = o.ReadToken(context.Background())
	default:
		return
	}
	if err != nil {
		return // the broker's answer to the login says what is wrong
	}
	_, expires := client.TokenTimes(token)
	v.mu.Lock()
	defer v.mu.Unlock()
	v.broker.token = expires
}

// fail records that the store does not answer.
func (v *view) fail(a *app.App, err error) {
	f, _ := a.Explain(err)
	v.mu.Lock()
	defer v.mu.Unlock()
	v.broker.err, v.broker.code = errors.New(f.Message), f.Code
	v.broker.rtt = 0
}

// probe measures a round trip, which shows whether the store answers.
func (v *view) probe(ctx context.Context, a *app.App, s *client.Session, timeout time.Duration) bool {
	rtt, err := ping.RoundTrip(ctx, s, timeout)
	if err != nil {
		if ctx.Err() == nil {
			v.fail(a, err)
		}
		return false
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.broker.err, v.broker.code, v.broker.rtt = nil, 0, rtt
	return true
}

// errNoWrite is why the store's clock is not measured.
var errNoWrite = errors.New("--no-write")

// measureClock measures the store's clock, unless the checks do not need it or nothing may be written.
func (v *view) measureClock(ctx context.Context, a *app.App, s *client.Session, noWrite bool) {
	if !slices.ContainsFunc(v.specs, func(s *spec) bool { return s.needsClock(v.metrics) }) {
		return
	}
	var best *client.Skew
	err := errNoWrite
	switch {
	case noWrite:
	case a.Settings.Protected && !a.Settings.Yes:
		err = fmt.Errorf("the context %s is protected, and --yes was not given", a.Settings.Context)
	default:
		err = nil
		for range 3 {
			skew, measureErr := s.MeasureSkew(ctx, ClockKey, clockTTL)
			if measureErr != nil {
				err = fmt.Errorf("set %s: %w", ClockKey, measureErr)
				break
			}
			if best == nil || skew.Bound < best.Bound {
				best = &skew
			}
		}
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.broker.skew, v.broker.skewErr = best, err
}

// countKeys counts the keys that match the patterns of the checks.
func (v *view) countKeys(ctx context.Context, s *client.Session) {
	done := make(map[string]bool)
	for _, check := range v.specs {
		if check.match == "" || done[check.match] {
			continue
		}
		done[check.match] = true
		var c count
		for key, err := range s.Keys(ctx, check.match) {
			if c.err = err; err == nil && key != ClockKey {
				c.n++
			}
		}
		if ctx.Err() != nil {
			return
		}
		v.mu.Lock()
		v.broker.counts[check.match] = c
		v.mu.Unlock()
	}
}

// readKeys reads each key once.
func (v *view) readKeys(ctx context.Context, s *client.Session) {
	p := s.Pipeline(inFlight)
	commands := func(yield func(client.Command) bool) {
		for _, name := range v.names() {
			if !yield(client.Get(name)) {
				return
			}
		}
	}
	for f := range p.Results(ctx, commands) {
		c := f.Command()
		got, err := client.As[client.GetResult](f.Wait(ctx))
		if err != nil {
			v.cannotRead(c.Key(), fault.Describe(c, err))
			continue
		}
		v.record(c.Key(), got.Value, got.Found, got.Version, time.Time{})
	}
}

// cannotRead records why a key cannot be read.
func (v *view) cannotRead(key string, err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, s := range v.readers[key] {
		v.seen[s].err = err
	}
}

// maxHolder is how much of a lock's value is kept, in bytes. A hash of the rest tells holders apart.
const maxHolder = 256

// holderOf returns the holder that a lock's value names.
func holderOf(content []byte) string {
	if len(content) <= maxHolder {
		return string(content)
	}
	return fmt.Sprintf("%s… %x", content[:maxHolder], sha256.Sum256(content))
}

// record records the state of a key. at is the time when it changed to this state; zero = it was read.
func (v *view) record(key string, content []byte, found bool, version client.Version, at time.Time) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.broker.newest.Before(version.Time()) && !version.IsZero() {
		v.broker.newest = version.Time()
	}
	for _, s := range v.readers[key] {
		k := v.seen[s]
		isLock := s.kind() == aLock
		holder := holderOf(content)
		changed := found != k.found || !isLock && version != k.version || isLock && found && holder != k.holder
		counts := !isLock || found && holder != k.last // a lock changes hands when another takes it
		if !at.IsZero() && k.read && changed && counts {
			k.changes = append(k.changes[max(0, len(k.changes)-maxChanges):], at)
			k.total++
		}
		if !at.IsZero() && (changed || !k.read) {
			k.since = at
		}
		k.read, k.err, k.found, k.size, k.version, k.value = true, nil, found, len(content), version, value{}
		if found {
			k.value = s.look(content, v.shown)
		}
		if isLock {
			if k.holder = holder; found {
				k.last = holder
			}
		}
	}
}
