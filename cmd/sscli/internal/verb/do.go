package verb

import (
	"context"
	"errors"
	"time"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/client/wire"
	"github.com/sscli/sscli/cmd/sscli/internal/app"
	"github.com/sscli/sscli/cmd/sscli/internal/fault"
	"github.com/sscli/sscli/format"
)

// Do connects, carries out a request of the command line, and prints its results. The timeout
// is for all of it. A write in a protected context is confirmed first.
func Do(a *app.App, ctx context.Context, req Request) (err error) {
	if err := req.Check(a.Output); err != nil {
		return err
	}
	if err := a.Settings.Broker(); err != nil {
		return err
	}
	if what := req.Writes(); what != "" {
		if err := a.Confirm(ctx, what); err != nil {
			return err
		}
	}
	o, undo, err := a.Broker()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, undo()) }()
	limited, cancel := context.WithTimeout(ctx, o.Timeout)
	defer cancel()
	for _, c := range req.Commands {
		a.Saw(c.Key())
	}
	if len(req.Commands) == 1 && req.Carry == nil && a.Shell == nil && !tracesSteps(a, o) {
		reply, err := Carry(a, limited, func(ctx context.Context, c client.Command) (client.Result, error) {
			return client.Once(ctx, o, c)
		}, req)
		return Finish(a, ctx, req, 0, reply, err, o.Timeout, func(ctx context.Context, lost *client.LostAnswerError) (client.ReadBackResult, error) {
			return client.ReadBack(ctx, o, lost)
		})
	}
	s, hangUp, err := a.Dial(limited, o)
	if err != nil && len(req.Commands) == 1 {
		return fault.Describe(req.Commands[0], err)
	} else if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, hangUp()) }()
	if req.Carry != nil {
		return req.Carry(ctx, a, s) // with a timeout for each exchange
	}
	if len(req.Commands) == 1 {
		reply, err := Carry(a, limited, s.Do, req)
		return Finish(a, ctx, req, 0, reply, err, o.Timeout, s.ReadBack)
	}
	return DoMany(a, ctx, limited, s, req, o.Timeout)
}

// manyInFlight is the number of requests of one command that may be under way.
const manyInFlight = 64

// DoMany sends the commands of a request over one session and prints the results in the order
// of the commands. Errors are printed in that order too, and the first gives the exit code.
// limited bounds the requests, ctx and budget bound reading back a lost write.
func DoMany(a *app.App, ctx, limited context.Context, s *client.Session, req Request, budget time.Duration) error {
	type sent struct {
		f   *client.InFlight
		err error
	}
	a.Out.Measure(req.Rows...)
	// The sender stays at most the queue's length ahead of the printer.
	queue := make(chan sent, manyInFlight)
	go func() {
		defer close(queue)
		p := s.Pipeline(manyInFlight)
		for _, c := range req.Commands {
			f, err := p.Queue(limited, c)
			queue <- sent{f, err}
		}
		p.Flush()
	}()
	var first *fault.ExitError
	var no error
	for i := 0; i < len(req.Commands); i++ {
		item := <-queue
		var reply client.Result
		err := item.err
		if err == nil {
			reply, err = item.f.Wait()
		}
		err = Finish(a, ctx, req, i, reply, err, budget, s.ReadBack)
		switch {
		case err == nil:
		case errors.Is(err, fault.ErrNo):
			no = err
		case first != nil && ctx.Err() != nil && !fault.IsA[*fault.UnknownError](err):
			// An interruption is printed once, but each write with an unknown outcome is.
		default:
			code := a.Fault(err)
			if first == nil {
				first = &fault.ExitError{Code: code, Err: err}
			} else if fault.IsA[*fault.UnknownError](err) {
				first.Err = errors.Join(first.Err, err) // a batch counts the line as unknown
			}
		}
	}
	if first != nil {
		return first
	}
	return no
}

// A readBack finds out whether a write was applied.
type readBack func(context.Context, *client.LostAnswerError) (client.ReadBackResult, error)

// Finish prints the reply to the i-th command of a request, or returns its error. If the reply to
// a write was lost, it first reads the key back: a second timeout of budget, which begins when
// the broker no longer accepts the request.
func Finish(a *app.App, ctx context.Context, req Request, i int, reply client.Result, err error, budget time.Duration, back readBack) error {
	if lost, ok := errors.AsType[*client.LostAnswerError](err); ok {
		reply, err = settle(a, ctx, lost, budget, back)
	}
	result, err := Judge(a, &req, i, reply, err)
	if err != nil && !errors.Is(err, fault.ErrNo) {
		return err
	}
	if printErr := a.Emit(result); printErr != nil {
		c := req.Commands[i]
		if e, ok := errors.AsType[*fault.OutputError](printErr); ok {
			e.Done = err == nil && isWrite(c.Verb())
		}
		return fault.Describe(c, printErr)
	}
	return err
}

// Judge turns the reply to the i-th command of a request into a result. Besides a result the
// error is nil or [fault.ErrNo].
func Judge(a *app.App, req *Request, i int, reply client.Result, err error) (format.Result, error) {
	if err != nil {
		return nil, fault.Describe(req.Commands[i], err)
	}
	if reply == nil {
		return nil, nil // read back: the key is gone, and there is no result to print
	}
	app.Attend(a, reply.Info())
	c := &req.Commands[i]
	if isMissing(reply) {
		app.NotePattern(a, c.Key())
	}
	if req.Replaces {
		a.Signals.Heed()
	}
	result, yes, err := req.Show(c, reply)
	if err == nil && !yes {
		err = fault.ErrNo
	}
	return result, err
}

// isMissing reports whether a reply says that the key does not exist.
func isMissing(reply client.Result) bool {
	switch r := reply.(type) {
	case client.GetResult:
		return !r.Found
	case client.DelResult:
		return !r.Deleted
	case client.VDelResult:
		return !r.Found
	}
	return false
}

// isWrite reports whether a verb is a write that sscli knows.
func isWrite(verb string) bool {
	switch verb {
	case wire.VerbSet, wire.VerbDel, wire.VerbVDel:
		return true
	}
	return false
}

// tracesSteps reports whether to send a request only once the session is established, so that
// a trace shows each cause before its effect. --no-pipelining=false traces the pipelined form.
func tracesSteps(a *app.App, o client.Options) bool {
	return o.Trace != nil && a.Settings.Sources["no-pipelining"] == ""
}
