package gateway

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/cmd/sscli/internal/fault"
	"github.com/sscli/sscli/internal/redis"
	"github.com/sscli/sscli/internal/wire"
)

// maxInflight is the maximum number of requests in flight for one Redis client.
const maxInflight = 256

// A backend is a [redis.Backend] that sends requests over a session.
type backend struct {
	session *client.Session
	timeout time.Duration // of each request
	log     *slog.Logger
	server  *redis.Server // receives the changes of watched keys

	ctx     context.Context // close cancels it
	cancel  context.CancelFunc
	running sync.WaitGroup

	listed []string  // the keys of --watch
	own    *expiries // this gateway's writes with an expiry

	mu        sync.Mutex
	watches   map[string]*keyWatch // by key, for subscriptions to single keys
	unwatched map[string]error     // by key of --watch that is not watched now: the reply to subscribers
}

// open returns a backend whose server is not listening yet. It waits until the store has confirmed the
// watches of the keys.
func open(ctx context.Context, s *client.Session, timeout time.Duration, log *slog.Logger, keys []string, o redis.Options) (*backend, error) {
	b := &backend{session: s, timeout: timeout, log: log, listed: keys, own: newExpiries(), watches: make(map[string]*keyWatch), unwatched: make(map[string]error)}
	o.Backend, o.Name, o.Patterns, o.Log = b, "gateway", len(keys) > 0, log
	var err error
	if b.server, err = redis.New(o); err != nil {
		return nil, fault.Usagef("--notify-keyspace-events: %w", err)
	}
	b.ctx, b.cancel = context.WithCancel(context.Background())
	if len(keys) > 0 {
		if err := b.watchListed(ctx); err != nil {
			return nil, errors.Join(fmt.Errorf("--watch: %w", err), b.close())
		}
	}
	return b, nil
}

// close closes the server, ends the watches, and waits for all goroutines of b.
func (b *backend) close() error {
	err := b.server.Close()
	b.cancel()
	b.running.Wait()
	return err
}

// Do sends the operations, and waits for the replies. Operations on different keys are in flight at
// the same time.
func (b *backend) Do(ctx context.Context, _ *redis.Caller, ops []redis.Op) {
	inflight, sent := make([]*client.InFlight, len(ops)), make([]time.Time, len(ops))
	p := b.session.Pipeline(min(maxInflight, len(ops)))
	for i := range ops {
		sent[i] = time.Now()
		inflight[i], ops[i].Err = b.send(ctx, p, &ops[i])
	}
	for i, flight := range inflight {
		if flight == nil {
			continue
		}
		op := &ops[i]
		r, err := flight.Wait(context.Background())
		if err != nil {
			op.Err = b.unanswered(op, time.Since(sent[i]), err)
			continue
		}
		if v := r.Info().Version; !v.IsZero() {
			op.Entry.Version = []byte(v.String())
		}
		switch r := r.(type) {
		case client.GetResult:
			op.Yes, op.Entry.Value = r.Found, r.Value
		case client.SetResult:
			op.Yes = r.Applied
		case client.DelResult:
			op.Yes = r.Deleted
		case client.VDelResult:
			op.Yes, op.Differs = r.Deleted, r.Found && !r.Deleted
		}
	}
}

// send sends one operation. If it is a SET with an expiry, send records it in b.own.
func (b *backend) send(ctx context.Context, p *client.Pipeline, op *redis.Op) (*client.InFlight, error) {
	c, err := command(op)
	if err != nil {
		return nil, err
	}
	if op.PX == 0 {
		flight, err := p.Send(ctx, c)
		return flight, unsent(err)
	}
	key := string(op.Key)
	w := b.own.begin(key, lifetime(op), b.isWatched(key))
	flight, err := p.Send(ctx, c)
	if err != nil {
		b.own.finish(key, w, nil)
		return nil, unsent(err)
	}
	b.running.Go(func() {
		r, _ := flight.Wait(context.Background()) // nil after an error
		b.own.finish(key, w, r)
	})
	return flight, nil
}

