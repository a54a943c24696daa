package client

import (
	"context"
	"errors"
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
	s.oneShot = true
	ctx, cancel := s.limit(ctx)
	defer cancel()
	defer s.Close()
	if s.o.NoPipelining || !c.repeatable() {
		return s.Do(ctx, c)
	}
	return s.doEarly(ctx, c)
}

// repeatable reports whether a request may be sent twice, and so may be sent before it is
// certain that its answer can be delivered.
func (c Command) repeatable() bool { return c.Verb() == wire.VerbGet && c.effect == effectNone }

// An earlyRequest is a request that is sent together with SUBSCRIBE. Each attempt to connect
// sends a new one.
type earlyRequest struct {
	ctx     context.Context // with a deadline
	command Command
	r       *request // of the last attempt; nil if it was not sent
}

// message returns the message of an attempt, for mqtt.Options.Early.
func (e *earlyRequest) message(s *Session) (mqtt.EarlyMessage, error) {
	r := s.newRequest(e.ctx, e.command)
	if err := r.stamp(); err != nil {
		return mqtt.EarlyMessage{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r.add(nil)
	e.r = r
	return mqtt.EarlyMessage{Message: r.message(), Acked: r.handleAck, Answered: r.done}, nil
}

// setConn sets the connection that the last attempt made.
func (e *earlyRequest) setConn(conn *mqtt.Conn) {
	if e.r != nil {
		e.r.s.mu.Lock()
		defer e.r.s.mu.Unlock()
		e.r.conn = conn
	}
}

// doEarly connects and sends a request at the same time.
func (s *Session) doEarly(ctx context.Context, c Command) (Result, error) {
	early := &earlyRequest{ctx: ctx, command: c}
	conn, err := s.connect(ctx, early)
	r := early.r
	switch {
	case err != nil && r == nil:
		return nil, err
	case err != nil && ctx.Err() != nil && !errors.Is(err, context.DeadlineExceeded):
		return nil, context.Cause(ctx) // the wait was for the answer, not for the connection
	case err != nil:
		return nil, r.connectError(err)
	case r == nil: // the broker does not accept packets before its CONNACK
		return s.Do(ctx, c)
	}
	r.repeatWithoutAnswer(ctx, conn)
	return r.wait(ctx)
}

// connectError returns the error that Once would return if it sent one packet after the
// other. err is why there is no connection.
func (r *request) connectError(err error) error {
	r.s.finish(r.id, err)
	<-r.done
	// CONNACK announced the maximum size before the broker closed the connection.
	if tooLarge, ok := errors.AsType[*mqtt.TooLargeError](r.err); ok {
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

// repeatWithoutAnswer waits for the answer to a request that was sent with SUBSCRIBE. If none
// comes in four times the time that SUBACK took, it sends the request once more.
func (r *request) repeatWithoutAnswer(ctx context.Context, conn *mqtt.Conn) {
	const least = 250 * time.Millisecond
	t := time.NewTimer(max(4*time.Since(r.sent), least))
	defer t.Stop()
	select {
	case <-r.done:
	case <-ctx.Done():
	case <-t.C:
		if !r.hasNoSubscribers() {
			// If it cannot be sent, the connection or ctx has ended, which r.wait reports.
			_ = r.sendCopy(ctx, conn)
		}
	}
}
