package lock

import (
	"context"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/cmd/sscli/internal/app"
	"github.com/sscli/sscli/cmd/sscli/internal/fault"
)

// Hold acquires a lock for another command, waiting while another holds it, and renews it until
// release is called. While it is held nothing is printed: the terminal is the command's. It
// returns the errors of `lock hold`.
func Hold(ctx context.Context, a *app.App, s *client.Session, so client.Options, name string) (l *client.Lock, release func() error, err error) {
	f := lockFlags{name: name, conflict: fault.CodeNo}
	o, err := f.options()
	if err != nil {
		return nil, nil, err
	}
	o.Holder = newHolder(a)
	reportWaiting(a, &o)
	waiting, held := o.OnTrouble, false // the functions are called one at a time
	o.OnLease = func(client.Lease) { held = true }
	o.OnTrouble = func(err error) {
		if !held {
			waiting(err)
		}
	}
	if l, err = s.Lock(ctx, name, o); err != nil {
		return nil, nil, lockError(a, f, err)
	}
	return l, func() error { return lockError(a, f, releaseLock(a, s, l, so.Timeout)) }, nil
}
