package batch

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/cmd/sscli/internal/fault"
	"github.com/sscli/sscli/cmd/sscli/internal/lineinput"
	"github.com/sscli/sscli/cmd/sscli/internal/verb"
	"github.com/sscli/sscli/format"
	"github.com/sscli/sscli/internal/wait"
)

// lastReplies is how long a batch waits for outstanding replies after a signal.
const lastReplies = time.Second

// A pendingLine is a line whose result has not been printed.
type pendingLine struct {
	line   lineinput.Line
	before *client.InFlight // a GET of the value that the line overwrites; may be nil
	task
	f *client.InFlight // nil if nothing was sent
	verb.Answer
}

// A pipeline runs several lines at a time. It prints results in the order of the lines, and sends
// lines while fewer than --inflight are in flight. When it can do neither, it flushes the queued
// requests and results, and waits.
type pipeline struct {
	*batch
	pipe      *client.Pipeline
	lines     <-chan lineinput.Line // nil after the last line
	lookahead int                   // maximum length of next
	next      []*pendingLine        // lines that were read but not started yet, in order
	underWay  []*pendingLine        // lines that were started but not printed yet, in order
	spare     []*pendingLine        // for reuse
	losses    int                   // number of lost replies to writes that recoverLost has handled
	over      bool                  // no more lines are read or sent

	latest map[string]*pendingLine // with LoadOptions.Newer, for each key of lines without a result, the last of them
	own    writes                  // with LoadOptions.Newer, the writes of earlier lines
}

// pipelined runs lines, several at a time. It returns the number of lines that it read but did not start.
func (b *batch) pipelined(ctx context.Context, lines <-chan lineinput.Line) (unstarted int) {
	p := &pipeline{batch: b, lines: lines, lookahead: 1}
	requests := b.flags.Inflight
	if b.flags.Newer {
		p.lookahead = requests
		requests *= 2 // a GET and a SET for each line
		p.latest = make(map[string]*pendingLine)
	}
	p.pipe = b.session.Pipeline(requests)
	p.pipe.OnWait(p.flushOrEnd)
	// The requests outlive ctx by up to lastReplies, so that outstanding replies can still arrive.
	late, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancel(nil)
	defer context.AfterFunc(ctx, func() {
		if wait.For(late, lastReplies) {
			cancel(context.Cause(ctx))
		}
	})()
	for {
		switch {
		case p.finishFirst(ctx), p.begin(ctx, late):
		case p.over && len(p.underWay) == 0:
			return len(p.next)
		default:
			p.wait(ctx)
		}
	}
}

// finishFirst prints the result of the first line under way and returns true. It returns false if there
// is no result yet. After a lost reply, it finishes all lines under way.
func (p *pipeline) finishFirst(ctx context.Context) bool {
	if len(p.underWay) == 0 || p.underWay[0].f != nil && !p.underWay[0].f.Over() {
		return false
	}
	first := p.underWay[0]
	if !first.await() {
		p.underWay[0] = nil
		p.underWay = p.underWay[1:]
		p.finish(ctx, first)
		p.spare = append(p.spare, first)
		return true
	}
	lines := p.underWay
	p.underWay = nil
	p.recoverLost(ctx, lines)
	for _, l := range lines {
		p.finish(ctx, l)
	}
	return true
}

// begin starts the next line if the line is available and may start now, and reports whether begin
// made progress. After the reply to a write is lost, no line starts until recoverLost has handled
// the write.
func (p *pipeline) begin(ctx, late context.Context) bool {
	if p.over || len(p.underWay) == p.flags.Inflight || p.pipe.Losses() > p.losses {
		return false
	}
	p.read(ctx)
	if len(p.next) == 0 {
		p.end(p.lines == nil)
		return false
	}
	l := p.next[0]
	if l.Err == nil {
		l.Err = context.Cause(ctx)
		l.line.End = l.Err != nil
	}
	switch {
	case l.Err != nil:
	case !l.sends():
		if len(p.underWay) > 0 {
			return false
		}
		if p.flushOrEnd(); p.over {
			return true
		}
		p.next = slices.Delete(p.next, 0, 1)
		p.echo(l.line)
		p.app.Line = l.line.Number
		p.end(!p.report(ctx, l.line, p.do(ctx, l.task)))
		return true
	case p.pipe.Busy(l.req.Commands[0].Key()) != nil:
		return false
	default:
		if l.Err = p.confirm(ctx, &l.req); l.Err != nil {
			break
		}
		if l.f, l.Err = p.pipe.Queue(late, l.req.Commands[0]); l.Err != nil {
			l.Err = fault.Describe(l.req.Commands[0], l.Err)
		}
	}
	p.next = slices.Delete(p.next, 0, 1)
	p.underWay = append(p.underWay, l)
	p.end(l.Err != nil && l.Err != errNothing && !p.flags.KeepGoing || l.line.End)
	return true
}

