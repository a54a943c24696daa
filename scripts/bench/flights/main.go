// Command flights counts how many one-shot requests fail on each of several brokers, and compares
// sscli's client with paho's client for sequential requests. scripts/bench-flights.sh runs it.
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"sync/atomic"
	"time"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/internal/mqtt"
	"github.com/sscli/sscli/scripts/harness"
)

// minSequential is the goal for sequential requests on a stock Mosquitto, relative to paho's
// client.
const minSequential = 100

type bench struct {
	*harness.Bench
	flights, rounds int
}

func main() {
	var b bench
	flag.IntVar(&b.flights, "n", 1000, "flights on each broker")
	flag.IntVar(&b.rounds, "rounds", 3, "rounds of requests one after the other; 0: none")
	harness.Main(10*time.Minute, []string{"mosquitto"}, b.run)
}

func (b *bench) run(ctx context.Context, h *harness.Bench) error {
	b.Bench = h
	stock, err := b.Mosquitto(ctx, "")
	if err != nil {
		return err
	}
	quick, err := b.Mosquitto(ctx, harness.NoDelay)
	if err != nil {
		return err
	}
	secure, err := b.SecureMosquitto(ctx, "")
	if err != nil {
		return err
	}
	own, err := b.Serve(ctx)
	if err != nil {
		return err
	}
	pem, err := os.ReadFile(secure.CA)
	if err != nil {
		return err
	}
	trust := &tls.Config{RootCAs: x509.NewCertPool(), MinVersion: tls.VersionTLS13}
	trust.RootCAs.AppendCertsFromPEM(pem)
	if err := b.roundTrips(ctx); err != nil {
		return err
	}
	fmt.Printf("%d flights on each broker\n  %-24s %8s %12s %10s %10s\n", b.flights, "", "failed", "asked twice", "p50 ms", "p99 ms")
	for _, broker := range []struct {
		name string
		o    client.Options
	}{
		{"Mosquitto, stock", client.Options{Address: stock.Address()}},
		{"Mosquitto, nodelay", client.Options{Address: quick.Address()}},
		{"Mosquitto, TLS 1.3", client.Options{Address: secure.Address(), TLS: trust}},
		{"emulator", client.Options{Address: own.Address()}},
	} {
		if err := b.fly(ctx, broker.name, broker.o); err != nil {
			return fmt.Errorf("%s: %w", broker.name, err)
		}
	}
	if b.rounds == 0 {
		return nil
	}
	return b.sequential(ctx, stock)
}

// roundTrips runs the test that counts round trips on a link of known latency.
func (b *bench) roundTrips(ctx context.Context) error {
	failed := harness.Figures{0}
	if _, err := harness.Run(exec.CommandContext(ctx, "go", "test", "-count=1", "-run", "^TestFlights$", "./client")); err != nil {
		fmt.Fprintln(os.Stderr, err)
		failed[0] = 1
	}
	b.AtMost("P1", "round trips after TCP, `get` 1, `set` 2, one more with TLS 1.3: tests that failed", failed, nil, 0)
	return ctx.Err()
}

// fly reads a key repeatedly, each time over a new connection.
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
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil || string(r.(client.GetResult).Value) != "value" {
			failed++
			fmt.Fprintf(os.Stderr, "%s: %+v, %v\n", name, r, err)
		}
	}
	slices.Sort(took)
	ms := func(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
	fmt.Printf("  %-24s %8d %12d %10.3f %10.3f\n", name, failed, published.Load()-int64(b.flights), ms(took[len(took)/2]), ms(took[len(took)*99/100]))
	if failed > 0 {
		b.Miss()
	}
	return nil
}

// sequential measures the requests per second of both clients, one request at a time.
func (b *bench) sequential(ctx context.Context, e harness.Endpoint) error {
	const long = 2 * time.Second
	fmt.Println("requests a second, one after the other, stock Mosquitto")
	printed := func(name string, measure func() (float64, error)) harness.Contender {
		return harness.Contender{Name: name, Measure: func() (float64, error) {
			rate, err := measure()
			fmt.Printf("  %-24s %8.0f\n", name, rate)
			return rate, err
		}}
	}
	f, err := harness.Rounds(b.rounds,
		printed("sscli", func() (float64, error) {
			s, err := client.Dial(ctx, client.Options{Address: e.Address()})
			if err != nil {
				return 0, err
			}
			defer s.Close()
			return harness.Rate(long, func() error {
				_, err := s.Get(ctx, "bench")
				return err
			})
		}),
		printed("paho", func() (float64, error) { return harness.PahoRate(ctx, e, "bench", long) }))
	if err != nil {
		return err
	}
	b.AtLeast("P5", "gets a second, one after the other, stock Mosquitto / paho's client", f[0], f[1], minSequential)
	return nil
}
