package batch

import (
	"context"
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/client/wait"
	"github.com/sscli/sscli/cmd/sscli/internal/explain"
	"github.com/sscli/sscli/cmd/sscli/internal/verb"
	"github.com/sscli/sscli/format"
)

// lastReplies is how long replies to what is under way are awaited after a signal.
const lastReplies = time.Second

// A sentLine is a line of a batch whose request is under way.
type sentLine struct {
	line batchLine
	req  verb.Request
	f    *client.InFlight // nil if nothing was sent
	err  error            // then why
	// Or this is no line: idle is told once all lines before have had their results,
	// whether the batch goes on, and over is closed when the printing is collect's again.
	idle chan<- bool
	over <-chan struct{}

	reply client.Result
	holds string // what to say of a write whose answer was lost and that holds
}

// A window runs lines with several under way at a time. The goroutine of pipelined
// reads lines and sends; the goroutine of collect prints results, in the order of the lines.
// While one waits for the other to be idle only the other prints.
type window struct {
	*batch
	stopped atomic.Bool // send no more
	pipe    *client.Pipeline
	queue   chan *sentLine
}

// pipelined runs lines with several under way.
func (b *batch) pipelined(ctx context.Context, lines *lineReader) {
	w := &window{batch: b, pipe: b.session.Pipeline(b.flags.inflight), queue: make(chan *sentLine, b.flags.inflight)}
	w.pipe.PauseAfterLoss() // no line is sent after a lost answer before that is looked into
	// After a signal the replies to what is under way may come still.
	requests, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancel(nil)
	defer context.AfterFunc(ctx, func() {
		if wait.For(requests, lastReplies) {
			cancel(context.Cause(ctx))
		}
	})()
	var collecting sync.WaitGroup
	collecting.Go(func() { w.collect(ctx) })
	w.send(ctx, requests, lines)
	close(w.queue)
	collecting.Wait()
}

// send reads lines and sends them, until there are no more or the batch has ended.
func (w *window) send(ctx, requests context.Context, lines *lineReader) {
	for !w.stopped.Load() {
		line, err := lines.next(ctx)
		if err == io.EOF {
			return
		}
		var req verb.Request
		var run func(context.Context) error
		if err == nil {
			req, run, err = w.parse(line)
		}
		if err != nil {
			w.queue <- &sentLine{line: line, err: err}
			if !w.flags.keepGoing && err != errNothing || line.end {
				return
			}
			continue
		}
		if run == nil && w.mayOverlap(req) {
			if err := w.confirm(ctx, req); err != nil {
				w.queue <- &sentLine{line: line, err: err}
				if !w.flags.keepGoing {
					return
				}
				continue
			}
			f, err := w.pipe.Send(requests, req.Commands[0])
			if err == errStopped {
				return
			}
			w.queue <- &sentLine{line: line, req: req, f: f, err: err}
			continue
		}
		if !w.apart(func() bool {
			w.echo(line)
			w.app.Line = line.number
			return w.report(ctx, line, w.carryOut(ctx, req, run, context.Cause(ctx)))
		}) {
			return
		}
	}
}

// apart runs do while nothing else is under way, unless the batch has ended.
func (w *window) apart(do func() bool) bool {
	idle, over := make(chan bool), make(chan struct{})
	defer close(over)
	w.queue <- &sentLine{idle: idle, over: over}
	return <-idle && do()
}

// errStopped is the error of a line that was not sent because the batch has ended.
var errStopped = errors.New("the batch has ended")

// stop ends the sending.
func (w *window) stop() {
	w.stopped.Store(true)
	w.pipe.Stop(errStopped)
}

// mayOverlap tells whether a request may be under way together with requests of other
// lines: one for one key.
func (w *window) mayOverlap(req verb.Request) bool {
	return len(req.Commands) == 1 && req.Carry == nil && !req.Alone && !req.Force
}

// collect prints the results of lines in their order. What has come is written
// before it waits for more.
func (w *window) collect(ctx context.Context) {
	for {
		var s *sentLine
		var ok bool
		select {
		case s, ok = <-w.queue:
		default:
			w.flushOrStop()
			s, ok = <-w.queue
		}
		if !ok {
			return
		}
		lines, lost := w.settle(ctx, s)
		for _, s := range lines {
			w.finish(ctx, s)
		}
		for range lost {
			w.pipe.Resume()
		}
	}
}

// flushOrStop ends the batch when results cannot be written; its end says so.
func (w *window) flushOrStop() {
	if !w.flush() {
		w.stop()
	}
}

// settle waits for the answer to a line. If it was lost, so were probably others: what
// became of them all is looked into together. It returns the lines whose outcome is known
// now, and how many of their answers were lost.
func (w *window) settle(ctx context.Context, s *sentLine) (lines []*sentLine, losses int) {
	if !w.await(s) {
		return []*sentLine{s}, 0
	}
	batch := []*sentLine{s}
	for more := true; more; {
		select {
		case next, ok := <-w.queue:
			if more = ok; ok {
				batch = append(batch, next)
			}
		default:
			more = false
		}
	}
	var looking sync.WaitGroup
	for _, s := range batch {
		if lost := w.await(s); lost {
			losses++
			looking.Go(func() {
				answer, _ := errors.AsType[*client.LostAnswerError](s.err)
				s.reply, s.holds, s.err = verb.LookInto(ctx, answer, w.budget, w.session.ReadBack)
			})
		}
	}
	looking.Wait()
	return batch, losses
}

// await waits for the answer and tells whether it was lost.
func (w *window) await(s *sentLine) (lost bool) {
	if s.f != nil {
		select {
		case <-s.f.Done():
		default:
			w.flushOrStop()
		}
		s.reply, s.err = s.f.Wait()
	}
	return explain.IsA[*client.LostAnswerError](s.err)
}

// hasMore reports whether the reply says something beside its result.
func (s *sentLine) hasMore() bool {
	return s.reply != nil && len(s.reply.Info().Warnings)+len(s.reply.Info().Notes) > 0
}

// finish prints the result of a line.
func (w *window) finish(ctx context.Context, s *sentLine) {
	if s.idle != nil {
		w.flushOrStop()
		s.idle <- !w.stopped.Load()
		<-s.over
		return
	}
	w.echo(s.line)
	w.app.Line = s.line.number
	var result format.Result
	err := s.err
	if s.f != nil {
		if s.holds != "" || s.hasMore() {
			w.flushOrStop()
		}
		if s.holds != "" {
			w.app.Warn(s.holds, "")
		}
		result, err = verb.Judge(w.app, s.req, 0, s.reply, s.err)
	} else if len(s.req.Commands) > 0 {
		err = explain.Describe(s.req.Commands[0], err)
	}
	if result != nil {
		if queueErr := w.app.Queue(result); queueErr != nil {
			err = queueErr
		}
	}
	if !w.report(ctx, s.line, err) {
		w.stop()
	}
}
