package verb

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/cmd/sscli/internal/app"
	"github.com/sscli/sscli/cmd/sscli/internal/exchange"
	"github.com/sscli/sscli/cmd/sscli/internal/fault"
	"github.com/sscli/sscli/cmd/sscli/internal/suggest"
	"github.com/sscli/sscli/format"
	"github.com/sscli/sscli/internal/wire"
)

// Do connects, carries out a request from the command line, and prints its results. Before it
// connects for a write in a protected context, it asks for confirmation. Each attempt has one timeout,
// from connecting to the last reply, unless req.Run is set or the commands cannot be in flight together:
// then connecting has one, and each exchange.
func Do(ctx context.Context, a *app.App, req Request) error {
	if err := req.Check(a); err != nil {
		return err
	}
	if err := a.Settings.Broker(); err != nil || len(req.Commands) == 0 {
		return err
	}
	if what := req.Changes(); what != "" {
		if err := a.Confirm(ctx, what); err != nil {
			return err
		}
		a.Signals.Arm()
	} else if req.Replaces {
		a.Signals.Arm()
	}
	return a.WithBroker(func(o client.Options) error {
		for _, c := range req.Commands {
			a.RememberKey(c.Key())
		}
		alone := len(req.Commands) == 1 && req.Run == nil
		connect := a.Connect
		if alone {
			connect = a.Session // such a command may be sent together with CONNECT
		}
		began, ready := time.Now(), false
		err := connect(ctx, o, func(s *client.Session) error {
			ready = true
			limited, cancel := ctx, context.CancelFunc(func() {})
			if !alone && len(req.Commands) <= manyInFlight {
				left := o.Timeout
				if a.Settings.RetryFor == 0 {
					left -= time.Since(began)
				}
				limited, cancel = context.WithTimeout(ctx, left)
			}
			defer cancel()
			return doOver(ctx, limited, a, s, req)
		})
		if err != nil && !ready && len(req.Commands) == 1 {
			return fault.Describe(req.Commands[0], err)
		}
		return err
	})
}

// DoOver carries out a request over a session and prints its results. Each exchange has the session's timeout.
func DoOver(ctx context.Context, a *app.App, s *client.Session, req Request) error {
	return doOver(ctx, ctx, a, s, req)
}

// doOver is like DoOver. The context limited bounds sending several commands and waiting for their replies, but
// neither reading back nor req.Run.
func doOver(ctx, limited context.Context, a *app.App, s *client.Session, req Request) error {
	switch {
	case req.Run != nil:
		return req.Run(ctx, a, s)
	case len(req.Commands) != 1:
		return doMany(ctx, limited, a, s, req)
	}
	send := func(ctx context.Context) (client.Result, error) { return send(ctx, a, s, req) }
	return finish(a, req, 0, exchange.NewStore(a, s).Do(ctx, req.Commands[0], send))
}

// manyInFlight is the number of requests of one command that may be in flight.
const manyInFlight = 64

// doMany sends the commands of a request and prints their results and errors in the order of the
// commands. The first error determines the exit code. When as many commands in a row as may be in flight get no reply
// in time, nothing more is sent.
func doMany(ctx, limited context.Context, a *app.App, s *client.Session, req Request) error {
	a.Out.Measure(req.Rows...)
	unanswered := 0
	var first *fault.ExitError
	var no error
	w := exchange.NewWindow(exchange.NewBulk(a, s), exchange.Options{Limit: manyInFlight, Limited: limited}, func(i int, o exchange.Outcome) error {
		switch late := fault.IsTimeout(o.Err); {
		case late && fault.IsA[*client.LostReplyError](o.Err):
			unanswered++
		case late, !wire.Changes(req.Commands[i].Verb()) && fault.IsConnection(o.Err):
			unanswered = manyInFlight // it was not sent within a timeout, or, a GET, asked again for so long
		default:
			unanswered = 0
		}
		err := finish(a, req, i, o)
		switch {
		case err == nil:
		case errors.Is(err, fault.ErrNo):
			no = err
		case first != nil && ctx.Err() != nil && !fault.IsA[*fault.UnknownError](err):
			// Print an interruption only once, but every write with an unknown outcome.
		default:
			code := a.Fault(err)
			if first == nil {
				first = &fault.ExitError{Code: code, Err: err}
			} else if fault.IsA[*fault.UnknownError](err) {
				first.Err = errors.Join(first.Err, err) // so that a batch counts the line as unknown
			}
		}
		return nil
	})
	for i := range req.Commands {
		c := &req.Commands[i]
		if unanswered >= manyInFlight {
			_ = w.Place(ctx, i, exchange.Outcome{Err: fault.Describe(*c, context.DeadlineExceeded)}) // done returns no error
			continue
		}
		_ = w.Add(ctx, i, c)
	}
	_ = w.Finish(ctx, nil)
	if first != nil {
		return first
	}
	return no
}

// finish prints the result of the i-th command of a request, or returns its error.
func finish(a *app.App, req Request, i int, o exchange.Outcome) error {
	if o.Err != nil {
		return o.Err
	}
	printErr := o.Warn(a)
	result, err := Present(a, &req, i, o.Result)
	if err != nil && !errors.Is(err, fault.ErrNo) {
		return err
	}
	if printErr = cmp.Or(printErr, a.Emit(result)); printErr != nil {
		c := req.Commands[i]
		if e, ok := errors.AsType[*fault.OutputError](printErr); ok {
			e.Done = err == nil && wire.IsWrite(c.Verb())
		}
		return fault.Describe(c, printErr)
	}
	return err
}

// Present converts the result of the i-th command of a request for printing. If a missing key looks like a pattern, it
// prints a note. If it returns a result, the error is nil or [fault.ErrNo]. It returns none if there is no result.
func Present(a *app.App, req *Request, i int, result client.Result) (format.Result, error) {
	if result == nil {
		return nil, nil
	}
	c := &req.Commands[i]
	if isMissing(result) {
		a.NotePattern(c.Key(), patternUse(c.Verb()))
	}
	shown, yes, err := req.Result(c, result)
	return shown, cmp.Or(err, fault.NoIf(!yes))
}

// patternUse returns the command that does the same as verb, for all keys that match a pattern.
func patternUse(verb string) suggest.Hint {
	if verb == wire.VerbDel {
		return suggest.Try("`del --match PATTERN`")
	}
	return suggest.Try("`scan PATTERN --long`")
}

// isMissing reports whether a result says that the key does not exist.
func isMissing(result client.Result) bool {
	switch r := result.(type) {
	case client.GetResult:
		return !r.Found
	case client.DelResult:
		return !r.Deleted
	case client.VDelResult:
		return !r.Found
	}
	return false
}

// CheckSize returns the error that a SET would get because its key and its value alone exceed the
// broker's maximum packet size, or nil. It is for dry runs: a packet holds a few hundred bytes more, so
// the broker may still refuse a SET that passes. s must have had a connection.
func CheckSize(s *client.Session, set client.Command) error {
	if size, most := len(set.Key())+len(set.Value()), s.MaxPacketSize(); size > most {
		return fault.Describe(set, &client.TooLargeError{Size: size, Max: most})
	}
	return nil
}
