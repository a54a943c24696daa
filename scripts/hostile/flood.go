package main

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/eclipse/paho.golang/packets"

	"github.com/sscli/sscli/internal/wire"
	"github.com/sscli/sscli/scripts/harness"
)

// floods returns the attacks with many connections, or with packets that no honest client sends.
func floods() []attack {
	return []attack{
		{name: "471,000 packets with wrong bits", run: func(ctx context.Context, t *target) (string, error) {
			const perConnection = 50
			random := rand.New(rand.NewPCG(1, 2))
			var mu sync.Mutex
			closed, err := inParallel(ctx, t.scale(471_000)/perConnection, func(i int) error {
				conn, err := t.dial(t.mqtt)
				if err != nil {
					return err
				}
				defer conn.Close()
				mu.Lock()
				all := connectPacket(connectOptions{id: fmt.Sprint("mutant", i)})
				for range perConnection {
					all = append(all, mutated(random, i)...)
				}
				mu.Unlock()
				_ = conn.SetDeadline(time.Now().Add(100 * time.Millisecond)) // a wrong length may make the server wait
				_, _ = conn.Write(all)
				_, _ = io.Copy(io.Discard, conn)
				return nil
			})
			return fmt.Sprintf("%d connections ended", closed), err
		}},
		{name: "2,000 connections with half a CONNECT", run: func(ctx context.Context, t *target) (string, error) {
			n, err := inParallel(ctx, t.scale(2000), func(i int) error {
				conn, err := t.dial(t.mqtt)
				if err != nil {
					return err
				}
				all := connectPacket(connectOptions{id: fmt.Sprint("half", i)})
				_, err = conn.Write(all[:len(all)/2])
				return err
			})
			harness.Check(err)
			return fmt.Sprintf("%d connections", n), pause(ctx, time.Second)
		}},
		{name: "10,000 connections without a login", run: func(ctx context.Context, t *target) (string, error) {
			n, err := inParallel(ctx, t.scale(10_000), func(int) error {
				_, err := t.dial(t.mqtt)
				return err
			})
			harness.Check(err)
			begin := time.Now()
			wanted(connectTo(t, connectOptions{id: "attacker"}))
			return fmt.Sprintf("%d connections; a login after them takes %d ms", n, time.Since(begin).Milliseconds()), nil
		}},
		{name: "guesses of a password, in 16 lines, for 10 s", flags: []string{"--users", "users"}, run: func(ctx context.Context, t *target) (string, error) {
			until := time.Now().Add(time.Duration(t.scale(10)) * time.Second)
			var checked atomic.Int64
			_, _ = inParallel(ctx, 1_000_000, func(i int) error {
				if time.Now().After(until) {
					return context.DeadlineExceeded
				}
				c, err := connectTo(t, connectOptions{id: fmt.Sprint("guess", i), password: fmt.Sprint("guess", i)})
				if err == refusal(0x86) {
					checked.Add(1)
				}
				if c != nil {
					c.Close()
				}
				return nil
			})
			return fmt.Sprintf("%d guesses", checked.Load()), nil
		}},
		{name: "20,000 logins, one after the other in 16 lines", run: func(ctx context.Context, t *target) (string, error) {
			n, err := inParallel(ctx, t.scale(t.scale(20_000)), func(i int) error { // a short run has 200, because each costs a hash
				c, err := connectTo(t, connectOptions{id: fmt.Sprint("flood", i)})
				if err == nil {
					err = c.Close()
				}
				return err
			})
			return fmt.Sprintf("%d logins", n), err
		}},
		{name: "5,000 take-overs of one client id", run: func(ctx context.Context, t *target) (string, error) {
			n, _ := inParallel(ctx, t.scale(5000), func(int) error {
				_, err := connectTo(t, connectOptions{id: "wanted", expiry: 60})
				return err
			})
			return fmt.Sprintf("%d connections", n), nil
		}},
	}
}

// mutated returns a packet of an honest client with a few wrong bits.
func mutated(r *rand.Rand, i int) []byte {
	c := client{id: fmt.Sprint("mutant", i)}
	var p []byte
	switch r.IntN(4) {
	case 0:
		p = publishPacket("news/1", 1, []byte("hello"))
	case 1:
		p = subscribePacket(&packets.Properties{}, "news/+", "$share/g/news/#")
	case 2:
		p = c.requestPacket([]byte(wire.VerbSet), []byte("key"), []byte("value"))
	case 3:
		p = c.requestPacket([]byte(wire.VerbScan), []byte("k*"))
	}
	for range 1 + r.IntN(3) {
		p[r.IntN(len(p))] ^= 1 << r.IntN(8)
	}
	return p
}

// inParallel calls f for 0 to n-1 on 16 goroutines, until ctx is done. It returns how many calls
// succeeded, and the first error.
func inParallel(ctx context.Context, n int, f func(i int) error) (succeeded int, err error) {
	return inParallelBy(ctx, 16, n, f)
}

// inParallelBy is like inParallel, but with another number of goroutines.
func inParallelBy(ctx context.Context, goroutines, n int, f func(i int) error) (succeeded int, err error) {
	var next, good atomic.Int64
	var first atomic.Pointer[error]
	var all sync.WaitGroup
	for range goroutines {
		all.Go(func() {
			for ctx.Err() == nil {
				i := int(next.Add(1)) - 1
				if i >= n {
					return
				}
				if err := f(i); err != nil {
					first.CompareAndSwap(nil, &err)
				} else {
					good.Add(1)
				}
			}
		})
	}
	all.Wait()
	if e := first.Load(); e != nil {
		err = *e
	}
	return int(good.Load()), err
}

// readAll reads until the server closes the connection, but at most 1 MiB.
func readAll(conn net.Conn) ([]byte, error) { return io.ReadAll(io.LimitReader(conn, mib)) }
