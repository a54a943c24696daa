// Package bench is the command `sscli bench`, which measures the store under load.
//
// [New] makes the command. bench.go has the flags and the workers, mix.go parses --mix, and
// measurement.go computes the percentiles.
//
// With --rate, the latency of a request is measured from the time when it was due, not from the time
// when it was sent. Otherwise a store that stops for a second would count as only one slow request. The
// keys share a prefix and are deleted at the end. If that fails, they expire.
package bench

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"math"
	randv2 "math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/cmd/sscli/internal/app"
	"github.com/sscli/sscli/cmd/sscli/internal/config"
	"github.com/sscli/sscli/cmd/sscli/internal/fault"
	"github.com/sscli/sscli/cmd/sscli/internal/suggest"
	"github.com/sscli/sscli/cmd/sscli/internal/usage"
	"github.com/sscli/sscli/internal/wait"
	"github.com/sscli/sscli/internal/wire"
)

type benchFlags struct {
	clients, inflight, keys int
	size                    config.Size
	count                   int64 // number of requests; 0 = no limit
	length                  usage.Duration
	mix                     string
	rate                    float64 // requests a second; 0 = as many as possible
}

// New returns the command `sscli bench`.
func New(a *app.App) *cobra.Command {
	var f benchFlags
	cmd := &cobra.Command{
		Use:     "bench",
		Short:   "Measure throughput and latency",
		GroupID: app.GroupDebug,
		Long: `Measure requests per second, and percentiles of the latency for each verb and overall.

Without --rate, there are --clients times --inflight workers, and each sends its next
request when it has the reply to the last one. With --rate, requests are due at fixed
times, and the latency counts from the time when a request was due: a store that stops for
a second shows up as many slow requests, not as one.

The keys begin with ` + app.BenchKeys + ` and random characters. They are written before
the measurement and deleted after it, also after Ctrl-C. They expire in any case.`,
		Example: "  sscli bench --clients 4 --inflight 16 --for 30s\n  sscli bench -n 100000 --mix get=80,set=20 --rate 2000 -o json",
		Args:    usage.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			b, err := newBenchmark(a, f)
			if err != nil {
				return err
			}
			if err := a.Confirm(cmd.Context(), "bench"); err != nil {
				return err
			}
			a.Signals.Arm()
			return a.WithBroker(func(o client.Options) error { return b.run(cmd.Context(), o) })
		},
	}
	fs := cmd.Flags()
	fs.IntVar(&f.clients, "clients", 1, "open `N` connections")
	fs.IntVar(&f.inflight, "inflight", 1, "keep `N` requests in flight on each connection")
	fs.Int64VarP(&f.count, "count", "n", 0, "stop after `N` requests")
	fs.Var(f.length.Least(usage.Positive), "for", "stop after `DURATION` (10s without -n)")
	f.size = 64
	fs.Var(&f.size, "size", "write values of `BYTES`, such as 4KiB")
	fs.IntVar(&f.keys, "keys", 1000, "use `N` keys")
	fs.StringVar(&f.mix, "mix", "get=80,set=20", "`VERB=WEIGHT,…`, where VERB is get, set or del")
	fs.Float64Var(&f.rate, "rate", 0, "send `N` requests a second, due at fixed times")
	return cmd
}

const (
	// These limits keep a typo in a flag from exhausting the memory.
	maxWorkers = 100_000
	maxKeys    = 10_000_000
	maxSize    = 256 << 20

	// keyLifetime is the time by which the keys outlive the measurement if they cannot be deleted.
	// longest stands for the length of a measurement whose length is not known.
	keyLifetime = 10 * time.Minute
	longest     = 24 * time.Hour
)

// A benchmark is one run of `sscli bench`.
type benchmark struct {
	a      *app.App
	f      benchFlags
	length time.Duration // maximum length of the measurement; 0 = no limit
	ttl    time.Duration // of the keys, in case they cannot be deleted
	verbs  []string      // each verb, repeated as often as its weight says
	prefix string        // prefix of the keys
	value  []byte

	sessions []*client.Session
	began    time.Time
	sent     atomic.Int64
	answered atomic.Int64
	shown    int64                   // number of replies at the last call to progress
	results  map[string]*measurement // by verb

	failed sync.Once
	first  error // the first error of a request
}

