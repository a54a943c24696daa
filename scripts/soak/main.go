// Command soak checks the delivery guarantees of the emulator's broker in a long run; see soak.sh.
package main

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"time"
)

// subscriptionsEach is how many publishers a client listens to.
const subscriptionsEach = 4

// groupMembers is how many clients share a subscription to all topics.
const groupMembers = 3

func main() {
	if len(os.Args) == 2 && os.Args[1] == serveWord {
		serve()
		return
	}
	duration := flag.Duration("d", 10*time.Minute, "how long messages are published")
	clients := flag.Int("clients", 200, "how many clients")
	rate := flag.Float64("rate", 5, "messages a second of each client")
	seed := flag.Uint64("seed", uint64(time.Now().UnixNano()), "of the random choices")
	flag.Parse()
	fmt.Printf("soak: %d clients for %v, seed %d\n", *clients, *duration, *seed)
	if err := soak(*clients, *duration, *rate, *seed); err != nil {
		fmt.Fprintln(os.Stderr, "soak:", err)
		os.Exit(1)
	}
}

func soak(n int, duration time.Duration, rate float64, seed uint64) error {
	server, err := startServer()
	if err != nil {
		return err
	}
	defer server.stop()
	before, err := server.memory()
	if err != nil {
		return err
	}
	all := newFleet(n, server.address, rate, seed)
	if err := all.introduce(); err != nil {
		return err
	}
	fmt.Printf("soak: all are subscribed; the broker had %s\n", before)

	stop := make(chan struct{})
	var running sync.WaitGroup
	for _, c := range all.clients {
		running.Go(func() { c.live(stop) })
	}
	begin := time.Now()
	tick := time.NewTicker(10 * time.Second)
	for end := time.After(duration); end != nil; {
		select {
		case <-end:
			end = nil
		case <-tick.C:
			now, err := server.memory()
			if err != nil {
				return err
			}
			fmt.Printf("soak: %4.0fs  %s  %s\n", time.Since(begin).Seconds(), all.summary(), now)
		}
	}
	tick.Stop()
	close(stop)
	running.Wait()

	if err := all.settle(); err != nil {
		return err
	}
	violations := all.check()
	fmt.Printf("soak: at the end  %s\n", all.summary())
	all.leave()
	after, err := server.settled(before)
	if err != nil {
		violations = append(violations, err.Error())
	}
	fmt.Printf("soak: the broker has %s\n", after)
	for i, v := range violations {
		if i == 20 {
			fmt.Printf("soak: and %d more\n", len(violations)-i)
			break
		}
		fmt.Println("soak: VIOLATION:", v)
	}
	if len(violations) > 0 {
		return fmt.Errorf("%d violations, seed %d", len(violations), seed)
	}
	fmt.Println("soak: nothing lost, nothing twice at QoS 2, all in order, memory back")
	return nil
}

// chance returns true once in n times on average.
func chance(r *rand.Rand, n int) bool { return r.IntN(n) == 0 }

// between returns a random duration of at least low and less than high.
func between(r *rand.Rand, low, high time.Duration) time.Duration {
	return low + time.Duration(r.Int64N(int64(high-low)))
}
