package main

import (
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

	"github.com/HdrHistogram/hdrhistogram-go"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/client/wait"
	"github.com/sscli/sscli/client/wire"
	"github.com/sscli/sscli/cmd/sscli/internal/config"
	"github.com/sscli/sscli/format"
)

type benchFlags struct {
	clients, inflight, size, keys int
	count                         int64
	length, mix                   string
	rate                          float64
}

func newBench(a *app) *cobra.Command {
	var f benchFlags
	cmd := &cobra.Command{
		Use:     "bench",
		Short:   "Measure requests per second, and how long they take",
		GroupID: groupDebug,
		Long: `Send many requests and print how many were answered in a second and how long that took:
percentiles for each verb and for all.

Without --rate each of --clients times --inflight workers sends its next request when the
last is answered. With --rate requests are due at fixed times, whatever became of those
before, and a latency counts from when the request was due: a store that stands still for
a second is seen as such, and not as one slow request.

The keys begin with ` + benchPrefix + ` and something random. They are written before the
measuring, deleted after it, also after Ctrl-C, and expire in any case.`,
		Example: "  sscli bench --clients 4 --inflight 16 --for 30s\n  sscli bench -n 100000 --mix get=80,set=20 --rate 2000 -o json",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			b, err := newBenchmark(a, f)
			if err != nil {
				return err
			}
			if err := a.confirm(cmd.Context(), "bench"); err != nil {
				return err
			}
			return b.run(cmd.Context())
		},
	}
	fs := cmd.Flags()
	fs.IntVar(&f.clients, "clients", 1, "`N` connections")
	fs.IntVar(&f.inflight, "inflight", 1, "`N` requests under way on each connection")
	fs.Int64VarP(&f.count, "count", "n", 0, "end after `N` requests")
	fs.StringVar(&f.length, "for", "", "end after `DURATION` (10s, if there is no -n)")
	fs.IntVar(&f.size, "size", 64, "`BYTES` of a value")
	fs.IntVar(&f.keys, "keys", 1000, "`N` keys")
	fs.StringVar(&f.mix, "mix", "get=80,set=20", "`VERB=WEIGHT,…` of get, set and del")
	fs.Float64Var(&f.rate, "rate", 0, "`N` requests a second, due at fixed times")
	return cmd
}

// The limits keep a slip of the finger from filling the memory.
const (
	benchPrefix     = "sscli/bench/"
	maxBenchWorkers = 100_000
	maxBenchKeys    = 10_000_000
	maxBenchSize    = 256 << 20
	// benchSpare is how long after its end a benchmark's keys live that it could
	// not delete.
	benchSpare = 10 * time.Minute
)

// A benchmark sends requests and measures.
type benchmark struct {
	a      *app
	f      benchFlags
	length time.Duration // 0 = as long as it takes
	verbs  []string      // as often as their weights say
	prefix string
	value  []byte

	sessions []*client.Session
	began    time.Time
	sent     atomic.Int64
	answered atomic.Int64
	results  map[string]*measurement // by verb

	mu    sync.Mutex
	first error // of a request
}

// A measurement is what came of the requests with one verb.
type measurement struct {
	mu      sync.Mutex
	latency *hdrhistogram.Histogram // microseconds
	errors  int64
}

const longestLatency = time.Hour

func newMeasurement() *measurement {
	return &measurement{latency: hdrhistogram.New(1, longestLatency.Microseconds(), 3)}
}

func (t *measurement) add(took time.Duration, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err != nil {
		t.errors++
		return
	}
	// What is out of its range was cut to it, so this has no error.
	_ = t.latency.RecordValue(min(max(took, time.Microsecond), longestLatency).Microseconds())
}

