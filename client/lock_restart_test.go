package client_test

import (
	"bytes"
	"context"
	"net"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/emulator"
)

// TestLockThroughRestart restarts a store with a file several times while a lock is held: the holder renews
// the lock, the waiter does not get it, and tokens rise. It runs in virtual time.
func TestLockThroughRestart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := emulator.Options{InProcess: true, Data: emulator.Data{File: filepath.Join(t.TempDir(), "store.db")}}
		store, err := emulator.New(o)
		if err != nil {
			t.Fatal(err)
		}
		var running atomic.Pointer[emulator.Server]
		running.Store(store)
		dial := func(ctx context.Context, network, address string) (net.Conn, error) {
			return running.Load().Dial(ctx, network, address)
		}
		defer func() { _ = store.Close() }()
		session := func(id string) *client.Session {
			s, err := client.Dial(t.Context(), client.Options{Address: "store", Dial: dial, ClientID: id, Timeout: 5 * time.Second})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = s.Close() })
			return s
		}
		const ttl = 4 * time.Second
		renewed := make(chan struct{}, 1000)
		lock, err := session("holder").Lock(t.Context(), "lease", client.LockOptions{TTL: ttl, OnLease: func(client.Lease) { renewed <- struct{}{} }})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		waiting := make(chan *client.Lock)
		other := session("other")
		waits := make(chan struct{})
		busy := sync.OnceFunc(func() { close(waits) })
		go func() {
			l, err := other.Lock(ctx, "lease", client.LockOptions{TTL: ttl, OnWait: func(client.LockStatus) { busy() }})
			if err != nil {
				t.Error(err)
			}
			waiting <- l
		}()
		<-waits
		token := lock.Token()
		for range 3 {
			if err := store.Close(); err != nil {
				t.Fatal(err)
			}
			if store, err = emulator.New(o); err != nil {
				t.Fatal(err)
			}
			running.Store(store)
			if e, ok := store.Get("lease"); !ok || !bytes.Equal(e.Value, lock.Holder()) {
				t.Fatalf("after a restart the lock is held: %t, by %q", ok, e.Value)
			}
			for lock.Token().Compare(token) <= 0 {
				select {
				case <-renewed:
				case <-lock.Context().Done():
					t.Fatalf("the lock was lost: %v", context.Cause(lock.Context()))
				case <-waiting:
					t.Fatal("another client got the lock")
				}
			}
			token = lock.Token()
		}
		if err := lock.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		next := <-waiting
		if next == nil || next.Token().Compare(token) <= 0 {
			t.Fatalf("the next token: %v, after %v", next, token)
		}
		if err := next.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
}
