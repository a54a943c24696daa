package apply

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/cmd/sscli/internal/app"
	"github.com/sscli/sscli/cmd/sscli/internal/verb"
	"github.com/sscli/sscli/emulator"
	"github.com/sscli/sscli/format"
)

// TestBusyKey: a key that keeps changing delays the next round by no more than the shortest pause between rounds.
func TestBusyKey(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := emulator.Start(t, emulator.Options{InProcess: true})
		s, err := client.Dial(t.Context(), client.Options{Address: "store", Dial: store.Dial})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		w, err := s.Watch(t.Context(), []string{"busy"})
		if err != nil {
			t.Fatal(err)
		}
		defer w.Close()
		const pause, writes = quietTime / 5, 1000
		written := make(chan error, 1)
		go func() {
			for n := range writes {
				if _, err := store.Set("busy", fmt.Sprint(n)); err != nil {
					written <- err
					return
				}
				time.Sleep(pause)
			}
			written <- nil
		}()
		k := keeper{plan: &plan{app: &app.App{}}, every: time.Hour, outage: app.Outage{Notify: func(format.Note) {}}}
		k.states, k.dirty = make(map[string]verb.State), make(map[string]struct{})
		began := time.Now()
		err = k.wait(t.Context(), w, began, began.Add(k.every))
		if took := time.Since(began); err != nil || took < minPause || took > minPause+quietTime {
			t.Errorf("%v after %v, want the next round after %v", err, took, minPause)
		}
		if err := <-written; err != nil {
			t.Error(err)
		}
	})
}
