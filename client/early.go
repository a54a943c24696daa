package client

import (
	"context"
	"errors"
	"time"

	"github.com/sscli/sscli/internal/mqtt"
	"github.com/sscli/sscli/internal/wire"
)

// repeatable reports whether a request may be sent twice. Only a repeatable request may be sent
// before SUBACK, because its reply may then be lost.
func (c Command) repeatable() bool { return c.Verb() == wire.VerbGet && c.effect == effectNone }

// An earlyRequest is a request that is sent together with SUBSCRIBE. Each attempt to connect
// sends a new request.
type earlyRequest struct {
	ctx     context.Context // has a deadline
	command Command
	r       *request // the last attempt's request; nil if none was sent
}

// message returns the message that an attempt to connect sends early, for mqtt.Options.Early.
func (e *earlyRequest) message(s *Session) mqtt.EarlyMessage {
	r := s.newRequest(e.ctx, e.command)
	r.stamp()
	s.mu.Lock()
	defer s.mu.Unlock()
	r.add(nil)
	e.r = r
	return mqtt.EarlyMessage{Message: r.message(), Acked: r.handleAck, Answered: r.done}
}

// setConn records the connection that the last attempt made.
func (e *earlyRequest) setConn(conn *mqtt.Conn) {
	if e.r != nil {
		e.r.s.mu.Lock()
		defer e.r.s.mu.Unlock()
		e.r.conn = conn
	}
}

// doEarly connects and sends the request in one write with CONNECT and SUBSCRIBE. If the broker has
// several nodes, it may process the request before all nodes know of the subscription; the reply is then
// lost. So doEarly sends the request again if no reply comes for a while after SUBACK.
func (s *Session) doEarly(ctx context.Context, c Command) (Result, error) {
	early := &earlyRequest{ctx: ctx, command: c}
	conn, err := s.connect(ctx, early)
	r := early.r
	switch {
	case err != nil && r == nil:
		return nil, err
	case err != nil && ctx.Err() != nil && !errors.Is(err, context.DeadlineExceeded):
		return nil, context.Cause(ctx) // the caller canceled the request; that no connection was made is a consequence
	case err != nil:
		return nil, r.connectError(err)
	case r == nil: // another goroutine has connected, or the broker does not accept packets before its CONNACK
		if r, err = s.send(ctx, c); err != nil {
			return nil, err
		}
		return r.waitOrAbandon(ctx)
	}
	r.repeatWithoutReply(ctx, conn)
	return r.waitOrAbandon(ctx)
}

// connectError returns the error that doEarly would return if it waited for each reply before it sent
// the next packet. err says why there is no connection.
func (r *request) connectError(err error) error {
	r.s.finish(r.id, err)
	<-r.done
	// If the request exceeds the Maximum Packet Size in CONNACK, that is why the broker disconnected.
	if tooLarge, ok := errors.AsType[*mqtt.TooLargeError](r.err); ok {
		return tooLarge
	}
	failed, ok := errors.AsType[*mqtt.DialError](err)
	if !ok || failed.Stage != mqtt.StageSubscribe {
		return err
	}
	if lost, ok := errors.AsType[*mqtt.LostError](err); ok {
		return lost // a refused SUBSCRIBE would come as a SUBACK
	}
	return err
}

// repeatWithoutReply waits for the reply to a request that was sent with SUBSCRIBE. It sends the
// request once more if no reply comes within 250 ms, or within four times the time that SUBACK took
// if that is longer. While bytes arrive, they may be a large reply, and it waits on.
func (r *request) repeatWithoutReply(ctx context.Context, conn *mqtt.Conn) {
	const least = 250 * time.Millisecond
	patience := max(4*time.Since(r.sent), least)
	t := time.NewTimer(patience)
	defer t.Stop()
	for {
		select {
		case <-r.done:
			return
		case <-ctx.Done():
			return
		case <-t.C:
		}
		if silent := time.Since(conn.LastReceived()); silent < patience {
			t.Reset(patience - silent)
			continue
		}
		if !r.hasNoSubscribers() {
			// After an error the connection or ctx has ended, which r.wait reports.
			_ = r.sendCopy(ctx, conn)
		}
		return
	}
}
