//go:build linux

// Command watch compares `sscli watch` with mosquitto_sub, both on the emulator.
// scripts/bench-watch.sh runs it.
//
// The notifications come from a publisher in this process, on the topic that the store
// would use, so that both programs print the same messages and the emulator only
// forwards them. This process reads the output of the programs from pipes.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"slices"
	"time"

	"github.com/sscli/sscli/scripts/harness"
)

// The goals.
const (
	minRate    = 8.0 // notifications per second, relative to mosquitto_sub
	maxLatency = 1.2 // median latency from publisher to pipe, relative to mosquitto_sub

	// Peak memory after all events, relative to the peak after a third of them. Keeping 100 bytes
	// of each event would make it 1.4 or more.
	maxGrowth = 1.25
)

type bench struct {
	*harness.Bench
	rounds int
	events int // notifications in a throughput round, and in each third of the memory measurement
	paced  int // notifications in a latency round, one each millisecond
	keys   int // keys watched in the memory measurement

	broker    harness.Endpoint
	publisher *publisher
}

func main() {
	var b bench
	flag.IntVar(&b.rounds, "rounds", 5, "rounds of throughput and of latency")
	flag.IntVar(&b.events, "events", 100_000, fmt.Sprintf("notifications in a round of throughput; a multiple of %d", flock))
	flag.IntVar(&b.paced, "paced", 4000, "notifications in a round of latency")
	flag.IntVar(&b.keys, "keys", 10_000, "keys to watch for the measurement of memory")
	harness.Main(5*time.Minute, []string{"mosquitto_sub"}, b.run)
}

func (b *bench) run(ctx context.Context, h *harness.Bench) (err error) {
	if b.events < flock || b.events%flock != 0 {
		return fmt.Errorf("-events %d: must be a multiple of %d", b.events, flock)
	}
	b.Bench = h
	if b.broker, err = b.Serve(ctx); err != nil {
		return err
	}
	if b.publisher, err = newPublisher(ctx, b.broker.Address()); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.publisher.conn.Close()) }()

	if err := b.throughput(ctx); err != nil {
		return fmt.Errorf("throughput: %w", err)
	}
	if err := b.latency(ctx); err != nil {
		return fmt.Errorf("latency: %w", err)
	}
	if err := b.memory(ctx); err != nil {
		return fmt.Errorf("memory: %w", err)
	}
	return nil
}

// compare measures sscli watch and mosquitto_sub in turn.
func (b *bench) compare(measure func(program) (float64, error)) ([]harness.Figures, error) {
	contender := func(p program) harness.Contender {
		return harness.Contender{Name: p.name, Measure: func() (float64, error) { return measure(p) }}
	}
	return harness.Rounds(b.rounds, contender(b.watch()), contender(b.subscribe()))
}

// throughput publishes as fast as the emulator and the program accept messages.
func (b *bench) throughput(ctx context.Context) error {
	fmt.Printf("throughput: %d notifications as fast as they go\n", b.events)
	fmt.Printf("  %-16s %12s %8s %10s\n", "", "per second", "seconds", "CPU s")
	f, err := b.compare(func(p program) (float64, error) {
		r, err := b.start(ctx, p, oneKey)
		if err != nil {
			return 0, err
		}
		defer r.end()
		f, err := b.publisher.flood(b.broker.Address(), b.events)
		if err != nil {
			return 0, err
		}
		defer f.conn.Close()
		begin := time.Now()
		published := b.publisher.begin(func() error { return f.run(ctx) })
		for n := range b.events {
			if got, err := r.next(); err != nil || got != uint64(n) {
				return 0, errors.Join(fmt.Errorf("notification %d: got %d", n, got), err, r.end())
			}
			if n%flock == flock-1 {
				<-f.room
			}
		}
		took := time.Since(begin)
		if err := errors.Join(published(), r.end()); err != nil {
			return 0, err
		}
		rate := float64(b.events) / took.Seconds()
		fmt.Printf("  %-16s %12.0f %8.2f %10.2f\n", p.name, rate, took.Seconds(), r.cpu().Seconds())
		return rate, nil
	})
	if err != nil {
		return err
	}
	b.AtLeast("P7", "notifications a second fed by the emulator, `watch -o json` / `mosquitto_sub -F %j`", f[0], f[1], minRate)
	return nil
}

