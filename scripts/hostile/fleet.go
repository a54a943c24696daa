package main

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"
)

// A fleet is all members of a soak and their total counts.
type fleet struct {
	members []*member
	counts  counts
}

type counts struct {
	published, acknowledged, refused, received, duplicates atomic.Int64
	connections, cuts, takeOvers, stalls                   atomic.Int64
}

func newFleet(n int, address string, rate float64, seed uint64) *fleet {
	f := &fleet{}
	for i := range n {
		r := rand.New(rand.NewPCG(seed, uint64(i)))
		c := &member{
			fleet: f, id: fmt.Sprintf("soak-%d", i), number: i, address: address, rate: rate, random: r,
			unreleased: make(map[uint16]bool), listens: make(map[int]byte), seen: make(map[int]*record),
		}
		for len(c.listens) < min(subscriptionsEach, n) {
			c.listens[r.IntN(n)] = byte(r.IntN(3))
		}
		c.shares = i < groupMembers
		f.members = append(f.members, c)
	}
	return f
}

// introduce connects and subscribes all members before anything is published, so that no member
// misses a message because it subscribes too late.
func (f *fleet) introduce() error {
	return f.each(func(c *member) error {
		l, err := c.connect(true)
		if err != nil {
			return err
		}
		if err := l.subscribe(); err != nil {
			return err
		}
		l.disconnect()
		return nil
	})
}

// each calls do for all members concurrently. It returns the first error.
func (f *fleet) each(do func(*member) error) error {
	errs := make(chan error, len(f.members))
	var running sync.WaitGroup
	for _, c := range f.members {
		running.Go(func() {
			if err := do(c); err != nil {
				errs <- fmt.Errorf("%s: %w", c.id, err)
			}
		})
	}
	running.Wait()
	close(errs)
	return <-errs
}

// settle connects all members and waits until all their messages are acknowledged and no more
// messages arrive.
func (f *fleet) settle() error {
	err := f.each(func(c *member) error {
		l, err := c.connect(false)
		c.last = l
		return err
	})
	if err != nil {
		return err
	}
	const quiet, longest = 3 * time.Second, 2 * time.Minute
	last, since := int64(-1), time.Now()
	for deadline := time.Now().Add(longest); ; time.Sleep(100 * time.Millisecond) {
		open := 0
		for _, c := range f.members {
			open += c.unfinished()
		}
		if now := f.counts.received.Load(); now != last {
			last, since = now, time.Now()
		}
		if open == 0 && time.Since(since) > quiet {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%d messages are never acknowledged", open)
		}
	}
}

// leave ends all sessions.
func (f *fleet) leave() {
	for _, c := range f.members {
		c.last.end()
	}
}

// check compares the received messages with the acknowledged ones and returns all violations.
func (f *fleet) check() (violations []string) {
	say := func(format string, args ...any) { violations = append(violations, fmt.Sprintf(format, args...)) }
	for _, c := range f.members {
		violations = append(violations, c.violations...)
		for number, granted := range c.listens {
			publisher, got := f.members[number], c.record(number)
			for sequence, qos := range publisher.acknowledged {
				times := got.times[sequence]
				switch qos = min(qos, granted); {
				case qos > 0 && times == 0:
					say("%s lost message %d of %s, QoS %d", c.id, sequence, publisher.id, qos)
				case qos == 2 && times > 1:
					say("%s got message %d of %s %d times at QoS 2", c.id, sequence, publisher.id, times)
				}
			}
		}
	}
	for number, publisher := range f.members {
		for sequence, qos := range publisher.acknowledged {
			times := 0
			for _, c := range f.members[:min(groupMembers, len(f.members))] {
				times += c.shared(number).times[sequence]
			}
			switch {
			case qos > 0 && times == 0:
				say("the group lost message %d of %s", sequence, publisher.id)
			case qos == 2 && times > 1:
				say("the group got message %d of %s %d times at QoS 2", sequence, publisher.id, times)
			}
		}
	}
	return violations
}

func (f *fleet) summary() string {
	c := &f.counts
	return fmt.Sprintf("published %d (acknowledged %d, refused %d), received %d (again %d), connections %d (cut %d, taken over %d, stalled %d)",
		c.published.Load(), c.acknowledged.Load(), c.refused.Load(), c.received.Load(), c.duplicates.Load(),
		c.connections.Load(), c.cuts.Load(), c.takeOvers.Load(), c.stalls.Load())
}
