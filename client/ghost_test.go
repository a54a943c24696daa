package client

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"testing"

	"github.com/sscli/sscli/emulator"
	"github.com/sscli/sscli/internal/mqtt"
	"github.com/sscli/sscli/internal/testkit/testpeer"
)

// holding is a TCP proxy that withholds what the client sends on one connection.
type holding struct {
	address string
	dropped chan struct{} // closed when the client has lost that connection
	release chan struct{} // closed to deliver the withheld bytes
}

// startHolding withholds what the client sends on connection number, counted from 0, and closes that
// connection on the client's side after the client's first bytes. The haunted connection is taken over before
// its SUBSCRIBE arrives; -1 = none.
func startHolding(t *testing.T, target string, number, haunted int) *holding {
	t.Helper()
	h := &holding{dropped: make(chan struct{}), release: make(chan struct{})}
	h.address = testpeer.Serve(t, func(n int, nc net.Conn) {
		if n != number && n != haunted {
			testpeer.Relay(nc, target, nil, nil)
			return
		}
		up, err := net.Dial("tcp", target)
		if err != nil {
			t.Error(err)
			return
		}
		defer up.Close()
		if n == number {
			h.hold(t, nc, up)
		} else {
			h.haunt(t, nc, up)
		}
	})
	return h
}

func (h *holding) hold(t *testing.T, down, up net.Conn) {
	kept := make([]byte, 4096)
	n, err := down.Read(kept)
	if err != nil {
		t.Error(err)
	}
	down.Close()
	close(h.dropped)
	select {
	case <-h.release:
	case <-t.Context().Done():
		return
	}
	if _, err := up.Write(kept[:n]); err != nil {
		t.Error(err)
	}
	defer context.AfterFunc(t.Context(), func() { up.Close() })()
	_, _ = io.Copy(io.Discard, up) // until the broker closes the connection
}

// haunt forwards CONNECT and CONNACK, delivers the withheld bytes, and then forwards only the broker's bytes.
func (h *holding) haunt(t *testing.T, down, up net.Conn) {
	kept := make([]byte, 4096)
	n, err := down.Read(kept)
	if err != nil {
		t.Error(err)
		return
	}
	remaining, digits := binary.Uvarint(kept[1:n])
	if _, err := up.Write(kept[:1+digits+int(remaining)]); err != nil {
		t.Error(err)
	}
	if n, err = up.Read(kept); err != nil {
		t.Error(err)
	}
	if _, err := down.Write(kept[:n]); err != nil {
		t.Error(err)
	}
	close(h.release)
	defer context.AfterFunc(t.Context(), func() { up.Close() })()
	_, _ = io.Copy(down, up)
}

// abandon watches the key k with a session that has connected again after an abandoned CONNECT. deliver delivers that
// CONNECT to the broker.
func abandon(t *testing.T) (store *emulator.Server, s *Session, w *Watch, deliver func()) {
	t.Helper()
	store = emulator.Start(t)
	proxy := startHolding(t, store.Addr().String(), 1, -1)
	s = watchSession(t, Options{Address: proxy.address, ClientID: "same"})
	write(t, store, "SET", "k", "0")
	w = startWatch(t, s, WatchOptions{}, "k")
	wantEvents(t, w, `initial k "0"`)
	store.DropAll()
	<-proxy.dropped
	wantEvents(t, w, "down", `resync k "0" proven`, "up")
	return store, s, w, func() { close(proxy.release) }
}

// TestOwnGhost: an abandoned CONNECT reaches the broker after a later attempt and takes that attempt's
// connection over. The session connects again; it does not if another client takes it over.
func TestOwnGhost(t *testing.T) {
	t.Parallel()
	store, s, w, deliver := abandon(t)
	deliver()
	events := wantEvents(t, w, "down", `resync k "0" proven`, "up")
	if !isTakenOver(events[0].Err) {
		t.Errorf("down: %v", events[0].Err)
	}
	write(t, store, "SET", "k", "v")
	wantEvents(t, w, `set k "v"`)

	watchSession(t, Options{Address: store.Addr().String(), ClientID: "same"})
	if _, err := w.Next(t.Context()); !isTakenOver(err) {
		t.Errorf("somebody else: %v", err)
	}
	if _, err := s.Get(t.Context(), "k"); !isTakenOver(err) {
		t.Errorf("somebody else: %v", err)
	}
	if code, _ := mqtt.ReasonCode(s.current().Err()); code != mqtt.ReasonTakenOver {
		t.Errorf("it connected again")
	}
}

// TestOwnGhostAndRequest: a request connects again after such a takeover before the watcher has noticed it.
func TestOwnGhostAndRequest(t *testing.T) {
	t.Parallel()
	_, s, w, deliver := abandon(t)
	busy := make(chan struct{})
	w.v.post(func() { <-busy })
	before := s.current()
	deliver()
	<-before.Done()
	if _, err := s.Get(t.Context(), "k"); err != nil {
		t.Error(err)
	}
	close(busy)
	wantEvents(t, w, "down", `resync k "0" proven`, "up")
}

// TestOwnGhostWhileConnecting: the takeover happens before the later attempt has its SUBACK.
func TestOwnGhostWhileConnecting(t *testing.T) {
	t.Parallel()
	store := emulator.Start(t)
	proxy := startHolding(t, store.Addr().String(), 1, 2)
	s := watchSession(t, Options{Address: proxy.address, ClientID: "same"})
	w := startWatch(t, s, WatchOptions{}, "k")
	wantEvents(t, w, "initial k")
	store.DropAll()
	wantEvents(t, w, "down", "gap k unknown", "resync k unknown", "up")
}