// command returns the request for an operation. If the store would always refuse the operation, command
// returns an error with the store's text.
func command(op *redis.Op) (client.Command, error) {
	var o client.SetOptions
	if op.Fence != nil {
		token, err := client.ParseVersion(string(op.Fence))
		if err != nil {
			return client.Command{}, errors.New(wire.TextMalformedTimestamp)
		}
		o.Fence = token
	}
	key := string(op.Key)
	var c client.Command
	switch op.Verb {
	case redis.Get:
		c = client.Get(key)
	case redis.Set:
		o.TTL = lifetime(op)
		o.Condition = [...]client.Condition{client.Always, client.NX, client.NEX}[op.If]
		c = client.Set(key, op.Value, o)
	case redis.Del:
		c = client.Del(key, o.WriteOptions)
	case redis.VDel:
		c = client.VDel(key, op.Value, o.WriteOptions)
	}
	if key == "" {
		return c, errors.New(wire.TextEmptyKey)
	}
	return c, c.Check()
}

// lifetime returns op.PX as a duration, limited to about 292 years.
func lifetime(op *redis.Op) time.Duration {
	return time.Duration(min(op.PX, math.MaxInt64/int64(time.Millisecond))) * time.Millisecond
}

// unsent returns the error reply to an operation that was not sent because of err, or nil if err is
// nil.
func unsent(err error) error {
	if _, tooLarge := errors.AsType[*client.TooLargeError](err); tooLarge || err == nil {
		return err
	}
	if client.IsPermanent(err) {
		return fmt.Errorf("%w; nothing was sent", err)
	}
	return redis.NotSent()
}

// unanswered returns the error reply to an operation that was sent, and then was refused or got no
// valid reply. A write without a reply has an unknown outcome: reading the key would not show it,
// because another client may have written the same value. waited is the time since the operation was
// sent.
func (b *backend) unanswered(op *redis.Op, waited time.Duration, err error) error {
	waited = min(max(waited.Round(time.Millisecond), time.Millisecond), b.timeout)
	lost, isWrite := errors.AsType[*client.LostReplyError](err)
	if isWrite {
		err = lost.Err
	}
	what := fmt.Sprintf("%s %q", op.Verb, op.Key)
	if _, ok := errors.AsType[*client.LostError](err); ok {
		what += ": the connection to the broker was lost before an answer came"
	} else if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, client.ErrClosed) {
		what += " got no answer within " + waited.String()
	} else if isWrite {
		what += ": " + err.Error()
	} else {
		return refusal(err)
	}
	if isWrite {
		return redis.Unknown(what)
	}
	return errors.New(what)
}

// refusal returns the error reply to an operation that the store refused. If no store received the
// request, the reply tells clients that they may repeat it.
func refusal(err error) error {
	if refused, ok := errors.AsType[*client.StoreError](err); ok {
		return errors.New(refused.Text)
	}
	if nobody, ok := errors.AsType[*client.NoStoreError](err); ok {
		return &redis.Error{Code: "LOADING", Text: nobody.Error()}
	}
	return err
}

// Scan requests a page of keys. It is not known how the store escapes special characters in patterns.
// So Scan asks for the part of the prefix before the first special character, and leaves out keys that
// do not begin with the whole prefix.
func (b *backend) Scan(ctx context.Context, _ *redis.Caller, prefix, token []byte, _ int) (keys [][]byte, next []byte, err error) {
	plain := prefix
	if i := bytes.IndexAny(prefix, `*?[]\{}`); i >= 0 {
		plain = prefix[:i]
	}
	for !utf8.Valid(plain) { // the store may accept only UTF-8 patterns
		plain = plain[:len(plain)-1]
	}
	f, err := b.session.Pipeline(1).Send(ctx, client.Scan(string(plain)+"*", token))
	if err != nil {
		return nil, nil, unsent(err)
	}
	r, err := f.Wait(context.Background())
	if err != nil {
		return nil, nil, refusal(fmt.Errorf("SCAN: %w", err))
	}
	page := r.(client.ScanResult)
	for _, key := range page.Keys {
		if bytes.HasPrefix([]byte(key), prefix) {
			keys = append(keys, []byte(key))
		}
	}
	if token != nil && bytes.Equal(page.Next, token) {
		return nil, nil, errors.New("SCAN returned the same token that the request had")
	}
	return keys, page.Next, nil
}
