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

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/client/wire"
	"github.com/sscli/sscli/cmd/sscli/internal/fault"
	"github.com/sscli/sscli/redis"
)

// window is how many requests of one client may be in flight.
const window = 256

// backend is a store at the other end of a session.
type backend struct {
	session *client.Session
	timeout time.Duration // of a request
	log     *slog.Logger
	server  *redis.Server // hears of changes

	life    context.Context // ends with close
	end     context.CancelFunc
	running sync.WaitGroup

	listed []string // keys of --watch
	own    *expiries

	mu      sync.Mutex
	watches map[string]*keyWatch // of single keys that clients subscribed to
}

// open returns a backend with a server that listens nowhere yet. Each request has the
// timeout. keys are the keys of --watch, which are watched when open returns.
func open(ctx context.Context, s *client.Session, timeout time.Duration, log *slog.Logger, keys []string, o redis.Options) (*backend, error) {
	b := &backend{session: s, timeout: timeout, log: log, listed: keys, own: newExpiries(), watches: make(map[string]*keyWatch)}
	o.Backend, o.Name, o.Patterns, o.Log = b, "gateway", len(keys) > 0, log
	var err error
	if b.server, err = redis.New(o); err != nil {
		return nil, fault.Usagef("--notify-keyspace-events: %w", err)
	}
	b.life, b.end = context.WithCancel(context.Background())
	if len(keys) > 0 {
		if err := b.watchListed(ctx); err != nil {
			return nil, errors.Join(fmt.Errorf("--watch: %w", err), b.close())
		}
	}
	return b, nil
}

// close ends the server and the watches, and waits for them.
func (b *backend) close() error {
	err := b.server.Close()
	b.end()
	b.running.Wait()
	return err
}

// Do sends the operations, those on different keys at the same time.
func (b *backend) Do(ctx context.Context, _ *redis.Caller, ops []redis.Op) {
	type request struct {
		flight *client.InFlight
		sent   time.Time
		expiry *expiringWrite // nil: none
	}
	requests := make([]request, len(ops))
	p := b.session.Pipeline(min(window, len(ops)))
	for i := range ops {
		op := &ops[i]
		c, err := command(op)
		if err != nil {
			op.Err = err
			continue
		}
		r := request{sent: time.Now()}
		if op.PX > 0 {
			r.expiry = b.own.begin(string(op.Key), lifetime(op), b.isWatched(string(op.Key)))
		}
		if r.flight, err = p.Send(ctx, c); err != nil {
			op.Err = unsent(err)
		}
		if r.expiry != nil {
			r.expiry.send(r.flight)
		}
		requests[i] = r
	}
	for i, sent := range requests {
		op := &ops[i]
		if sent.expiry != nil {
			b.own.answered(string(op.Key), sent.expiry)
		}
		if sent.flight == nil {
			continue
		}
		r, err := sent.flight.Wait()
		if err != nil {
			op.Err = b.unanswered(op, time.Since(sent.sent), err)
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

// command makes the request of an operation. What the store would refuse in any case is
// refused in its words.
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

// lifetime returns PX, but no more than a duration can be, which is 292 years.
func lifetime(op *redis.Op) time.Duration {
	return time.Duration(min(op.PX, math.MaxInt64/int64(time.Millisecond))) * time.Millisecond
}

// unsent is the reply for an operation that was not sent.
func unsent(err error) error {
	var tooLarge *client.TooLargeError
	if errors.As(err, &tooLarge) || errors.Is(err, client.ErrClockDrift) {
		return err
	}
	return redis.NotSent()
}

// unanswered is the reply for an operation that was sent. Whether a write was applied is
// unknown unless the store or the broker refused it: what the key holds later cannot tell
// its write from another client's.
func (b *backend) unanswered(op *redis.Op, waited time.Duration, err error) error {
	if refused, ok := errors.AsType[*client.StoreError](err); ok {
		return errors.New(refused.Text)
	}
	if senseless, ok := errors.AsType[*client.AnswerError](err); ok && op.Verb != redis.Get {
		return &redis.Error{Code: "UNKNOWN", Text: fmt.Sprintf("%s %q: %v; it may have been applied", op.Verb, op.Key, senseless)}
	}
	if _, ok := errors.AsType[*client.LostAnswerError](err); ok {
		return redis.Unknown(op, b.waited(waited))
	}
	if _, ok := errors.AsType[*client.LostError](err); ok || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, client.ErrClosed) {
		return fmt.Errorf("%s %q got no answer within %s", op.Verb, op.Key, b.waited(waited))
	}
	return err
}

// waited rounds how long an answer was waited for: it is the timeout unless the connection
// was lost before.
func (b *backend) waited(d time.Duration) time.Duration {
	if d >= b.timeout {
		return b.timeout
	}
	return max(d.Round(time.Millisecond), time.Millisecond)
}

// Scan asks for a page. How the store escapes in a pattern is not known, so the pattern ends
// where the prefix has a special character.
func (b *backend) Scan(ctx context.Context, _ *redis.Caller, prefix, token []byte, _ int) (keys [][]byte, next []byte, err error) {
	plain := prefix
	if i := bytes.IndexAny(plain, `*?[]\{}`); i >= 0 {
		plain = plain[:i]
	}
	f, err := b.session.Pipeline(1).Send(ctx, client.Scan(string(plain)+"*", token))
	if err != nil {
		return nil, nil, unsent(err)
	}
	r, err := f.Wait()
	if refused, ok := errors.AsType[*client.StoreError](err); ok {
		return nil, nil, errors.New(refused.Text)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("SCAN: %w", err)
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
