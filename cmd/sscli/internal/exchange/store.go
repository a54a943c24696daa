package exchange

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/cmd/sscli/internal/app"
	"github.com/sscli/sscli/cmd/sscli/internal/fault"
	"github.com/sscli/sscli/cmd/sscli/internal/suggest"
	"github.com/sscli/sscli/internal/mqtt"
	"github.com/sscli/sscli/internal/wire"
)

// A Store is where requests go: one store, over a session. Several goroutines may use it.
type Store struct {
	Session *client.Session
	Retry   *app.Retry // how long reads without a reply are repeated, and how that is reported

	timeout time.Duration // of reading back the keys of writes without a reply
	oneCore bool          // Each uses one core
	note    func(string)  // prints a note about a lost reply with -v
	silent  atomic.Bool   // a request after one that timed out got no reply either
}

// NewStore returns a Store for the requests of a command, which reports outages on standard error. Reads without a
// reply are repeated for --retry-for.
func NewStore(a *app.App, s *client.Session) *Store {
	return &Store{Session: s, Retry: a.NewRetry(a.Settings.RetryFor), timeout: a.Timeout(), oneCore: !a.Settings.Embedded, note: a.Detail}
}

// Over returns a Store that repeats nothing and prints nothing.
func Over(s *client.Session) *Store {
	return &Store{Session: s, Retry: new(app.Retry), timeout: client.DefaultTimeout}
}

// NewBulk is like NewStore, for the reads of many keys: they are repeated for --retry-for or, without it, --timeout.
func NewBulk(a *app.App, s *client.Session) *Store {
	store := NewStore(a, s)
	store.Retry.For, store.Retry.Repeats = cmp.Or(a.Settings.RetryFor, a.Timeout()), fault.IsLost
	return store
}

// Do carries out one request, and returns its outcome. It repeats what was not sent, and reads without a reply; a write
// without a reply is read back as in a [Window]. send asks the store, perhaps several times; nil = s.Session.Do. Do is no
// window of one, because a single GET can be sent together with CONNECT.
func (s *Store) Do(ctx context.Context, c client.Command, send func(context.Context) (client.Result, error)) (o Outcome) {
	s.again(ctx, c, time.Time{}, &o, send)
	if s.recover(ctx, &o); o.Err != nil {
		o.Err = fault.Describe(c, o.Err)
	}
	return o
}

// again takes the outcome of a request that was sent at the time sent, or sends one if sent is zero. If nothing was sent,
// or the reply to a read was lost, it repeats the request. send is as in [Store.Do].
func (s *Store) again(ctx context.Context, c client.Command, sent time.Time, o *Outcome, send func(context.Context) (client.Result, error)) {
	if o.Err == nil && !sent.IsZero() {
		s.Retry.Answered(sent)
		s.silent.Store(false)
		return
	}
	o.Err = s.Retry.Again(ctx, sent, o.Err, func(ctx context.Context) (err error) {
		if send != nil {
			o.Result, err = send(ctx)
		} else {
			o.Result, err = s.Session.Do(ctx, c)
		}
		return err
	})
	o.Err = s.mayBeTooLarge(ctx, c, o.Err)
}

// probeTimeout limits the request by which mayBeTooLarge finds out whether the store answers.
const probeTimeout = time.Second

// mayBeTooLarge takes the error of a command. If the command is a GET that timed out although the store answers another one,
// it adds a hint: the value may be larger than any client can receive, and then a longer timeout does not help.
// After a GET to which the store did not answer either, it asks no more.
func (s *Store) mayBeTooLarge(ctx context.Context, c client.Command, err error) error {
	if c.Verb() != wire.VerbGet || !fault.IsTimeout(err) || fault.IsConnection(err) || ctx.Err() != nil || s.silent.Load() {
		return err
	}
	limited, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	_, probeErr := s.Session.Get(limited, app.ProbeKey)
	if probeErr != nil && !fault.IsA[*client.StoreError](probeErr) {
		s.silent.Store(true)
		return err
	}
	return &fault.NextError{Err: err, Hint: suggest.Try(fmt.Sprintf("the store answers other requests, so the value may be larger than any client can receive: "+
		"a packet has at most %d bytes; divide such a value among several keys", s.Session.MaxPacketSize()))}
}

// isAboutKey reports whether err is about one request and not about the connection: the request was
// refused or invalid, or its reply was invalid.
func isAboutKey(err error) bool {
	if refused, ok := errors.AsType[*mqtt.ReasonError](err); ok {
		return refused.Packet == "PUBACK"
	}
	return fault.IsA[*client.StoreError](err) || fault.IsA[*client.StatusError](err) || fault.IsA[*client.ReplyError](err) ||
		fault.IsA[*client.InvalidError](err) || fault.IsA[*client.TooLargeError](err)
}
