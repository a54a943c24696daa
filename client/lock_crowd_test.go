package client

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sscli/sscli/emulator"
)

// TestLockCrowd: when a lock is released, most of a crowd of waiting clients leave it to others, many do not
// even watch it, and yet each client gets it. A client that waits alone tries at once.
func TestLockCrowd(t *testing.T) {
	t.Parallel()
	const crowd, latency = 100, time.Millisecond
	requests := func(t *testing.T, clients int) (sets, told int, longest time.Duration) {
		synctest.Test(t, func(t *testing.T) {
			var mu sync.Mutex
			var released time.Time
			store := startVirtual(t, emulator.Options{Latency: latency, Observe: func(e emulator.Event) {
				mu.Lock()
				defer mu.Unlock()
				if e.Verb == "set" {
					sets++
				}
				told += len(e.Notified)
			}})
			defer store.Close()
			first := store.dial(t, newBarrier(), Options{})
			defer first.Close()
			held, err := first.Lock(t.Context(), theLock)
			if err != nil {
				t.Fatal(err)
			}
			var all sync.WaitGroup
			for range clients {
				s := store.dial(t, newBarrier(), Options{})
				defer s.Close()
				all.Go(func() {
					l, err := s.Lock(t.Context(), theLock)
					if err != nil {
						t.Error(err)
						return
					}
					mu.Lock()
					longest = max(longest, time.Since(released))
					mu.Unlock()
					time.Sleep(10 * latency)
					synctest.Wait()
					mu.Lock()
					released = time.Now()
					mu.Unlock()
					if err := l.Release(t.Context()); err != nil {
						t.Error(err)
					}
				})
			}
			time.Sleep(100 * time.Millisecond) // until all wait, and before the first poll
			synctest.Wait()
			mu.Lock()
			sets, told, released = 0, 0, time.Now()
			mu.Unlock()
			if err := held.Release(t.Context()); err != nil {
				t.Error(err)
			}
			all.Wait()
		})
		return sets, told, longest
	}
	sets, told, longest := requests(t, crowd)
	t.Logf("%d requests, %d notifications, longest gap %v", sets, told, longest)
	all := crowd * (crowd + 1) / 2 // if all that wait act at each release
	if sets > all/2 {
		t.Errorf("%d requests for a lock that %d clients acquire, want at most half of %d", sets, crowd, all)
	}
	if told > all { // each is told of a SET and a deletion
		t.Errorf("%d notifications of a lock that %d clients acquire, want at most half of %d", told, crowd, 2*all)
	}
	if longest > 2*time.Second+10*latency { // the longest rest, and then a KEYNOTIFY and a GET
		t.Errorf("a lock for which clients wait is free for %v", longest)
	}
	if sets, _, longest := requests(t, 1); sets != 1 || longest > 3*latency {
		t.Errorf("a client that waits alone sent %d requests and acquired the lock after %v", sets, longest)
	}
}

// TestCloseCrowd: closing the session of a client that waits for a lock takes no time, also while the client does not
// watch the lock.
func TestCloseCrowd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const crowd, latency = 50, time.Millisecond
		store := startVirtual(t, emulator.Options{Latency: latency})
		defer store.Close()
		var all sync.WaitGroup
		sessions := make([]*Session, crowd)
		for i := range sessions {
			s := store.dial(t, newBarrier(), Options{})
			sessions[i] = s
			all.Go(func() {
				for {
					l, err := s.Lock(t.Context(), theLock)
					if err != nil {
						return // the session is closed
					}
					time.Sleep(10 * latency)
					_ = l.Release(t.Context()) // fails if the session is closed
				}
			})
		}
		time.Sleep(10 * time.Second) // many clients have rested by now
		for i, s := range sessions {
			begin := time.Now()
			_ = s.Close()
			if took := time.Since(begin); took > 50*latency {
				t.Errorf("closing session %d took %v", i, took)
			}
		}
		all.Wait()
	})
}