// newBenchmark returns a benchmark for these flags, or a usage error if a flag is invalid.
func newBenchmark(a *app.App, f benchFlags) (*benchmark, error) {
	b := &benchmark{a: a, f: f, results: make(map[string]*measurement), prefix: app.BenchKeys + strings.ToLower(rand.Text()[:8]) + "/"}
	switch {
	case f.clients < 1 || f.inflight < 1 || f.clients > maxWorkers || f.inflight > maxWorkers/f.clients:
		return nil, fault.Usagef("--clients %d --inflight %d: must be at least 1 each, and at most %d together", f.clients, f.inflight, maxWorkers)
	case f.count < 0:
		return nil, fault.Usagef("-n %d: must be at least 1", f.count)
	case f.size < 0 || f.size > maxSize:
		return nil, fault.Usagef("--size %d: must be 0 to %d", f.size, maxSize)
	case f.keys < 1 || f.keys > maxKeys:
		return nil, fault.Usagef("--keys %d: must be 1 to %d", f.keys, maxKeys)
	case f.rate < 0 || math.IsInf(f.rate, 0) || math.IsNaN(f.rate) || f.rate > 1e9:
		return nil, fault.Usagef("--rate %v: must be a number of requests a second", f.rate)
	}
	var err error
	if b.length = f.length.Duration; b.length == 0 && f.count == 0 {
		b.length = 10 * time.Second
	}
	b.ttl = (cmp.Or(b.length, longest) + keyLifetime).Truncate(time.Millisecond)
	if b.verbs, err = parseMix(f.mix); err != nil {
		return nil, fault.Usagef("--mix: %w", err)
	}
	for _, verb := range b.verbs {
		b.results[verb] = newMeasurement()
	}
	b.value = make([]byte, f.size)
	rand.Read(b.value) // never returns an error
	return b, nil
}

func (b *benchmark) key(i int) string { return b.prefix + strconv.Itoa(i) }

func (b *benchmark) command(verb string, key string) client.Command {
	switch verb {
	case "get":
		return client.Get(key)
	case "del":
		return client.Del(key)
	}
	return client.Set(key, b.value, client.SetOptions{TTL: b.ttl})
}

func (b *benchmark) run(ctx context.Context, o client.Options) (err error) {
	defer func() {
		for _, s := range b.sessions {
			err = errors.Join(err, s.Close())
		}
	}()
	if err := b.dial(ctx, o); err != nil {
		return err
	}
	defer func() { err = cmp.Or(err, b.clean(ctx)) }()
	if slices.Contains(b.verbs, "get") || slices.Contains(b.verbs, "del") {
		if err := b.forEachKey(ctx, func(key string) client.Command { return b.command("set", key) }); err != nil {
			return fmt.Errorf("bench: write the keys: %w", err)
		}
	}
	elapsed := b.measure(ctx)
	if err := b.print(elapsed); err != nil {
		return err
	}
	if due := b.due(elapsed); b.sent.Load() < due-due/50 {
		b.a.Advise(fmt.Sprintf("%d requests were due, but only %d were sent; the latencies leave out the others", due, b.sent.Load()),
			suggest.Try("use more `--clients` or `--inflight`, or a lower `--rate`"))
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if b.first != nil {
		return fmt.Errorf("bench: %w", b.first)
	}
	return nil
}

// dial opens the connections. If the user set a client id, the second and later connections add a
// number to it.
func (b *benchmark) dial(ctx context.Context, o client.Options) error {
	limited, cancel := context.WithTimeout(ctx, o.Timeout)
	defer cancel()
	base := o.ClientID
	for i := range b.f.clients {
		if base != "" && i > 0 {
			o.ClientID = fmt.Sprintf("%s-%d", base, i)
		}
		s, err := client.Dial(limited, o)
		if err != nil {
			return err
		}
		b.sessions = append(b.sessions, s)
	}
	return nil
}

// setupInFlight is the maximum number of requests in flight while bench writes or deletes its keys.
const setupInFlight = 64

// forEachKey sends a command for every key. It stops at the first error and returns that error.
func (b *benchmark) forEachKey(ctx context.Context, command func(key string) client.Command) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	p := b.sessions[0].Pipeline(setupInFlight)
	var wg sync.WaitGroup
	for i := range b.f.keys {
		f, err := p.Send(ctx, command(b.key(i)))
		if err != nil {
			cancel(err)
			break
		}
		wg.Go(func() {
			if _, err := f.Wait(context.Background()); err != nil {
				cancel(err)
			}
		})
	}
	wg.Wait()
	return context.Cause(ctx)
}