// read reads lines that are available without waiting, while there is room for them. After a signal,
// read appends a line whose error is the cause of ctx.
func (p *pipeline) read(ctx context.Context) {
	for p.lines != nil && len(p.next) < p.lookahead {
		select {
		case line, ok := <-p.lines:
			p.parseNext(ctx, line, ok)
		default:
			if ctx.Err() != nil {
				p.parseNext(ctx, lineinput.Line{}, true)
			}
			return
		}
	}
}

// parseNext parses a line and appends it to p.next. ok is false if the input has no further line.
func (p *pipeline) parseNext(ctx context.Context, line lineinput.Line, ok bool) {
	if ctx.Err() != nil {
		line.Err, line.End = context.Cause(ctx), true
	}
	if !ok || line.End {
		p.lines = nil
	}
	if !ok {
		return
	}
	if len(p.spare) == 0 {
		p.spare = append(p.spare, new(pendingLine))
	}
	last := len(p.spare) - 1
	l := p.spare[last]
	p.spare = p.spare[:last]
	*l = pendingLine{line: line}
	l.task, l.Err = p.parse(line)
	p.lookUp(ctx, l)
	p.next = append(p.next, l)
}

// end stops reading and sending lines if ended is true.
func (p *pipeline) end(ended bool) { p.over = p.over || ended }

// wait flushes requests and results, and waits until finishFirst or begin may make progress.
func (p *pipeline) wait(ctx context.Context) {
	p.pipe.Flush()
	p.flushOrEnd()
	var first, sameKey, interrupted <-chan struct{}
	var more <-chan lineinput.Line
	if len(p.underWay) > 0 {
		first = p.underWay[0].f.Done()
	}
	if !p.over && len(p.underWay) < p.flags.Inflight && p.pipe.Losses() == p.losses && (len(p.next) == 0 || p.next[0].sends()) {
		interrupted = ctx.Done()
		if len(p.next) < p.lookahead {
			more = p.lines
		}
	}
	if len(p.next) > 0 && p.next[0].Err == nil && p.next[0].sends() {
		if busy := p.pipe.Busy(p.next[0].req.Commands[0].Key()); busy != nil {
			sameKey = busy.Done()
		}
	}
	if first == nil && more == nil && sameKey == nil {
		return // the batch has just ended
	}
	select {
	case <-first:
	case <-sameKey:
	case line, ok := <-more:
		p.parseNext(ctx, line, ok)
	case <-interrupted:
	}
}

// flushOrEnd writes the queued results, and ends the batch if they cannot be written.
func (p *pipeline) flushOrEnd() { p.end(!p.flush()) }

// recoverLost waits for the replies to lines, and finds out whether writes without a reply were
// applied. If one reply is lost, others usually are too, and reading back all keys together is faster.
func (p *pipeline) recoverLost(ctx context.Context, lines []*pendingLine) {
	p.flushOrEnd()
	answers := make([]*verb.Answer, 0, len(lines))
	for _, l := range lines {
		if l.await() {
			p.losses++
		}
		answers = append(answers, &l.Answer)
	}
	verb.Recover(ctx, p.session, answers, p.app.Timeout())
}

// await waits for the reply, and reports whether the line is a write whose reply was lost.
func (l *pendingLine) await() (lost bool) {
	if l.f != nil {
		l.Reply, l.Err = l.f.Wait(context.Background())
	}
	return l.Lost() != nil
}

func (p *pipeline) finish(ctx context.Context, l *pendingLine) {
	p.echo(l.line)
	p.app.Line = l.line.Number
	p.countNewer(l)
	var result format.Result
	err := l.Err
	if l.f != nil {
		var info client.ReplyInfo
		if l.Reply != nil {
			info = l.Reply.Info()
		}
		if l.Warning != "" || len(info.Warnings)+len(info.Notes) > 0 {
			p.flushOrEnd() // print earlier results first
		}
		if l.Warning != "" {
			p.app.Warn(l.Warning, "")
		}
		result, err = verb.Present(p.app, &l.req, 0, l.Reply, l.Err)
	}
	if result != nil && !p.flags.silent {
		if queueErr := p.app.Queue(result); queueErr != nil {
			if out, ok := errors.AsType[*fault.OutputError](queueErr); ok {
				out.Done = l.req.Writes() != ""
			}
			err = queueErr
		}
	}
	p.end(!p.report(ctx, l.line, err))
}
