package batch

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/client/wait"
	"github.com/sscli/sscli/cmd/sscli/internal/fault"
	"github.com/sscli/sscli/cmd/sscli/internal/verb"
	"github.com/sscli/sscli/format"
)

// lastReplies is how long replies to what is under way are awaited after a signal.
const lastReplies = time.Second

// A pendingLine is a line of a batch that has no result yet.
type pendingLine struct {
	line batchLine
	req  verb.Request
	run  func(context.Context) error // for a line that is not a request
	f    *client.InFlight            // nil if nothing was sent
	room []client.Command            // of a line that was finished; its memory can be used again
	err  error                       // then why

	reply client.Result
	holds string // what to say of a write whose answer was lost and that holds
}

// A window runs lines with several under way at a time. It prints results as soon as it is
// their turn, sends lines as long as there is room, and waits only when it can do neither.
// Requests and results that are known by then share a write.
type window struct {
	*batch
	pipe     *client.Pipeline
	lines    *lineReader
	underWay []*pendingLine // in the order of the lines
	next     *pendingLine   // was read, and cannot run yet; nil if there is none
	spare    []*pendingLine // whose memory can be used again
	losses   int            // lost answers that were looked into
	over     bool           // no more lines are read or sent
}

// pipelined runs lines with several under way.
func (b *batch) pipelined(ctx context.Context, lines *lineReader) {
	w := &window{batch: b, pipe: b.session.Pipeline(b.flags.inflight), lines: lines}
	w.pipe.OnWait(w.flushOrEnd)
	// After a signal the replies to what is under way may come still.
	requests, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancel(nil)
	defer context.AfterFunc(ctx, func() {
		if wait.For(requests, lastReplies) {
			cancel(context.Cause(ctx))
		}
	})()
	for {
		switch {
		case w.finishFirst(ctx), w.begin(ctx, requests):
		case w.over && len(w.underWay) == 0:
			return
		default:
			w.wait(ctx)
		}
	}
}

// finishFirst prints the result of the first line under way, and reports whether it has one.
func (w *window) finishFirst(ctx context.Context) bool {
	if len(w.underWay) == 0 || w.underWay[0].f != nil && !w.underWay[0].f.Over() {
		return false
	}
	first := w.underWay[0]
	if !first.await() {
		w.underWay[0] = nil
		w.underWay = w.underWay[1:]
		w.finish(ctx, first)
		w.spare = append(w.spare, first)
		return true
	}
	lines := w.underWay
	w.underWay = nil
	w.settle(ctx, lines)
	for _, l := range lines {
		w.finish(ctx, l)
	}
	return true
}

// begin reads a line, or takes the one that had to wait, and runs it if it may run now. It
// reports whether there is anything new. No line is sent after a lost answer before that is
// looked into.
func (w *window) begin(ctx, requests context.Context) bool {
	if w.over || len(w.underWay) == w.flags.inflight || w.pipe.Losses() > w.losses {
		return false
	}
	if w.next == nil && !w.read(ctx) {
		return false
	}
	l := w.next
	if l.err == nil {
		l.err = context.Cause(ctx)
		l.line.end = l.err != nil
	}
	switch {
	case l.err != nil:
		l.req = verb.Request{} // so that finish does not describe it as sent
	case !l.overlaps():
		if len(w.underWay) > 0 {
			return false
		}
		if w.flushOrEnd(); w.over {
			return true
		}
		w.next = nil
		w.echo(l.line)
		w.app.Line = l.line.number
		w.end(!w.report(ctx, l.line, w.carryOut(ctx, l.req, l.run, nil)))
		return true
	case w.pipe.Busy(l.req.Commands[0].Key()) != nil:
		return false
	default:
		if l.err = w.confirm(ctx, &l.req); l.err != nil {
			l.req = verb.Request{}
			break
		}
		l.f, l.err = w.pipe.Queue(requests, l.req.Commands[0])
	}
	w.next = nil
	w.underWay = append(w.underWay, l)
	w.end(l.err != nil && l.err != errNothing && !w.flags.keepGoing || l.line.end)
	return true
}

