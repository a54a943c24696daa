package main

import (
	"context"
	"errors"
	"fmt"
	"text/template"
	"time"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/format"
)

// do carries a request of the command line, all of it within one time-out.
func (a *app) do(ctx context.Context, req request) (err error) {
	for _, c := range req.commands {
		if err := c.Check(); err != nil {
			return &usageError{err: err}
		}
	}
	o, undo, err := a.broker()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, undo()) }()
	limited, cancel := context.WithTimeout(ctx, o.Timeout)
	defer cancel()
	if len(req.commands) == 1 {
		reply, err := a.carry(limited, func(ctx context.Context, c client.Command) (client.Reply, error) {
			return client.Once(ctx, o, c)
		}, req)
		return a.finish(ctx, req, 0, reply, err, o.Timeout, func(ctx context.Context, lost *client.LostAnswerError) (client.Outcome, client.Reply, error) {
			return client.ReadBack(ctx, o, lost)
		})
	}
	s, err := client.Dial(limited, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
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
		var reply client.Reply
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
type readBack func(context.Context, *client.LostAnswerError) (client.Outcome, client.Reply, error)

// finish prints the reply to the i-th command of a request. If the answer to a
// write was lost, it looks for what became of it first, on a second time-out
// that begins when the broker no longer accepts the request.
func (a *app) finish(ctx context.Context, req request, i int, reply client.Reply, err error, budget time.Duration, back readBack) error {
	c := req.commands[i]
	if lost, ok := errors.AsType[*client.LostAnswerError](err); ok {
		reply, err = a.settle(ctx, lost, budget, back)
		if err == nil && reply.Value.Kind == 0 {
			return nil // gone, which needs no result
		}
	}
	if err != nil {
		return describe(c, err)
	}
	a.attend(reply)
	result, yes, err := req.show(i, reply)
	if err != nil {
		return err
	}
	if err := a.emit(result); err != nil {
		return err
	}
	if !yes {
		return errNo
	}
	return nil
}

// emit prints a result on standard output, if there is one.
func (a *app) emit(result format.Result) error {
	if result == nil {
		return nil
	}
	if err := a.out.Print(result); err != nil {
		return &outputError{err}
	}
	return nil
}

// An outputError is a result that could not be printed.
type outputError struct{ err error }

func (e *outputError) Error() string {
	if isA[template.ExecError](e.err) {
		return e.err.Error()
	}
	return "standard output: " + e.err.Error()
}

func (e *outputError) Unwrap() error { return e.err }

// describe says what an error is about. A lost answer says it itself.
func describe(c client.Command, err error) error {
	if c.Key() == "" {
		return fmt.Errorf("%s: %w", lower(c.Verb()), err)
	}
	return fmt.Errorf("%s %s: %w", lower(c.Verb()), shownKey(c.Key()), err)
}
