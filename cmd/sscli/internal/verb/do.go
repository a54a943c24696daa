package verb

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/cmd/sscli/internal/app"
	"github.com/sscli/sscli/cmd/sscli/internal/bulkread"
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
	if what := req.Writes(); what != "" {
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
		return a.Reach(ctx, a.Settings.RetryFor, func(reached func()) error { return attempt(ctx, a, o, req, reached) })
	})
}

// attempt carries out a request over a session of its own, or over the shell's. It calls reached when it
// has connected, unless the request is a single command, which a.Reach may repeat if no write was sent.
// Such a command may be sent together with CONNECT.
func attempt(ctx context.Context, a *app.App, o client.Options, req Request, reached func()) error {
	limited, cancel := context.WithTimeout(ctx, o.Timeout)
	defer cancel()
	alone := len(req.Commands) == 1 && req.Run == nil
	connect := a.Connect
	if alone && !tracesSteps(a, o) {
		connect = a.Session
	}
	ready := false
	err := connect(limited, o, func(s *client.Session) error {
		ready = true
		if !alone {
			reached()
		}
		return doOver(ctx, limited, a, s, req)
	})
	if err != nil && !ready && len(req.Commands) == 1 {
		return fault.Describe(req.Commands[0], err)
	}
	return err
}

// DoOver carries out a request over a session and prints its results. Each exchange has the
// session's timeout. --timeout limits the reading back of writes whose replies were lost and, without
// --retry-for, the repetition of GETs whose replies were lost.
func DoOver(ctx context.Context, a *app.App, s *client.Session, req Request) error {
	return doOver(ctx, ctx, a, s, req)
}

// doOver is like DoOver. The context limited bounds sending the commands and waiting for their replies,
// but neither reading back nor req.Run.
func doOver(ctx, limited context.Context, a *app.App, s *client.Session, req Request) error {
	switch {
	case req.Run != nil:
		return req.Run(ctx, a, s) // with a timeout for each exchange
	case len(req.Commands) != 1:
		return doMany(ctx, limited, a, s, req)
	}
	var answer Answer
	answer.Reply, answer.Err = send(limited, a, s, req)
	answer.Err = bulkread.Unanswered(ctx, s, req.Commands[0], answer.Err)
	recoverLost(ctx, a, s, &answer)
	return finish(a, req, 0, &answer)
}

// recoverLost prints a note for each lost reply, and then calls Recover.
func recoverLost(ctx context.Context, a *app.App, s *client.Session, answers ...*Answer) {
	for _, answer := range answers {
		if lost := answer.Lost(); lost != nil && ctx.Err() == nil {
			a.Note(lost.Error() + "; reading back")
		}
	}
	Recover(ctx, s, answers, a.Timeout())
}

// manyInFlight is the number of requests of one command that may be in flight.
const manyInFlight = 64

// doMany sends the commands of a request and prints their results and errors in the order of the
// commands. The first error determines the exit code. If the reply to a write is lost, doMany waits for all
// other replies, and then recovers all writes whose replies were lost, within one timeout. It sends a
// GET again if the reply to the GET was lost.
func doMany(ctx, limited context.Context, a *app.App, s *client.Session, req Request) error {
	type sent struct {
		command client.Command
		f       *client.InFlight
		err     error
		at      time.Time
	}
	if len(req.Commands) > manyInFlight {
		limited = ctx // how long so many commands take depends on their number; each request has the session's timeout
	}
	limited, stop := context.WithCancelCause(limited)
	defer stop(nil)
	unanswered := 0 // the last commands that got no answer in time; a whole window of them stops the sending
	p, reads := s.Pipeline(manyInFlight), bulkread.NewStore(a, s)
	a.Out.Measure(req.Rows...)
	// The queue limits how far the sender is ahead of the printer.
	queue := make(chan sent, manyInFlight)
	go func() {
		defer close(queue)
		for _, c := range req.Commands {
			at := time.Now()
			f, err := p.Queue(limited, c)
			queue <- sent{c, f, err, at}
		}
		p.Flush()
	}()
	next := func() *Answer {
		item := <-queue
		answer := &Answer{Err: item.err}
		if item.err == nil {
			answer.Reply, answer.Err = item.f.Wait(context.Background())
		}
		if item.command.Verb() == wire.VerbGet {
			answer.Reply, answer.Err = reads.Again(ctx, item.command, item.at, answer.Reply, answer.Err)
		}
		switch late := fault.IsTimeout(answer.Err); {
		case late && answer.Lost() != nil:
			unanswered++
		case late, item.command.Verb() == wire.VerbGet && bulkread.IsConnection(answer.Err):
			unanswered = manyInFlight // it was not sent within a timeout, or, a GET, asked again for so long
		default:
			unanswered = 0
		}
		if unanswered >= manyInFlight {
			stop(context.DeadlineExceeded)
		}
		return answer
	}
	var answers []*Answer // answers not yet printed, from the first lost reply on
	var first *fault.ExitError
	var no error
	for i := range req.Commands {
		var answer *Answer
		if len(answers) == 0 {
			if answer = next(); answer.Lost() != nil {
				for answers = append(answers, answer); i+len(answers) < len(req.Commands); {
					answers = append(answers, next())
				}
				recoverLost(ctx, a, s, answers...)
			}
		}
		if len(answers) > 0 {
			answer, answers = answers[0], answers[1:]
		}
		err := finish(a, req, i, answer)
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
	}
	if first != nil {
		return first
	}
	return no
}

// finish prints the result of the i-th command of a request, or returns its error.
func finish(a *app.App, req Request, i int, answer *Answer) error {
	if answer.Warning != "" {
		a.Warn(answer.Warning, "")
	}
	result, err := Present(a, &req, i, answer.Reply, answer.Err)
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

// Present turns the reply to the i-th command of a request into a result, and prints the warnings
// and notes of the reply. If it returns a result, the error is nil or [fault.ErrNo].
func Present(a *app.App, req *Request, i int, reply client.Result, err error) (format.Result, error) {
	if err != nil {
		return nil, fault.Describe(req.Commands[i], err)
	}
	if reply == nil {
		return nil, nil // after Recover: the key is gone, and there is no result to print
	}
	a.WarnOf(reply.Info())
	c := &req.Commands[i]
	if isMissing(reply) {
		a.NotePattern(c.Key(), patternUse(c.Verb()))
	}
	result, yes, err := req.Result(c, reply)
	return result, cmp.Or(err, fault.NoIf(!yes))
}

// patternUse returns the command that does the same as verb, for all keys that match a pattern.
func patternUse(verb string) suggest.Hint {
	if verb == wire.VerbDel {
		return suggest.Try("`del --match PATTERN`")
	}
	return suggest.Try("`scan PATTERN --long`")
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
// a trace shows each cause before its effect. With --no-pipelining=false the request is pipelined
// even with a trace.
func tracesSteps(a *app.App, o client.Options) bool {
	return o.Trace != nil && a.Settings.Sources["no-pipelining"] == ""
}
