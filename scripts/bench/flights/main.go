// Command flights counts one-shots that go wrong, and measures requests one after the
// other beside paho's client, on brokers that run already. scripts/bench-flights.sh
// starts the brokers and runs this.
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"sync/atomic"
	"time"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/client/mqtt"
	"github.com/sscli/sscli/emulator"
	"github.com/sscli/sscli/scripts/bench/goal"
)

// minSequential is the goal: requests one after the other on a stock Mosquitto, of
// paho's.
const minSequential = 100

type bench struct {
	stock, stockTLS, nodelay, ca string
	flights, rounds              int
	goals                        goal.Goals
}

func main() {
	var b bench
	flag.StringVar(&b.stock, "stock", "127.0.0.1:1883", "host:port of a Mosquitto as it comes")
	flag.StringVar(&b.stockTLS, "stock-tls", "127.0.0.1:8883", "the same with TLS")
	flag.StringVar(&b.nodelay, "nodelay", "127.0.0.1:1884", "host:port of a Mosquitto with set_tcp_nodelay")
	flag.StringVar(&b.ca, "ca", "cert.pem", "certificate of -stock-tls")
	flag.IntVar(&b.flights, "n", 1000, "flights on each broker")
	flag.IntVar(&b.rounds, "rounds", 3, "rounds of requests one after the other; 0: none")
	limit := flag.Duration("limit", 10*time.Minute, "give up after so long")
	flag.Parse()
	b.goals.Main(*limit, b.run)
}

func (b *bench) run(ctx context.Context) (err error) {
	for i, address := range []string{b.stock, b.nodelay} {
		store, attachErr := emulator.Attach(ctx, mqtt.Options{Address: address, ClientID: fmt.Sprintf("bench-store-%d", i)}, emulator.EngineOptions{})
		if attachErr != nil {
			return fmt.Errorf("attach a store to %s: %w", address, attachErr)
		}
		defer func() { err = errors.Join(err, store.Close()) }()
	}
	embedded, err := emulator.New(emulator.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, embedded.Close()) }()
	pem, err := os.ReadFile(b.ca)
	if err != nil {
		return err
	}
	trust := &tls.Config{RootCAs: x509.NewCertPool(), MinVersion: tls.VersionTLS13}
	if !trust.RootCAs.AppendCertsFromPEM(pem) {
		return fmt.Errorf("%s holds no certificate", b.ca)
	}
	fmt.Printf("%d flights on each broker\n  %-24s %8s %12s %10s %10s\n", b.flights, "", "failed", "asked twice", "p50 ms", "p99 ms")
	for _, broker := range []struct {
		name string
		o    client.Options
	}{
		{"Mosquitto, stock", client.Options{Address: b.stock}},
		{"Mosquitto, nodelay", client.Options{Address: b.nodelay}},
		{"Mosquitto, TLS 1.3", client.Options{Address: b.stockTLS, TLS: trust}},
		{"emulator", client.Options{Address: embedded.Addr().String()}},
	} {
		if err := b.fly(ctx, broker.name, broker.o); err != nil {
			return fmt.Errorf("%s: %w", broker.name, err)
		}
	}
	if b.rounds == 0 {
		return nil
	}
	return b.sequential(ctx)
}

// fly gets a key over and over, each time on a connection of its own.
func (b *bench) fly(ctx context.Context, name string, o client.Options) error {
	if _, err := client.Once(ctx, o, client.Set("bench", []byte("value"), client.SetOptions{})); err != nil {
		return err
	}
	var published atomic.Int64
	o.Trace = func(e mqtt.Event) {
		if e.Sent && e.Type == "PUBLISH" {
			published.Add(1)
		}
	}
	failed := 0
	took := make([]time.Duration, 0, b.flights)
	for range b.flights {
		begin := time.Now()
		r, err := client.Once(ctx, o, client.Get("bench"))
		took = append(took, time.Since(begin))
		if err != nil || string(r.(client.GetResult).Value) != "value" {
			failed++
			fmt.Fprintf(os.Stderr, "%s: %+v, %v\n", name, r, err)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	slices.Sort(took)
	ms := func(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
	fmt.Printf("  %-24s %8d %12d %10.3f %10.3f\n", name, failed, published.Load()-int64(b.flights), ms(took[len(took)/2]), ms(took[len(took)*99/100]))
	if failed > 0 {
		b.goals.Miss()
	}
	return nil
}

// sequential measures requests one after the other on a stock Mosquitto, of both
// clients in turn.
func (b *bench) sequential(ctx context.Context) error {
	const long = 2 * time.Second
	ours := func() (float64, error) {
		s, err := client.Dial(ctx, client.Options{Address: b.stock})
		if err != nil {
			return 0, err
		}
		defer s.Close()
		return rate(long, func() error {
			_, err := s.Get(ctx, "bench")
			return err
		})
	}
	theirs := func() (float64, error) {
		p, err := dialPaho(ctx, b.stock)
		if err != nil {
			return 0, err
		}
		defer p.close()
		return rate(long, func() error { return p.get(ctx, "bench") })
	}
	fmt.Printf("requests a second, one after the other, Mosquitto as it comes\n  %12s %12s %10s\n", "sscli", "paho", "ratio")
	var ratios []float64
	for range b.rounds {
		us, err := ours()
		if err != nil {
			return fmt.Errorf("sscli: %w", err)
		}
		them, err := theirs()
		if err != nil {
			return fmt.Errorf("paho: %w", err)
		}
		fmt.Printf("  %12.0f %12.0f %10.1f\n", us, them, us/them)
		ratios = append(ratios, us/them)
	}
	median := goal.Median(ratios)
	b.goals.Verdict(median >= minSequential, "median ratio %.1f, goal at least %d", median, minSequential)
	return nil
}

// rate is how often a second request returned.
func rate(long time.Duration, request func() error) (float64, error) {
	begin := time.Now()
	n := 0
	for ; time.Since(begin) < long; n++ {
		if err := request(); err != nil {
			return 0, err
		}
	}
	return float64(n) / time.Since(begin).Seconds(), nil
}
