package wait_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sscli/sscli/internal/wait"
)

func TestFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		if !wait.For(t.Context(), time.Hour) || time.Since(start) != time.Hour {
			t.Errorf("an hour passed in %v", time.Since(start))
		}
		if !wait.For(t.Context(), -1) || time.Since(start) != time.Hour {
			t.Error("no time did not pass")
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if wait.For(ctx, time.Hour) || time.Since(start) != time.Hour+time.Minute {
			t.Errorf("the context did not end the waiting: %v", time.Since(start))
		}
		if wait.For(ctx, 0) {
			t.Error("a context that had ended waited")
		}
	})
}
