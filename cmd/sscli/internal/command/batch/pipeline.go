package batch

import (
	"context"
	"time"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/client/wait"
	"github.com/sscli/sscli/cmd/sscli/internal/fault"
	"github.com/sscli/sscli/cmd/sscli/internal/lineinput"
	"github.com/sscli/sscli/cmd/sscli/internal/verb"
	"github.com/sscli/sscli/format"
)

// lastReplies is how long a batch waits for outstanding replies after a signal.
const lastReplies = time.Second

// A pendingLine is a line whose result has not been printed.
type pendingLine struct {
	line   lineinput.Line
	before *lookup // what the key held before the line; may be nil
	task
	f *client.InFlight // nil if nothing was sent
	verb.Answer
}

// A pipeline runs several lines at a time. It prints results in the order of the lines, and sends
// lines while fewer than --inflight are in flight. When it can do neither, it flushes the queued
// requests and results, and waits.
type pipeline struct {
	*batch
	pipe     *client.Pipeline
	lines    <-chan lineinput.Line
	lookups  <-chan *lookup // the lookup of each line; nil without LoadOptions.Newer
	underWay []*pendingLine // in the order of the lines
	spare    []*pendingLine // for reuse
	next     *pendingLine   // the line to run next, if it was read
	losses   int            // number of lost replies whose outcome is known
	over     bool           // no more lines are read or sent

	firstWrite client.Version // the version of the first write that was applied
}

// pipelined runs lines, several at a time.
func (b *batch) pipelined(ctx context.Context, lines <-chan lineinput.Line, lookups <-chan *lookup) {
	p := &pipeline{batch: b, pipe: b.session.Pipeline(b.flags.Inflight), lines: lines, lookups: lookups}
	p.pipe.OnWait(p.flushOrEnd)
	// The context of the requests ends lastReplies after ctx.
	requests, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancel(nil)
	defer context.AfterFunc(ctx, func() {
		if wait.For(requests, lastReplies) {
			cancel(context.Cause(ctx))
		}
	})()
	for {
		switch {
		case p.finishFirst(ctx), p.begin(ctx, requests):
		case p.over && len(p.underWay) == 0:
			return
		default:
			p.wait(ctx)
		}
	}
}

// finishFirst prints the result of the first line under way, if that line has one, and reports whether
// it did.
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

// begin runs the next line if the line is available and may run now, and reports whether it made
// progress. After a lost reply, no line runs until the outcome of the lost request is known.
func (p *pipeline) begin(ctx, requests context.Context) bool {
	if p.over || len(p.underWay) == p.flags.Inflight || p.pipe.Losses() > p.losses {
		return false
	}
	if p.next == nil && !p.read(ctx) {
		return false
	}
	l := p.next
	if l.Err == nil {
		l.Err = context.Cause(ctx)
		l.line.End = l.Err != nil
	}
	switch {
	case l.Err != nil:
		l.req = verb.Request{} // otherwise finish would describe l.Err as an error of the request
	case !l.sends():
		if len(p.underWay) > 0 {
			return false
		}
		if p.flushOrEnd(); p.over {
			return true
		}
		p.next = nil
		p.echo(l.line)
		p.app.Line = l.line.Number
		p.end(!p.report(ctx, l.line, p.do(ctx, l.task)))
		return true
	case !l.before.over(), p.pipe.Busy(l.req.Commands[0].Key()) != nil:
		return false
	default:
		if l.Err = p.confirm(ctx, &l.req); l.Err != nil {
			l.req = verb.Request{}
			break
		}
		l.f, l.Err = p.pipe.Queue(requests, l.req.Commands[0])
	}
	p.next = nil
	p.underWay = append(p.underWay, l)
	p.end(l.Err != nil && l.Err != errNothing && !p.flags.KeepGoing || l.line.End)
	return true
}

// read reads the next line if it is available without waiting, and reports whether it is. After a
// signal, the next line is the error of ctx.
func (p *pipeline) read(ctx context.Context) bool {
	select {
	case line, ok := <-p.lines:
		p.parseNext(ctx, line, ok)
	default:
		if ctx.Err() == nil {
			return false
		}
		p.parseNext(ctx, lineinput.Line{}, true)
	}
	return p.next != nil
}

// parseNext sets p.next to a line that was read. ok is false after the last line.
func (p *pipeline) parseNext(ctx context.Context, line lineinput.Line, ok bool) {
	if !ok {
		p.over = true
		return
	}
	if ctx.Err() != nil {
		line.Err, line.End = context.Cause(ctx), true
	}
	if len(p.spare) == 0 {
		p.spare = append(p.spare, new(pendingLine))
	}
	last := len(p.spare) - 1
	p.next, p.spare = p.spare[last], p.spare[:last]
	*p.next = pendingLine{line: line}
	if p.lookups != nil {
		p.next.before = <-p.lookups // nil if lookUp has ended
	}
	p.next.task, p.next.Err = p.parse(line)
}

// end stops reading and sending lines if ended is true.
func (p *pipeline) end(ended bool) { p.over = p.over || ended }

// wait flushes requests and results, and waits until finishFirst or begin can make progress. If the
// next line waits for another request with its key, wait only waits for the first line under way.
func (p *pipeline) wait(ctx context.Context) {
	p.pipe.Flush()
	p.flushOrEnd()
	var first, looked, interrupted <-chan struct{}
	var more <-chan lineinput.Line
	if len(p.underWay) > 0 {
		first = p.underWay[0].f.Done()
	}
	if !p.over && len(p.underWay) < p.flags.Inflight && p.pipe.Losses() == p.losses && (p.next == nil || p.next.sends()) {
		interrupted = ctx.Done()
		if p.next == nil {
			more = p.lines
		}
	}
	if p.next != nil && !p.next.before.over() {
		looked = p.next.before.get.Done()
	}
	if first == nil && more == nil && looked == nil {
		return // the batch has just ended
	}
	select {
	case <-first:
	case <-looked:
	case line, ok := <-more:
		p.parseNext(ctx, line, ok)
	case <-interrupted:
	}
}

// flushOrEnd writes the queued results, and ends the batch if that is impossible.
func (p *pipeline) flushOrEnd() {
	p.end(!p.flush())
}

// recoverLost waits for the replies to lines, and finds out whether writes without a reply were applied.
// If one reply is lost, others usually are too, and it is faster to read back all keys at once.
func (p *pipeline) recoverLost(ctx context.Context, lines []*pendingLine) {
	p.flushOrEnd()
	answers := make([]*verb.Answer, 0, len(lines))
	for _, l := range lines {
		if l.await() {
			p.losses++
		}
		answers = append(answers, &l.Answer)
	}
	verb.Recover(ctx, answers, p.timeout, p.session.ReadBack)
}

// await waits for the reply and reports whether it was lost.
func (l *pendingLine) await() (lost bool) {
	if l.f != nil {
		l.Reply, l.Err = l.f.Wait()
	}
	return l.Lost() != nil
}

func (p *pipeline) finish(ctx context.Context, l *pendingLine) {
	p.echo(l.line)
	p.app.Line = l.line.Number
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
		p.countNewer(l.before.newer(), l.Reply)
		result, err = verb.Present(p.app, &l.req, 0, l.Reply, l.Err)
	} else if len(l.req.Commands) > 0 {
		err = fault.Describe(l.req.Commands[0], err)
	}
	if result != nil && !p.flags.silent {
		if queueErr := p.app.Queue(result); queueErr != nil {
			err = queueErr
		}
	}
	p.end(!p.report(ctx, l.line, err))
}
