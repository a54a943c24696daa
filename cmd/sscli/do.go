package main

import (
	"context"
	"errors"
	"time"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/client/wire"
	"github.com/sscli/sscli/format"
)

// do carries a request of the command line, all of it within one time-out.
func (a *app) do(ctx context.Context, req request) (err error) {
	for _, c := range req.commands {
		if err := c.Check(); err != nil {
			return &usageError{err: err}
		}
	}
	if err := a.settings.Broker(); err != nil {
		return err
	}
	if what := req.writes(); what != "" {
		if err := a.confirm(ctx, what); err != nil {
			return err
		}
	}
	o, undo, err := a.broker()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, undo()) }()
	limited, cancel := context.WithTimeout(ctx, o.Timeout)
	defer cancel()
	for _, c := range req.commands {
		a.saw(c.Key())
	}
	if len(req.commands) == 1 && req.carry == nil && a.shell == nil && !a.tracesSteps(o) {
		reply, err := a.carry(limited, func(ctx context.Context, c client.Command) (client.Result, error) {
			return client.Once(ctx, o, c)
		}, req)
		return a.finish(ctx, req, 0, reply, err, o.Timeout, func(ctx context.Context, lost *client.LostAnswerError) (client.ReadBackResult, error) {
			return client.ReadBack(ctx, o, lost)
		})
	}
	s, hangUp, err := a.dial(limited, o)
	if err != nil && len(req.commands) == 1 {
		return describe(req.commands[0], err)
	} else if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, hangUp()) }()
	if req.carry != nil {
		return req.carry(ctx, s, a.out) // with a time-out for each exchange
	}
	if len(req.commands) == 1 {
		reply, err := a.carry(limited, s.Do, req)
		return a.finish(ctx, req, 0, reply, err, o.Timeout, s.ReadBack)
	}
	return a.doMany(ctx, limited, s, req, o.Timeout)
}

// manyInFlight is how many requests of one command are under way at a time.
const manyInFlight = 64

// doMany carries several commands over one session and prints the results in
// their order as they come. An error is printed where it comes, and the first
// gives the exit code.
func (a *app) doMany(ctx, limited context.Context, s *client.Session, req request, budget time.Duration) error {
	type sent struct {
		f   *client.InFlight
		err error
	}
	// The sender stays at most the queue's length ahead of the printer.
	queue := make(chan sent, manyInFlight)
	go func() {
		defer close(queue)
		p := s.Pipeline(manyInFlight)
		for _, c := range req.commands {
			f, err := p.Send(limited, c)
			queue <- sent{f, err}
		}
	}()
	var first, no error
	for i := 0; i < len(req.commands); i++ {
		item := <-queue
		var reply client.Result
		err := item.err
		if err == nil {
			reply, err = item.f.Wait()
		}
		err = a.finish(ctx, req, i, reply, err, budget, s.ReadBack)
		switch {
		case err == nil:
		case errors.Is(err, errNo):
			no = err
		case first != nil && ctx.Err() != nil && !isA[*unknownError](err):
			// A signal is told of once, but every write that is left open.
		default:
			if code := a.fault(err); first == nil {
				first = &exitError{code, err}
			}
		}
	}
	if first != nil {
		return first
	}
	return no
}

// A readBack finds out what became of a write.
type readBack func(context.Context, *client.LostAnswerError) (client.ReadBackResult, error)

// finish prints the reply to the i-th command of a request. If the answer to a
// write was lost, it looks for what became of it first, on a second time-out
// that begins when the broker no longer accepts the request.
func (a *app) finish(ctx context.Context, req request, i int, reply client.Result, err error, budget time.Duration, back readBack) error {
	if lost, ok := errors.AsType[*client.LostAnswerError](err); ok {
		reply, err = a.settle(ctx, lost, budget, back)
	}
	result, err := a.judge(req, i, reply, err)
	if err != nil && !errors.Is(err, errNo) {
		return err
	}
	if printErr := a.emit(result); printErr != nil {
		c := req.commands[i]
		if e, ok := errors.AsType[*outputError](printErr); ok {
			e.done = err == nil && isWrite(c.Verb())
		}
		return describe(c, printErr)
	}
	return err
}

// judge makes a result of the reply to the i-th command of a request; with one the
// error is nil or errNo.
func (a *app) judge(req request, i int, reply client.Result, err error) (format.Result, error) {
	if err != nil {
		return nil, describe(req.commands[i], err)
	}
	if reply == nil {
		return nil, nil // settled: the key is gone, which needs no result
	}
	a.attend(reply.Info())
	result, yes, err := req.show(i, reply)
	if err == nil && !yes {
		err = errNo
	}
	return result, err
}

// isWrite tells whether a verb changes keys.
func isWrite(verb string) bool {
	switch verb {
	case wire.VerbSet, wire.VerbDel, wire.VerbVDel:
		return true
	}
	return false
}
