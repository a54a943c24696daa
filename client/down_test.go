package client_test

import (
	"testing"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/emulator"
	"github.com/sscli/sscli/internal/mqtt"
)

// TestDown: a session reports when and why it lost its connection, and when it has a new one.
func TestDown(t *testing.T) {
	t.Parallel()
	store := emulator.Start(t)
	s := dial(t, store, client.Options{})
	down := s.Down()
	select {
	case <-down:
		t.Error("down while connected")
	default:
	}
	if err := s.Err(); err != nil {
		t.Errorf("got %v while connected", err)
	}
	store.DropAll()
	<-down
	if err := s.Err(); client.IsPermanent(err) {
		t.Errorf("%v is fatal", err)
	} else {
		as[*mqtt.LostError](t, err)
	}
	must(s.Get(t.Context(), "k"))(t)
	if err := s.Err(); err != nil || s.Down() == down {
		t.Errorf("got %v when connected again", err)
	}
}

func TestFatal(t *testing.T) {
	t.Parallel()
	store := emulator.Start(t)
	first := dial(t, store, client.Options{ClientID: "same"})
	dial(t, store, client.Options{ClientID: "same"})
	<-first.Down()
	if err := first.Err(); !client.IsPermanent(err) {
		t.Errorf("%v is not fatal", err)
	}
}
