package emulator_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/sscli/sscli/emulator"
)

// TestAwaitIsWoken: Await returns once the state is reached, even if nothing happens afterwards that would
// wake it.
func TestAwaitIsWoken(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]emulator.Options{"in memory": {}, "with a data file": {Data: newData(t)}} {
		for size, value := range map[string]string{"small": "v", "large": strings.Repeat("v", 3<<20)} {
			t.Run(name+", "+size, func(t *testing.T) {
				s := emulator.Start(t, o)
				m := connect(t, s, "m")
				connect(t, s, "watcher").do("KEYNOTIFY k", "+OK")
				want := s.State()
				want.Replies++
				want.Notifications++
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				waits, woken := make(chan bool, 100), make(chan error)
				go func() {
					woken <- s.Await(ctx, func(now emulator.State) bool {
						waits <- true
						return now.Replies == want.Replies && now.Notifications == want.Notifications
					})
				}()
				<-waits
				m.do("SET k "+value, "+OK")
				if err := <-woken; err != nil || ctx.Err() != nil {
					t.Errorf("only the end of its context ended Await: %v", err)
				}
			})
		}
	}
}
