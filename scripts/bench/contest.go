//go:build linux

package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/scripts/harness"
)

// contestRows returns rows about a lock for which workers compete: each holds it, releases it and comes back at once.
// A contest lasts until 500 hand-overs, with -full 1,000, at least 15 for each worker; at most half a minute, with -full two.
func contestRows(b *bench) []row {
	sizes := []int{3, 10, 40, 100}
	holds := []time.Duration{10 * time.Millisecond, 30 * time.Millisecond, 90 * time.Millisecond}
	processes := sizes
	if !b.full {
		holds, processes = holds[:1], sizes[:2]
	}
	var rows []row
	flock := func(s *side) turn { return s.lockProcess("flock", filepath.Join(s.dir, "contest")) }
	add := func(name string, workers int, hold time.Duration, alone bool, ours func(*side) turn) {
		what := fmt.Sprintf("%s, %d workers, hold %v", name, workers, hold)
		rows = append(rows, row{number: "P21", what: "longest wait / mean of " + what + " / flock(1)", goal: most(2), or: 6, times: 0.2, alone: alone,
			ours: func(s *side) float64 {
				c := s.contest(workers, hold, ours(s))
				s.kept[what] = c
				return c.ratio()
			},
			peer: func(s *side) float64 { return s.contest(workers, hold, flock(s)).ratio() },
		}, row{number: "P21", what: "smallest share of " + what + ", of an equal share", goal: least(1. / 3), times: 0.2, alone: alone, ours: func(s *side) float64 {
			return once(s, what, func() contest { return s.contest(workers, hold, ours(s)) }).share()
		}})
	}
	for _, hold := range holds {
		for _, workers := range sizes {
			add("`client.WithLock`", workers, hold, true, (*side).withLock)
		}
		for _, workers := range processes {
			add("`lock run`", workers, hold, false, func(s *side) turn {
				return s.lockProcess(s.args(s.emulator(), "lock", "run", "contest", "-q", "--")...)
			})
		}
	}
	return rows
}

// A turn acquires a lock, calls held, holds the lock for a time, and releases it. The number of the worker comes first.
type turn func(ctx context.Context, worker int, hold time.Duration, held func()) error

// A contest is what workers of a lock saw, also of the waits that had not ended.
type contest struct {
	waits figures // seconds
	turns []int   // of each worker
}

// ratio returns the longest wait, in mean waits.
func (c contest) ratio() float64 {
	sum := 0.0
	for _, w := range c.waits {
		sum += w
	}
	return slices.Max(c.waits) * float64(len(c.waits)) / sum
}

// share returns the smallest number of turns of a worker, as a fraction of the mean.
func (c contest) share() float64 {
	sum := 0
	for _, n := range c.turns {
		sum += n
	}
	return float64(slices.Min(c.turns)*len(c.turns)) / float64(max(sum, 1))
}

// contest lets workers compete.
func (s *side) contest(workers int, hold time.Duration, take turn) contest {
	long, most := 30*time.Second, max(500, 15*workers)
	if s.full {
		long, most = 2*time.Minute, max(1000, 15*workers)
	}
	begin := time.Now()
	end := begin.Add(long)
	ctx, cancel := context.WithDeadline(s.ctx, end)
	defer cancel()
	c := contest{turns: make([]int, workers)}
	var mu sync.Mutex // guards c, end, n and trouble
	var all sync.WaitGroup
	var trouble error
	n := 0
	for i := range workers {
		all.Go(func() {
			for ctx.Err() == nil {
				began, waits := time.Now(), true
				record := func(got bool) {
					mu.Lock()
					defer mu.Unlock()
					now := time.Now()
					over := now.After(end)
					if over {
						now = end
					}
					if waits && now.After(began) {
						c.waits = append(c.waits, now.Sub(began).Seconds())
					}
					if waits = false; !got || over {
						return
					}
					c.turns[i]++
					if n++; n == most {
						end = now
						cancel()
					}
				}
				err := take(ctx, i, hold, func() { record(true) })
				record(false)
				if err != nil && ctx.Err() == nil {
					mu.Lock()
					trouble = err
					mu.Unlock()
					cancel()
				}
			}
		})
	}
	all.Wait()
	harness.Check(trouble)
	fmt.Fprintf(os.Stderr, "  %d hand-overs in %.3gs, longest wait %s, ratio %s, smallest share %s\n", n, end.Sub(begin).Seconds(), figure(slices.Max(c.waits)), figure(c.ratio()), figure(c.share()))
	return c
}

// lockProcess returns a turn of a program that holds a lock while a command runs, whose words follow args.
func (s *side) lockProcess(args ...string) turn {
	return func(ctx context.Context, _ int, hold time.Duration, held func()) error {
		words := append(slices.Clone(args), "sh", "-c", fmt.Sprintf("echo; exec sleep %g", hold.Seconds()))
		cmd := exec.CommandContext(ctx, words[0], words[1:]...)
		cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) } // so that the lock is released
		out, err := cmd.StdoutPipe()
		if err != nil {
			return err
		}
		if err := cmd.Start(); err != nil {
			return err
		}
		if n, _ := io.ReadFull(out, make([]byte, 1)); n == 1 {
			held()
		}
		return cmd.Wait()
	}
}

// withLock returns a turn by the client library. Each worker has a session.
func (s *side) withLock() turn {
	address := s.emulator().address()
	var mu sync.Mutex
	sessions := make(map[int]*client.Session)
	return func(ctx context.Context, worker int, hold time.Duration, held func()) error {
		mu.Lock()
		session := sessions[worker]
		mu.Unlock()
		if session == nil {
			var err error
			if session, err = client.Dial(ctx, client.Options{Address: address}); err != nil {
				return err
			}
			context.AfterFunc(s.ctx, func() { _ = session.Close() })
			mu.Lock()
			sessions[worker] = session
			mu.Unlock()
		}
		return session.WithLock(ctx, "contest", func(context.Context, *client.Lock) error {
			held()
			time.Sleep(hold)
			return nil
		})
	}
}
