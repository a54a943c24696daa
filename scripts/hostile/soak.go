package main

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"sync"
	"time"

	"github.com/sscli/sscli/emulator"
	"github.com/sscli/sscli/scripts/harness"
)

const (
	subscriptionsEach = 4 // number of publishers that a member subscribes to
	groupMembers      = 3 // number of members that share a subscription to all topics
)

// A soak checks the delivery guarantees of the emulator's broker in a long run.
type soak struct {
	duration time.Duration // how long members publish
	clients  int
	rate     float64 // messages per second of each client
	seed     uint64
}

func (s soak) run(ctx context.Context, b *harness.Bench) error {
	fmt.Printf("soak: %d clients for %v, seed %d\n", s.clients, s.duration, s.seed)
	server, address, err := startChild(ctx, brokerRole)
	if err != nil {
		return err
	}
	defer func() { _ = server.end() }() // an error does not matter: the members decide the result
	before, err := memory(server)
	if err != nil {
		return err
	}
	all := newFleet(s.clients, address, s.rate, s.seed)
	if err := all.introduce(); err != nil {
		return err
	}
	fmt.Printf("soak: all are subscribed; the broker had %s\n", before)

	stop := make(chan struct{})
	var running sync.WaitGroup
	for _, m := range all.members {
		running.Go(func() { m.live(stop) })
	}
	begin := time.Now()
	tick := time.NewTicker(10 * time.Second)
	defer tick.Stop()
	for end := time.After(s.duration); end != nil; {
		select {
		case <-end:
			end = nil
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
			now, err := memory(server)
			if err != nil {
				return err
			}
			fmt.Printf("soak: %4.0fs  %s  %s\n", time.Since(begin).Seconds(), all.summary(), now)
		}
	}
	close(stop)
	running.Wait()

	if err := all.settle(); err != nil {
		return err
	}
	violations := all.check()
	fmt.Printf("soak: at the end  %s\n", all.summary())
	all.leave()
	after, err := settled(server, before)
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
		b.Miss()
		fmt.Fprintf(os.Stderr, "soak: %d violations, seed %d\n", len(violations), s.seed)
		return nil
	}
	fmt.Println("soak: nothing lost, nothing twice at QoS 2, all in order, memory back")
	return nil
}

// brokerRole runs an emulator in a separate process, so that the process's memory is only the broker's.
const brokerRole = "broker"

func broker() {
	s, err := emulator.New(emulator.Options{})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(s.Addr())
	for in := bufio.NewScanner(os.Stdin); in.Scan(); { // each line requests the usage
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		fmt.Println(m.HeapAlloc, m.StackInuse, runtime.NumGoroutine(), s.State().Connections)
	}
	s.Close() // an error does not matter: the process ends now
}

// usage is the broker's resources after a garbage collection; heap and stacks are in bytes.
type usage struct{ heap, stacks, goroutines, connections int }

func (u usage) String() string {
	return fmt.Sprintf("heap %.1f MB, stacks %.1f MB, %d goroutines, %d connections", float64(u.heap)/1e6, float64(u.stacks)/1e6, u.goroutines, u.connections)
}

// memory requests the broker's usage.
func memory(server *child) (u usage, err error) {
	if _, err := fmt.Fprintln(server.in); err != nil {
		return u, err
	}
	line, err := server.next()
	if err == nil {
		_, err = fmt.Sscan(line, &u.heap, &u.stacks, &u.goroutines, &u.connections)
	}
	return u, err
}

// settled waits until the broker's heap is about as large as before, with no more goroutines. After 10 s it
// gives up with an error.
func settled(server *child, before usage) (after usage, err error) {
	const more = 4_000_000 // bytes; emptied maps and slices keep their capacity
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(100 * time.Millisecond) {
		if after, err = memory(server); err != nil {
			return after, err
		}
		if after.heap <= before.heap+more && after.goroutines <= before.goroutines {
			return after, nil
		}
		if time.Now().After(deadline) {
			return after, fmt.Errorf("memory does not return: before %s, after %s", before, after)
		}
	}
}

// chance returns true once in n times on average.
func chance(r *rand.Rand, n int) bool { return r.IntN(n) == 0 }

// between returns a random duration of at least low and less than high.
func between(r *rand.Rand, low, high time.Duration) time.Duration {
	return low + time.Duration(r.Int64N(int64(high-low)))
}