// latency publishes one message each millisecond, with the time as its value.
func (b *bench) latency(ctx context.Context) error {
	const warmUp = 500
	fmt.Printf("latency: %d notifications, one each millisecond, publisher to pipe\n", b.paced)
	fmt.Printf("  %-16s %9s %9s %9s\n", "", "p50 us", "p99 us", "max us")
	f, err := b.compare(func(p program) (float64, error) {
		r, err := b.start(ctx, p, oneKey)
		if err != nil {
			return 0, err
		}
		defer r.end()
		published := b.publisher.begin(func() error {
			tick := time.NewTicker(time.Millisecond)
			defer tick.Stop()
			for range warmUp + b.paced {
				<-tick.C
				if err := b.publisher.publish(ctx, oneKey, uint64(time.Now().UnixNano())); err != nil {
					return err
				}
			}
			return nil
		})
		var micros []float64
		for n := range warmUp + b.paced {
			sent, err := r.next()
			if err != nil {
				return 0, errors.Join(err, r.end(), published())
			}
			if n >= warmUp {
				micros = append(micros, float64(time.Now().UnixNano()-int64(sent))/1e3)
			}
		}
		if err := errors.Join(published(), r.end()); err != nil {
			return 0, err
		}
		slices.Sort(micros)
		p50, p99 := micros[len(micros)/2], micros[len(micros)*99/100]
		fmt.Printf("  %-16s %9.0f %9.0f %9.0f\n", p.name, p50, p99, micros[len(micros)-1])
		return p50, nil
	})
	if err != nil {
		return err
	}
	b.AtMost("P7", "µs from publisher to pipe, p50 at 1,000 notifications a second, `watch` / `mosquitto_sub`", f[0], f[1], maxLatency)
	return nil
}

// memory measures the peak memory of `sscli watch` with many keys. It limits the notifications in
// flight, so that the peak does not include a backlog of notifications.
func (b *bench) memory(ctx context.Context) error {
	const inflight = 1000
	fmt.Printf("memory: %d keys, at most %d notifications in flight\n", b.keys, inflight)
	keys := make([]string, b.keys)
	for i := range keys {
		keys[i] = fmt.Sprintf("bench/%05d", i)
	}
	r, err := b.start(ctx, b.watch(), keys...)
	if err != nil {
		return err
	}
	defer r.end()
	peak := func(when string) (float64, error) {
		mib, err := r.peakMemory()
		fmt.Printf("  %-40s %8.1f MiB\n", when, mib)
		return mib, err
	}
	if _, err := peak("peak when all keys are watched"); err != nil {
		return err
	}
	var peaks []float64
	for third := range 3 {
		room := make(chan struct{}, inflight)
		published := b.publisher.begin(func() error {
			for n := range b.events {
				select {
				case room <- struct{}{}:
				case <-ctx.Done():
					return ctx.Err()
				}
				if err := b.publisher.publish(ctx, keys[n%len(keys)], uint64(n)); err != nil {
					return err
				}
			}
			return nil
		})
		for n := range b.events {
			if got, err := r.next(); err != nil || got != uint64(n) {
				return errors.Join(fmt.Errorf("notification %d: got %d", n, got), err, r.end())
			}
			<-room
		}
		if err := published(); err != nil {
			return err
		}
		mib, err := peak(fmt.Sprintf("peak after %d events", (third+1)*b.events))
		if err != nil {
			return err
		}
		peaks = append(peaks, mib)
	}
	b.AtMost("P10", fmt.Sprintf("peak MiB of `watch` of %d keys, %d events / %d", b.keys, 3*b.events, b.events),
		harness.Figures{peaks[2]}, harness.Figures{peaks[0]}, maxGrowth)
	return r.end()
}