func newBenchmark(a *app, f benchFlags) (*benchmark, error) {
	b := &benchmark{a: a, f: f, results: make(map[string]*measurement), prefix: benchPrefix + strings.ToLower(rand.Text()[:8]) + "/"}
	switch {
	case f.clients < 1 || f.inflight < 1 || f.clients > maxBenchWorkers || f.inflight > maxBenchWorkers/f.clients:
		return nil, usage("--clients %d --inflight %d: want at least 1 each, and at most %d together", f.clients, f.inflight, maxBenchWorkers)
	case f.count < 0:
		return nil, usage("-n %d: want at least 1", f.count)
	case f.size < 0 || f.size > maxBenchSize:
		return nil, usage("--size %d: want 0 to %d", f.size, maxBenchSize)
	case f.keys < 1 || f.keys > maxBenchKeys:
		return nil, usage("--keys %d: want 1 to %d", f.keys, maxBenchKeys)
	case f.rate < 0 || math.IsInf(f.rate, 0) || math.IsNaN(f.rate) || f.rate > 1e9:
		return nil, usage("--rate %v: want a number of requests a second", f.rate)
	}
	if f.length != "" {
		var err error
		if b.length, err = config.ParseDuration(f.length); err != nil {
			return nil, usage("--for: %v", err)
		}
		if b.length <= 0 {
			return nil, usage("--for %s: want more than 0", f.length)
		}
	} else if f.count == 0 {
		b.length = 10 * time.Second
	}
	var err error
	if b.verbs, err = parseMix(f.mix); err != nil {
		return nil, usage("--mix: %w", err)
	}
	for _, verb := range b.verbs {
		b.results[verb] = newMeasurement()
	}
	b.value = make([]byte, f.size)
	rand.Read(b.value) // never returns an error
	return b, nil
}

// parseMix reads VERB=WEIGHT,… into a list with each verb as often as its weight
// says, in lowest terms.
func parseMix(text string) ([]string, error) {
	const most = 1000
	weights := make(map[string]int)
	var order []string
	common := 0
	for part := range strings.SplitSeq(text, ",") {
		verb, number, ok := strings.Cut(strings.TrimSpace(part), "=")
		verb = strings.ToLower(verb)
		weight, err := strconv.Atoi(number)
		if !ok {
			weight, err = 1, nil
		}
		switch {
		case !slices.Contains([]string{"get", "set", "del"}, verb):
			return nil, fmt.Errorf("%.32q: want get, set or del", verb)
		case err != nil || weight < 0 || weight > most:
			return nil, fmt.Errorf("%s=%.32q: want a weight of 0 to %d", verb, number, most)
		case slices.Contains(order, verb):
			return nil, fmt.Errorf("%s twice", verb)
		}
		order, weights[verb] = append(order, verb), weight
		common = greatestCommonDivisor(common, weight)
	}
	if common == 0 {
		return nil, errors.New("all weights are 0")
	}
	var verbs []string
	for _, verb := range order {
		verbs = append(verbs, slices.Repeat([]string{verb}, weights[verb]/common)...)
	}
	return verbs, nil
}

func greatestCommonDivisor(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

func (b *benchmark) key(i int) string { return b.prefix + strconv.Itoa(i) }

func (b *benchmark) command(verb string, key string) client.Command {
	switch verb {
	case "get":
		return client.Get(key)
	case "del":
		return client.Del(key, client.WriteOptions{})
	}
	return client.Set(key, b.value, client.SetOptions{TTL: (b.length + benchSpare).Truncate(time.Millisecond)})
}

func (b *benchmark) run(ctx context.Context) (err error) {
	o, undo, err := b.a.broker()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, undo()) }()
	defer func() { err = errors.Join(err, b.close()) }()
	if err := b.dial(ctx, o); err != nil {
		return err
	}
	defer func() {
		if cleanErr := b.clean(ctx); err == nil {
			err = cleanErr
		}
	}()
	if slices.Contains(b.verbs, "get") || slices.Contains(b.verbs, "del") {
		if err := b.each(ctx, func(key string) client.Command { return b.command("set", key) }); err != nil {
			return fmt.Errorf("bench: write the keys: %w", err)
		}
	}
	elapsed := b.measure(ctx)
	if err := b.print(elapsed); err != nil {
		return err
	}
	if due := int64(b.f.rate * elapsed.Seconds()); b.f.count == 0 && b.sent.Load() < due-due/50 {
		b.a.warn(fmt.Sprintf("%d requests were due and %d were sent: the latencies leave out the others", due, b.sent.Load()),
			"more --clients or --inflight, or a lower --rate")
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if b.first != nil {
		return fmt.Errorf("bench: %w", b.first)
	}
	return nil
}

// dial opens the connections, each with a client id of its own.
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

func (b *benchmark) close() (err error) {
	for _, s := range b.sessions {
		err = errors.Join(err, s.Close())
	}
	return err
}

// manyAtOnce is how many keys are written or deleted at a time, before and after the measuring.
const manyAtOnce = 64

// each carries a command for every key, and returns the first error.
func (b *benchmark) each(ctx context.Context, command func(key string) client.Command) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	p := b.sessions[0].Pipeline(manyAtOnce)
	var wg sync.WaitGroup
	for i := range b.f.keys {
		f, err := p.Send(ctx, command(b.key(i)))
		if err != nil {
			cancel(err)
			break
		}
		wg.Go(func() {
			if _, err := f.Wait(); err != nil {
				cancel(err)
			}
		})
	}
	wg.Wait()
	return context.Cause(ctx)
}

