package client

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sscli/sscli/emulator"
)

// TestLostReplyOfRegistration: a lost reply to KEYNOTIFY, GET or STOP delays neither the watch that sent the
// request nor the next watch of the key.
func TestLostReplyOfRegistration(t *testing.T) {
	t.Parallel()
	for _, verb := range []string{"KEYNOTIFY", "GET", "STOP"} {
		t.Run(verb, func(t *testing.T) {
			t.Parallel()
			server := emulator.Start(t)
			s := watchSession(t, Options{Address: server.Addr().String(), Timeout: time.Hour})
			dropped := make(chan struct{})
			var once sync.Once
			lose := func(r emulator.Request) (action emulator.Action) {
				is := r.Verb() == verb
				if r.Verb() == "KEYNOTIFY" {
					is = (verb == "STOP") == bytes.Contains(r.Payload, []byte("STOP")) && verb != "GET"
				}
				if is {
					once.Do(func() {
						action.DropReply = true
						close(dropped)
					})
				}
				return action
			}
			if verb == "STOP" {
				w := startWatch(t, s, WatchOptions{}, "k")
				server.Intercept(lose)
				go w.Close()
			} else {
				server.Intercept(lose)
				ctx, cancel := context.WithCancel(t.Context())
				go func() {
					<-dropped
					cancel()
				}()
				if _, err := s.Watch(ctx, []string{"k"}); !errors.Is(err, context.Canceled) {
					t.Fatalf("the watch whose reply was lost: %v", err)
				}
			}
			<-dropped
			w := startWatch(t, s, WatchOptions{}, "k")
			write(t, server, "SET", "k", "1")
			wantEvents(t, w, `initial k`, `set k "1"`)
		})
	}
	// Without a new watch, the request is sent again for the waiting one.
	server := emulator.Start(t)
	s := watchSession(t, Options{Address: server.Addr().String(), Timeout: time.Hour})
	var n atomic.Int32
	server.Intercept(func(r emulator.Request) emulator.Action {
		return emulator.Action{DropReply: r.Verb() == "KEYNOTIFY" && n.Add(1) == 1}
	})
	lease, err := s.AcquireLock(t.Context(), "lock", LockOptions{Holder: []byte("me")})
	if err != nil || n.Load() < 2 || !bytes.Equal(lease.Holder, []byte("me")) {
		t.Errorf("AcquireLock after a lost KEYNOTIFY: %v, %v, after %d KEYNOTIFY", lease, err, n.Load())
	}
}
