package check

import (
	"cmp"
	"context"
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
	"github.com/sscli/sscli/cmd/sscli/internal/exchange"
	"github.com/sscli/sscli/internal/wait"
)

// ClockKey is the key that is set, for a few seconds, to read the store's clock.
const ClockKey = "sscli/check"

const (
	clockTTL = 10 * time.Second
)

// A view is what is known of a broker and of the keys that its checks read. Its mutex guards the fields after it.
type view struct {
	context string  // the context's name or, without one, the broker's address
	labels  []label // of all series
	specs   []*spec
	shown   bool // messages may show values
	metrics bool // the series of the checks are wanted

	readers map[string][]*spec // the checks of keys and locks, by the key that they read; does not change

	mu     sync.Mutex
	broker broker
	seen   map[*spec]*seen            // of the checks that read a key
	past   history                    // what an earlier run saw of keys
	before map[string]*seen           // what was seen before the checks were read again, by spec.id
	found  map[*spec]map[string]*spec // the keys that the checks of patterns found, as checks, by their name
}

// errNotYet is why nothing is known of a broker before its first answer, nor after a break before it was asked again.
var errNotYet = errors.New("not looked at yet")

func newView(context string, labels []label, specs []*spec, drift time.Duration, shown, metrics bool) *view {
	v := &view{metrics: metrics, context: context, labels: labels, specs: specs, shown: shown, seen: make(map[*spec]*seen), readers: make(map[string][]*spec), found: make(map[*spec]map[string]*spec), before: make(map[string]*seen)}
	for _, s := range specs {
		if s.reads() {
			v.seen[s], v.readers[s.target] = &seen{}, append(v.readers[s.target], s)
		}
	}
	v.forget()
	v.broker.err, v.broker.drift = errNotYet, drift
	return v
}

// forget makes everything unknown that may have changed while nobody looked. v.mu is held, or nobody else has v.
func (v *view) forget() {
	v.broker.clock, v.broker.clockErr, v.broker.counts = nil, errNotYet, make(map[string]count)
	v.broker.newest = time.Time{}
	for _, k := range v.seen {
		k.read, k.err = false, nil
	}
}

// contextOf returns the name of the broker of an App in messages and metrics.
func contextOf(a *app.App) string {
	if a.Settings.Embedded {
		return "embedded"
	}
	return cmp.Or(a.Settings.Context, a.Settings.Address)
}

func (v *view) verdicts(local time.Time) []verdict {
	v.mu.Lock()
	defer v.mu.Unlock()
	all := make([]verdict, len(v.specs))
	for i, s := range v.specs {
		all[i] = v.judge(s, local)
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
	f, _ := a.FaultOf(err)
	v.mu.Lock()
	defer v.mu.Unlock()
	v.broker.err, v.broker.code = errors.New(f.Text()), f.Code
	v.broker.rtt = 0
	v.forget()
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

const (
	leastReadings = 3                      // of the store's clock
	readingsTime  = 500 * time.Millisecond // in which more are tried until one is exact
	readingPause  = 10 * time.Millisecond
)

// measureClock measures the store's clock, unless the checks do not need it or nothing may be written.
func (v *view) measureClock(ctx context.Context, a *app.App, s *client.Session, noWrite bool) {
	if !slices.ContainsFunc(v.specs, func(s *spec) bool { return s.needs(clock) || v.metrics && s.reads() }) {
		return
	}
	var best *client.Skew
	var at time.Time
	err := errNoWrite
	switch {
	case noWrite:
	case a.Settings.Protected && !a.Settings.Yes:
		err = fmt.Errorf("the context %s is protected, and --yes was not given", a.Settings.Context)
	default:
		err = nil
		began := time.Now()
		for i := 0; i < leastReadings || !best.Exact && time.Since(began) < readingsTime && wait.For(ctx, readingPause); i++ {
			skew, measureErr := s.MeasureSkew(ctx, ClockKey, clockTTL)
			if measureErr != nil {
				err = fmt.Errorf("set %s: %w", ClockKey, measureErr)
				break
			}
			if best == nil || skew.Exact && !best.Exact || skew.Exact == best.Exact && skew.Bound < best.Bound {
				best, at = &skew, time.Now()
			}
		}
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	b := &v.broker
	b.clockErr = err
	switch {
	case best == nil:
		b.clock = nil
	case best.Exact || b.clock == nil || !b.clock.exact || at.Sub(b.clock.at) > fresh:
		b.clock = b.clockOf(*best, at)
	}
}

func (v *view) readKeys(ctx context.Context, s *client.Session, readers map[string][]*spec) {
	w := exchange.NewWindow(exchange.Over(s), exchange.Options{Limited: ctx}, func(key string, o exchange.Outcome) error {
		if o.Err != nil {
			v.cannotRead(readers[key], o.Err)
			return nil
		}
		got := o.Result.(client.GetResult)
		v.record(readers[key], got.Value, got.Found, got.Version, time.Now())
		return nil
	})
	for _, key := range slices.Sorted(maps.Keys(readers)) {
		_ = w.Add(ctx, key, new(client.Get(key))) // done returns no error
	}
	_ = w.Finish(ctx, nil)
}

// cannotRead records why the key of checks cannot be read.
func (v *view) cannotRead(readers []*spec, err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, s := range readers {
		v.seen[s].err = err
	}
}

// notifyTime is the time within which a notification of a change arrives while the store answers.
const notifyTime = probeTime + probeInterval

// record records that the key of checks has this state, or changed to it, at the time at.
func (v *view) record(readers []*spec, content []byte, found bool, version client.Version, at time.Time) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.broker.newest.Before(version.Time()) && !version.IsZero() {
		v.broker.newest = version.Time()
	}
	for _, s := range readers {
		k := v.seen[s]
		kind, holder := kindOf(s.kind), holderOf(content)
		isLock := kind.changesHands
		changed := found != k.found || !isLock && version != k.version || isLock && found && holder != k.holder
		counts := !isLock || found && holder != k.last // a lock changes hands when another takes it
		if k.known && changed && counts {
			k.changes = append(k.changes[max(0, len(k.changes)-maxChanges):], at)
			k.total++
		}
		if changed || !k.known {
			k.since, k.after = at, time.Time{}
		}
		switch { // nobody looked in between after a break
		case !changed || !k.read:
		case s.of != nil:
			k.after = k.looked
		default:
			k.after = at.Add(-notifyTime)
		}
		first := !k.known
		k.known, k.read, k.err, k.found, k.size, k.version, k.value, k.looked = true, true, nil, found, len(content), version, value{}, at
		if found {
			k.value = kind.look(s, content, v.shown)
		}
		if isLock {
			if k.holder = holder; found {
				k.last = holder
			}
		}
		if first && v.past.Checks != nil {
			v.past.before(s, k, at)
		}
	}
}
