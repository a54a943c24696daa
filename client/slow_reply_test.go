package client

import (
	"context"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sscli/sscli/emulator"
)

// A slowLine delivers 64 KiB each 50 ms.
type slowLine struct{ net.Conn }

func (l slowLine) Read(b []byte) (int, error) {
	time.Sleep(50 * time.Millisecond)
	return l.Conn.Read(b[:min(len(b), 64<<10)])
}

// TestSlowReply: a GET whose large reply takes seconds to arrive is not sent again.
func TestSlowReply(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		gets := 0
		store := startVirtual(t, emulator.Options{Observe: func(e emulator.Event) {
			if e.Verb == "get" {
				gets++
			}
		}})
		defer store.Close()
		large := make([]byte, 4<<20)
		store.Set("k", string(large))
		s, err := New(Options{Address: "virtual:1883", Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := store.net.Dial(ctx, network, address)
			return slowLine{conn}, err
		}})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		begin := time.Now()
		r, err := s.Get(t.Context(), "k")
		if err != nil || len(r.Value) != len(large) {
			t.Fatalf("%d bytes, %v", len(r.Value), err)
		}
		synctest.Wait()
		if took := time.Since(begin); gets != 1 || took < 2*time.Second {
			t.Errorf("%d GETs in %v, want 1 that takes seconds", gets, took)
		}
	})
}
