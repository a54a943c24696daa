package app

import (
	"context"
	"time"

	"github.com/sscli/sscli/client"
)

// CloseWatch ends a watch at the store, even after ctx has ended. It takes at most two seconds.
// An error is harmless: the store drops the registrations when the connection ends.
func CloseWatch(ctx context.Context, w *client.Watch) error {
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
	defer cancel()
	return w.Close(limited)
}