// read reads the next line if there is one already, and reports whether there is.
func (w *window) read(ctx context.Context) bool {
	line, ok, err := w.lines.ready(ctx)
	if err == io.EOF {
		w.over = true
	}
	if !ok || err == io.EOF {
		return false
	}
	l := w.newLine()
	if l.line, l.err = line, err; err == nil {
		l.req, l.run, l.err = w.parse(line, l.room[:0])
	}
	w.next = l
	return true
}

// newLine returns a line without content.
func (w *window) newLine() *pendingLine {
	last := len(w.spare) - 1
	if last < 0 {
		return new(pendingLine)
	}
	l := w.spare[last]
	w.spare = w.spare[:last]
	*l = pendingLine{room: l.req.Commands}
	return l
}

// end ends the sending if ended is true.
func (w *window) end(ended bool) { w.over = w.over || ended }

// overlaps reports whether a request may be under way together with requests of other lines:
// one for one key.
func (l *pendingLine) overlaps() bool {
	return l.run == nil && len(l.req.Commands) == 1 && l.req.Carry == nil && !l.req.Alone && !l.req.Force
}

// wait writes what is known so far and waits until there is anything new.
func (w *window) wait(ctx context.Context) {
	w.pipe.Flush()
	w.flushOrEnd()
	var first, busy <-chan struct{}
	if len(w.underWay) > 0 {
		first = w.underWay[0].f.Done()
	}
	var more <-chan struct{}
	var interrupted <-chan struct{}
	if !w.over && len(w.underWay) < w.flags.inflight && w.pipe.Losses() == w.losses {
		switch {
		case w.next == nil:
			more, interrupted = w.lines.more, ctx.Done()
		case w.next.overlaps():
			interrupted = ctx.Done()
			if f := w.pipe.Busy(w.next.req.Commands[0].Key()); f != nil {
				busy = f.Done()
			} else {
				return
			}
		}
	}
	if first == nil && more == nil && busy == nil {
		return // the batch has just ended
	}
	select {
	case <-first:
	case <-busy:
	case <-more:
	case <-interrupted:
	}
}

// flushOrEnd ends the batch when results cannot be written; its end says so.
func (w *window) flushOrEnd() {
	w.end(!w.flush())
}

// settle waits for the answers to lines of which the first was lost. If one was lost, so
// were probably others: what became of them all is looked into together.
func (w *window) settle(ctx context.Context, lines []*pendingLine) {
	w.flushOrEnd()
	var looking sync.WaitGroup
	for _, l := range lines {
		if !l.await() {
			continue
		}
		w.losses++
		looking.Go(func() {
			answer, _ := errors.AsType[*client.LostAnswerError](l.err)
			l.reply, l.holds, l.err = verb.LookInto(ctx, answer, w.budget, w.session.ReadBack)
		})
	}
	looking.Wait()
}

// await waits for the answer and reports whether it was lost.
func (l *pendingLine) await() (lost bool) {
	if l.f != nil {
		l.reply, l.err = l.f.Wait()
	}
	return fault.IsA[*client.LostAnswerError](l.err)
}

// hasMore reports whether the reply says something beside its result.
func (l *pendingLine) hasMore() bool {
	if l.reply == nil {
		return false
	}
	info := l.reply.Info()
	return len(info.Warnings)+len(info.Notes) > 0
}

// finish prints the result of a line.
func (w *window) finish(ctx context.Context, l *pendingLine) {
	w.echo(l.line)
	w.app.Line = l.line.number
	var result format.Result
	err := l.err
	if l.f != nil {
		if l.holds != "" || l.hasMore() {
			w.flushOrEnd()
		}
		if l.holds != "" {
			w.app.Warn(l.holds, "")
		}
		result, err = verb.Judge(w.app, &l.req, 0, l.reply, l.err)
	} else if len(l.req.Commands) > 0 {
		err = fault.Describe(l.req.Commands[0], err)
	}
	if result != nil && !w.flags.silent {
		if queueErr := w.app.Queue(result); queueErr != nil {
			err = queueErr
		}
	}
	w.end(!w.report(ctx, l.line, err))
}