// clean deletes the keys, also after a signal.
func (b *benchmark) clean(ctx context.Context) error {
	limit := 10*time.Second + time.Duration(b.f.keys)*time.Millisecond
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
	defer cancel()
	err := b.each(limited, func(key string) client.Command { return client.Del(key, client.WriteOptions{}) })
	if err != nil {
		return fmt.Errorf("bench: delete the keys, which begin with %s and expire within %v: %w", b.prefix, b.length+benchSpare, err)
	}
	return nil
}

// measure lets the workers work and returns for how long.
func (b *benchmark) measure(ctx context.Context) time.Duration {
	var cancel context.CancelFunc = func() {}
	measuring := ctx
	if b.length > 0 {
		measuring, cancel = context.WithTimeout(ctx, b.length)
	}
	defer cancel()
	progress := b.progress()
	b.began = time.Now()
	var wg sync.WaitGroup
	for _, s := range b.sessions {
		for range b.f.inflight {
			wg.Go(func() { b.work(ctx, measuring, s) })
		}
	}
	wg.Wait()
	elapsed := time.Since(b.began)
	progress()
	return elapsed
}

// work sends one request after the other until measuring ends. ctx ends those
// that are under way too.
func (b *benchmark) work(ctx, measuring context.Context, s *client.Session) {
	for measuring.Err() == nil {
		n := b.sent.Add(1)
		if b.f.count > 0 && n > b.f.count {
			return
		}
		due := time.Now()
		if b.f.rate > 0 {
			due = b.began.Add(time.Duration(float64(n-1) / b.f.rate * float64(time.Second)))
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
		b.mu.Lock()
		if b.first == nil {
			b.first = err
		}
		b.mu.Unlock()
		if isA[*wire.StoreError](err) {
			continue
		}
		// A broker that is gone is not asked in a tight loop.
		if !wait.For(measuring, 10*time.Millisecond) {
			return
		}
	}
}

func (b *benchmark) print(elapsed time.Duration) error {
	all := newMeasurement()
	verbs := slices.Compact(slices.Clone(b.verbs)) // equal ones are neighbours
	for _, verb := range verbs {
		t := b.results[verb]
		all.latency.Merge(t.latency)
		all.errors += t.errors
		if len(verbs) > 1 {
			if err := b.a.emit(t.result(verb, elapsed)); err != nil {
				return err
			}
		}
	}
	name := "all"
	if len(verbs) == 1 {
		name = verbs[0]
	}
	return b.a.emit(all.result(name, elapsed))
}

func (t *measurement) result(verb string, elapsed time.Duration) format.Bench {
	r := format.Bench{Verb: verb, Count: t.latency.TotalCount(), Errors: t.errors, Elapsed: elapsed}
	if r.Count == 0 {
		return r
	}
	us := func(n int64) time.Duration { return time.Duration(n) * time.Microsecond }
	r.Latency = format.Latency{
		Min:  us(t.latency.Min()),
		Mean: time.Duration(t.latency.Mean() * float64(time.Microsecond)),
		P50:  us(t.latency.ValueAtQuantile(50)),
		P90:  us(t.latency.ValueAtQuantile(90)),
		P99:  us(t.latency.ValueAtQuantile(99)),
		P999: us(t.latency.ValueAtQuantile(99.9)),
		Max:  us(t.latency.Max()),
	}
	return r
}

// progress shows once a second, on a terminal, how far it is. What it returns ends that.
func (b *benchmark) progress() (end func()) {
	if b.a.settings.Quiet || !term.IsTerminal(int(b.a.stderr.Fd())) {
		return func() {}
	}
	last := int64(0)
	line := &liveLine{w: b.a.stderr}
	return line.animate(time.Second, func() string {
		n := b.answered.Load()
		text := fmt.Sprintf("%d answered, %d/s", n, n-last)
		last = n
		if elapsed := time.Since(b.began); b.length > 0 {
			text += fmt.Sprintf(", %v left", max(b.length-elapsed, 0).Round(time.Second))
		} else if n > 0 {
			left := time.Duration(float64(elapsed) / float64(n) * float64(b.f.count-n))
			text += fmt.Sprintf(" of %d, about %v left", b.f.count, max(left, 0).Round(time.Second))
		}
		return text
	})
}
