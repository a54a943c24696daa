// Package await waits for the state of an emulator.
package await

import (
	"context"
	"testing"
	"time"

	"github.com/sscli/sscli/emulator"
)

// State waits until reached returns true for the store's state. It gives up after a minute.
func State(t testing.TB, store *emulator.Server, reached func(emulator.State) bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := store.Await(ctx, reached); err != nil {
		t.Fatalf("the state that was waited for does not come: %v; it is %+v", err, store.State())
	}
	if ctx.Err() != nil {
		t.Fatal("Await has noticed the state only at the end of its context")
	}
}
