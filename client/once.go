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

// Once connects, sends one request, and disconnects. ctx bounds everything but the
// DISCONNECT, which takes at most a second. It returns the errors of [Dial] and
// [Session.Do].
//
// It needs as few round trips as MQTT 5 allows: a GET goes out with CONNECT and SUBSCRIBE
// in one write. A broker with several nodes may process it before all of them know the
// subscription, and then the answer is lost; so the GET is sent once more if no answer
// comes a while after SUBACK. A write waits for SUBACK, and with an authentication method
// everything waits for CONNACK. Options.NoPipelining sends one packet after the other.
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

// repeatable reports whether a request may be sent twice, and so may be sent before it is
// certain that its answer can be delivered.
func (c Command) repeatable() bool { return c.Verb() == wire.VerbGet && c.effect == effectNone }

// A flight is a request that is sent together with SUBSCRIBE. Each attempt to connect
// makes a new one of it.
type flight struct {
	ctx     context.Context // with a deadline
	command Command

	mu sync.Mutex
	p  *pending // from the last attempt; nil if it was not sent
}

// reset begins an attempt.
func (f *flight) reset() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.p = nil
}

// early is used as mqtt.Options.Early of an attempt.
func (f *flight) early(s *Session) (mqtt.EarlyMessage, error) {
	p := &pending{s: s, command: f.command, expiry: expiry(f.ctx), done: make(chan struct{})}
	p.onAck = p.acked
	if err := p.stamp(); err != nil {
		return mqtt.EarlyMessage{}, err
	}
	s.mu.Lock()
	err := p.begin(nil)
	s.mu.Unlock()
	if err != nil {
		return mqtt.EarlyMessage{}, err
	}
	m := p.message(new(draft))
	f.mu.Lock()
	defer f.mu.Unlock()
	f.p = p
	return mqtt.EarlyMessage{Message: m, Acked: p.onAck, Answered: p.done}, nil
}

// on sets the connection that the last attempt made.
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

// fly connects and sends a request at the same time.
func (s *Session) fly(ctx context.Context, c Command) (Result, error) {
	f := &flight{ctx: ctx, command: c}
	conn, err := s.connect(ctx, f)
	p := f.pending()
	if err != nil && p != nil && ctx.Err() != nil && !errors.Is(err, context.DeadlineExceeded) {
		return nil, context.Cause(ctx) // the wait was for the answer, not for the connection
	}
	if err != nil {
		return nil, p.instead(err)
	}
	if p == nil { // the broker does not accept packets before its CONNACK
		return s.Do(ctx, c)
	}
	f.askAgain(conn)
	return p.wait(ctx)
}

// instead returns the error that Once would have had if it had sent one packet after the
// other. err is why there is no connection; p may be nil.
func (p *pending) instead(err error) error {
	if p == nil {
		return err
	}
	p.s.finish(p.id, err)
	<-p.done
	// CONNACK announced the maximum size before the broker closed the connection.
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

// askAgain waits for the answer to a request that was sent with SUBSCRIBE. If none comes
// in four times the time that SUBACK took, it sends the request once more.
func (f *flight) askAgain(conn *mqtt.Conn) {
	const least = 250 * time.Millisecond
	p := f.pending()
	t := time.NewTimer(max(4*time.Since(p.sent), least))
	defer t.Stop()
	select {
	case <-p.done:
	case <-f.ctx.Done():
	case <-t.C:
		if !p.isUnheard() {
			// If it cannot be sent, the connection or ctx has ended, which p.wait reports.
			_ = p.publishAgain(f.ctx, conn)
		}
	}
}

// isUnwelcome reports whether the broker closed the connection before CONNACK without
// giving a reason, as some do if more than CONNECT comes first.
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
