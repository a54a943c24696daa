package client

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"

	"github.com/sscli/sscli/client/mqtt"
	"github.com/sscli/sscli/client/wire"
)

// Once connects, sends one request, and disconnects. ctx bounds all of it but the
// goodbye, which takes a second at most. The errors are those of [Dial] and
// [Session.Do].
//
// It takes as few round trips as MQTT 5 allows: a GET leaves with CONNECT and
// SUBSCRIBE, in one write. A broker of several nodes may take it before it knows
// everywhere of the subscription, and then the answer is lost; so it is sent once more
// when none came a while after SUBACK. A write waits for SUBACK, and with an
// authentication method everything waits for CONNACK. Options.NoPipelining sends one
// packet after the other.
func Once(ctx context.Context, o Options, c Command) (Result, error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	s, err := newSession(o)
	if err != nil {
		return nil, err
	}
	s.brief = true
	ctx, cancel := s.limit(ctx)
	defer cancel()
	defer s.Close()
	if s.o.NoPipelining || !c.repeatable() {
		return s.Do(ctx, c)
	}
	return s.fly(ctx, c)
}

// repeatable tells whether a request may be sent twice, and so before it is certain
// that its answer can be delivered.
func (c Command) repeatable() bool { return c.Verb() == wire.VerbGet && c.effect == effectNone }

// A flight is a request that is sent with SUBSCRIBE. Each attempt to connect makes it
// anew.
type flight struct {
	ctx     context.Context // with a deadline
	command Command

	mu sync.Mutex
	p  *pending // of the last attempt; nil if it was not sent
	m  mqtt.Message
}

// reset begins an attempt.
func (f *flight) reset() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.p = nil
}

// early is the mqtt.Options.Early of an attempt.
func (f *flight) early(s *Session) (mqtt.EarlyMessage, error) {
	p, m, err := s.prepare(f.ctx, f.command)
	if err != nil {
		return mqtt.EarlyMessage{}, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.p, f.m = p, m
	return mqtt.EarlyMessage{Message: m, Acked: p.acked, Answered: p.done}, nil
}

// on notes the connection that the last attempt has made.
func (f *flight) on(conn *mqtt.Conn) {
	if p := f.pending(); p != nil {
		p.on(conn)
	}
}

func (f *flight) pending() *pending {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.p
}

// fly connects and sends a request on the way.
func (s *Session) fly(ctx context.Context, c Command) (Result, error) {
	f := &flight{ctx: ctx, command: c}
	conn, err := s.connect(ctx, f)
	p := f.pending()
	if err != nil && p != nil && ctx.Err() != nil && !errors.Is(err, context.DeadlineExceeded) {
		return nil, context.Cause(ctx) // what was waited for is the answer
	}
	if err != nil {
		return nil, p.instead(err)
	}
	if p == nil { // a broker that knows no pipelining
		return s.Do(ctx, c)
	}
	f.askAgain(conn)
	return p.wait(ctx)
}

// instead returns the error that sending one packet after the other would have had in
// place of err, with which the connection did not come about. p may be nil.
func (p *pending) instead(err error) error {
	if p == nil {
		return err
	}
	p.s.finish(p.id, mqtt.Message{}, err)
	<-p.done
	// What CONNACK said about the size of the request comes before how the broker put
	// an end to it.
	if tooLarge, ok := errors.AsType[*mqtt.TooLargeError](p.err); ok {
		return tooLarge
	}
	failed, ok := errors.AsType[*mqtt.DialError](err)
	if !ok || failed.Stage != mqtt.StageSubscribe {
		return err
	}
	if lost, ok := errors.AsType[*mqtt.LostError](err); ok {
		return lost // a refusal of SUBSCRIBE would be a SUBACK
	}
	return err
}

// askAgain waits for the answer to a request that was sent with SUBSCRIBE, and sends it
// once more when none came four times as long as SUBACK took.
func (f *flight) askAgain(conn *mqtt.Conn) {
	const least = 250 * time.Millisecond
	p := f.pending()
	t := time.NewTimer(max(4*time.Since(p.sent), least))
	defer t.Stop()
	select {
	case <-p.done:
	case <-f.ctx.Done():
	case <-t.C:
		f.m.Expiry = expiry(f.ctx)
		// If it cannot be sent, the end of the connection or of ctx says why.
		_ = conn.Publish(f.ctx, f.m, p.acked)
	}
}

// isUnwelcome tells whether a broker has closed the connection without a word before
// it granted the login, as one may that expects nothing but CONNECT.
func isUnwelcome(err error) bool {
	failed, ok := errors.AsType[*mqtt.DialError](err)
	if !ok || failed.Stage != mqtt.StageConnect {
		return false
	}
	if _, certificate := errors.AsType[*mqtt.ClientCertificateError](err); certificate {
		return false
	}
	if errors.Is(err, mqtt.ErrBrokerClosed) {
		return true
	}
	network, ok := errors.AsType[*net.OpError](err)
	return ok && !network.Timeout() && (network.Op == "read" || network.Op == "write")
}
