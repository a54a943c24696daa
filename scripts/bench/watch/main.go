// Command watch measures `sscli watch` beside mosquitto_sub, on a broker that
// runs already. scripts/bench-watch.sh starts the broker, builds sscli and runs
// this.
//
// A store attached to the broker answers the watcher. The notifications do not
// come from that store but from a publisher in this process, on the topic that
// the store would use, so that both programs print the same messages. This
// process reads what they print, out of a pipe.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"slices"
	"time"

	"github.com/sscli/sscli/client/mqtt"
	"github.com/sscli/sscli/emulator"
	"github.com/sscli/sscli/scripts/bench/goal"
)

// The goals.
const (
	minRate    = 1.0  // notifications per second, of mosquitto_sub's
	maxLatency = 1.3  // median from publisher to pipe, of mosquitto_sub's
	maxGrowth  = 1.25 // peak memory after three times as many events; 100 bytes kept of each would be 1.4 and more
)

type bench struct {
	broker, sscli string
	rounds        int
	events        int // of a round of throughput, and of each third of the measurement of memory
	paced         int // of a round of latency, one each millisecond
	keys          int // watched for the measurement of memory

	publisher *publisher
	goals     goal.Goals
}

func main() {
	var b bench
	flag.StringVar(&b.broker, "broker", "127.0.0.1:1883", "host:port")
	flag.StringVar(&b.sscli, "sscli", "sscli", "the sscli to measure")
	flag.IntVar(&b.rounds, "rounds", 5, "rounds of throughput and of latency")
	flag.IntVar(&b.events, "events", 100_000, "notifications of a round")
	flag.IntVar(&b.paced, "paced", 4000, "notifications of a round of latency")
	flag.IntVar(&b.keys, "keys", 10_000, "keys that are watched for the measurement of memory")
	limit := flag.Duration("limit", 5*time.Minute, "give up after so long")
	flag.Parse()
	b.goals.Main(*limit, b.run)
}

func (b *bench) run(ctx context.Context) (err error) {
	store, err := emulator.Attach(ctx, mqtt.Options{Address: b.broker, ClientID: "bench-store"}, emulator.EngineOptions{})
	if err != nil {
		return fmt.Errorf("attach the store: %w", err)
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	if b.publisher, err = newPublisher(ctx, b.broker); err != nil {
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

// alternating runs measure for both programs in each round, and lets each begin
// as often as the other.
func (b *bench) alternating(measure func(program) error) error {
	programs := []program{b.watch(), b.subscribe()}
	for range b.rounds {
		for _, p := range programs {
			if err := measure(p); err != nil {
				return fmt.Errorf("%s: %w", p.name, err)
			}
		}
		slices.Reverse(programs)
	}
	return nil
}

// throughput publishes as fast as the broker takes it.
func (b *bench) throughput(ctx context.Context) error {
	fmt.Printf("throughput: %d notifications as fast as they go\n", b.events)
	fmt.Printf("  %-16s %12s %8s %10s\n", "", "per second", "seconds", "CPU s")
	rates := make(map[string][]float64)
	err := b.alternating(func(p program) error {
		r, err := b.start(ctx, p, oneKey)
		if err != nil {
			return err
		}
		defer r.end()
		messages := make([]mqtt.Message, b.events)
		for n := range messages {
			if messages[n], err = b.publisher.notification(oneKey, uint64(n)); err != nil {
				return err
			}
		}
		begin := time.Now()
		published := b.publisher.begin(func() error {
			for _, m := range messages {
				if err := b.publisher.conn.Publish(ctx, m, b.publisher.acked); err != nil {
					return err
				}
			}
			return nil
		})
		for n := range b.events {
			if got, err := r.next(); err != nil || got != uint64(n) {
				return errors.Join(fmt.Errorf("notification %d: got %d", n, got), err, r.end(), published())
			}
		}
		took := time.Since(begin)
		if err := errors.Join(published(), r.end()); err != nil {
			return err
		}
		rate := float64(b.events) / took.Seconds()
		rates[p.name] = append(rates[p.name], rate)
		fmt.Printf("  %-16s %12.0f %8.2f %10.2f\n", p.name, rate, took.Seconds(), r.cpu().Seconds())
		return nil
	})
	if err != nil {
		return err
	}
	ratio := goal.MedianRatio(rates[watchName], rates[subscribeName])
	b.goals.Verdict(ratio >= minRate, "%.2f x mosquitto_sub (median of the rounds), goal at least %.2f x", ratio, minRate)
	return nil
}

// latency publishes one message each millisecond, whose value is the time.
func (b *bench) latency(ctx context.Context) error {
	const warmUp = 500
	fmt.Printf("latency: %d notifications, one each millisecond, publisher to pipe\n", b.paced)
	fmt.Printf("  %-16s %9s %9s %9s\n", "", "p50 us", "p99 us", "max us")
	medians := make(map[string][]float64)
	err := b.alternating(func(p program) error {
		r, err := b.start(ctx, p, oneKey)
		if err != nil {
			return err
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
				return errors.Join(err, r.end(), published())
			}
			if n >= warmUp {
				micros = append(micros, float64(time.Now().UnixNano()-int64(sent))/1e3)
			}
		}
		if err := errors.Join(published(), r.end()); err != nil {
			return err
		}
		slices.Sort(micros)
		p50, p99 := micros[len(micros)/2], micros[len(micros)*99/100]
		medians[p.name] = append(medians[p.name], p50)
		fmt.Printf("  %-16s %9.0f %9.0f %9.0f\n", p.name, p50, p99, micros[len(micros)-1])
		return nil
	})
	if err != nil {
		return err
	}
	ratio := goal.MedianRatio(medians[watchName], medians[subscribeName])
	b.goals.Verdict(ratio <= maxLatency, "p50 %.2f x mosquitto_sub (median of the rounds), goal at most %.2f x", ratio, maxLatency)
	return nil
}

// memory watches many keys, with a bound on what is under way, so that what the
// buffer may hold is not measured.
func (b *bench) memory(ctx context.Context) error {
	const underWay = 1000
	fmt.Printf("memory: %d keys, at most %d notifications under way\n", b.keys, underWay)
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
		room := make(chan struct{}, underWay)
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
	growth := peaks[2] / peaks[0]
	b.goals.Verdict(growth <= maxGrowth, "peak after three times as many events: %.2f x, goal at most %.2f x", growth, maxGrowth)
	return r.end()
}