// clean deletes the keys, even after a signal.
func (b *benchmark) clean(ctx context.Context) error {
	limit := 10*time.Second + time.Duration(b.f.keys)*time.Millisecond
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
	defer cancel()
	err := b.forEachKey(limited, func(key string) client.Command { return client.Del(key) })
	if err != nil {
		return fmt.Errorf("bench: delete the keys, which begin with %s and expire within %v: %w", b.prefix, b.ttl, err)
	}
	return nil
}

func (b *benchmark) measure(ctx context.Context) time.Duration {
	var cancel context.CancelFunc = func() {}
	measuring := ctx
	if b.length > 0 {
		measuring, cancel = context.WithTimeout(ctx, b.length)
	}
	defer cancel()
	b.began = time.Now()
	_, end := b.a.Live(time.Second, b.progress)
	var wg sync.WaitGroup
	for _, s := range b.sessions {
		for range b.f.inflight {
			wg.Go(func() { b.work(ctx, measuring, s) })
		}
	}
	wg.Wait()
	elapsed := time.Since(b.began)
	end()
	return elapsed
}

// dueAfter returns the time from the start until request n of a measurement with this rate is due. It is
// limited to about a century, for rates near 0.
func dueAfter(n int64, rate float64) time.Duration {
	return time.Duration(min(float64(n-1)/rate*float64(time.Second), math.MaxInt64/3))
}

// due returns how many requests of a measurement with --rate were due in the elapsed time; without --rate, 0.
func (b *benchmark) due(elapsed time.Duration) int64 {
	due := int64(b.f.rate * elapsed.Seconds())
	if b.f.count > 0 {
		due = min(due, b.f.count)
	}
	return due
}

// work sends one request after another, until the context measuring ends or -n requests have been
// sent. The end of measuring does not cancel a request in flight, but the end of ctx does.
func (b *benchmark) work(ctx, measuring context.Context, s *client.Session) {
	for measuring.Err() == nil {
		n := b.sent.Add(1)
		if b.f.count > 0 && n > b.f.count {
			return
		}
		due := time.Now()
		if b.f.rate > 0 {
			due = b.began.Add(dueAfter(n, b.f.rate))
			if !wait.For(measuring, time.Until(due)) {
				return
			}
		}
		verb := b.verbs[randv2.N(len(b.verbs))]
		_, err := s.Do(ctx, b.command(verb, b.key(randv2.N(b.f.keys))))
		if err != nil && ctx.Err() != nil {
			return
		}
		b.results[verb].add(time.Since(due), err)
		if err == nil {
			b.answered.Add(1)
			continue
		}
		b.failed.Do(func() { b.first = err })
		if fault.IsA[*wire.StoreError](err) {
			continue
		}
		// Do not retry in a tight loop while the broker is gone.
		if !wait.For(measuring, 10*time.Millisecond) {
			return
		}
	}
}

func (b *benchmark) print(elapsed time.Duration) error {
	all := newMeasurement()
	verbs := slices.Compact(slices.Clone(b.verbs)) // equal verbs are adjacent
	for _, verb := range verbs {
		m := b.results[verb]
		all.latency.Merge(m.latency)
		all.errors += m.errors
		if len(verbs) > 1 {
			if err := b.a.Emit(m.result(verb, elapsed)); err != nil {
				return err
			}
		}
	}
	name := "all"
	if len(verbs) == 1 {
		name = verbs[0]
	}
	return b.a.Emit(all.result(name, elapsed))
}

func (b *benchmark) progress() string {
	n, elapsed := b.answered.Load(), time.Since(b.began)
	text := fmt.Sprintf("%d answered, %d/s", n, n-b.shown)
	b.shown = n
	if b.length > 0 {
		text += fmt.Sprintf(", %v left", max(b.length-elapsed, 0).Round(time.Second))
	} else if n > 0 {
		left := time.Duration(float64(elapsed) / float64(n) * float64(b.f.count-n))
		text += fmt.Sprintf(" of %d, about %v left", b.f.count, max(left, 0).Round(time.Second))
	}
	return text
}
