package batch

import (
	"context"
	"errors"
	"slices"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/cmd/sscli/internal/exchange"
	"github.com/sscli/sscli/cmd/sscli/internal/fault"
	"github.com/sscli/sscli/cmd/sscli/internal/lineinput"
	"github.com/sscli/sscli/cmd/sscli/internal/verb"
	"github.com/sscli/sscli/format"
)

// A pendingLine is a line whose result has not been printed.
type pendingLine struct {
	line   lineinput.Line
	before *client.InFlight // a GET of the value that the line overwrites; may be nil
	task
	err error // why the line sends nothing; nil = it does
}

// A pipeline runs several lines at a time. It prints results in the order of the lines, and sends
// lines while fewer than --inflight are in flight. When it can do neither, it flushes the queued
// requests and results, and waits.
type pipeline struct {
	*batch
	window    *exchange.Window[*pendingLine] // of the lines that were started
	lines     <-chan lineinput.Line          // nil after the last line
	lookahead int                            // maximum length of next
	next      []*pendingLine                 // lines that were read but not started yet, in order
	spare     []*pendingLine                 // for reuse
	over      bool                           // no more lines are read or sent

	latest map[string]*pendingLine // with LoadOptions.Newer, for each key of lines without a result, the last of them
	own    writes                  // with LoadOptions.Newer, the writes of earlier lines
}

// pipelined runs lines, several at a time. It returns the number of lines that it read but did not start.
func (b *batch) pipelined(ctx context.Context, lines <-chan lineinput.Line) (unstarted int) {
	p := &pipeline{batch: b, lines: lines, lookahead: 1}
	if b.flags.Newer {
		p.lookahead = b.flags.Inflight
		p.latest = make(map[string]*pendingLine)
	}
	flush := func() error {
		p.flushOrEnd()
		return nil
	}
	p.window = exchange.NewWindow(exchange.NewStore(b.app, b.session), exchange.Options{Limit: b.flags.Inflight, Flush: flush}, func(l *pendingLine, o exchange.Outcome) error {
		p.finish(ctx, l, o)
		return nil
	})
	for !p.over || p.window.Len() > 0 {
		if !p.begin(ctx) {
			p.wait(ctx)
			_ = p.window.FinishReady(ctx) // finish returns no error
		}
	}
	_ = p.window.Finish(ctx, nil)
	return len(p.next)
}

// begin starts the next line if the line is available and may start now, and reports whether begin
// made progress.
func (p *pipeline) begin(ctx context.Context) bool {
	if p.over || !p.window.Room() {
		return false
	}
	p.read(ctx)
	if len(p.next) == 0 {
		p.end(p.lines == nil)
		return false
	}
	l := p.next[0]
	if l.err == nil {
		l.err = context.Cause(ctx)
		l.line.End = l.err != nil
	}
	switch {
	case l.err != nil:
	case !l.sends():
		if p.window.Len() > 0 {
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
	case p.window.Busy(l.req.Commands[0].Key()) != nil:
		return false
	default:
		l.err = p.confirm(ctx, &l.req)
	}
	p.next = slices.Delete(p.next, 0, 1)
	p.end(l.err != nil && l.err != errNothing && !p.flags.KeepGoing || l.line.End)
	if l.err != nil {
		_ = p.window.Place(ctx, l, exchange.Outcome{Err: l.err}) // finish returns no error
	} else {
		_ = p.window.Add(ctx, l, &l.req.Commands[0])
	}
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
	l.task, l.err = p.parse(line)
	p.lookUp(ctx, l)
	p.next = append(p.next, l)
}

// end stops reading and sending lines if ended is true.
func (p *pipeline) end(ended bool) { p.over = p.over || ended }

// wait flushes requests and results, and waits until a result or begin may make progress.
func (p *pipeline) wait(ctx context.Context) {
	p.window.Flush()
	p.flushOrEnd()
	first := p.window.Ready()
	var sameKey, interrupted <-chan struct{}
	var more <-chan lineinput.Line
	if !p.over && p.window.Room() && (len(p.next) == 0 || p.next[0].sends()) {
		interrupted = ctx.Done()
		if len(p.next) < p.lookahead {
			more = p.lines
		}
	}
	if len(p.next) > 0 && p.next[0].err == nil && p.next[0].sends() {
		sameKey = p.window.Busy(p.next[0].req.Commands[0].Key())
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

func (p *pipeline) finish(ctx context.Context, l *pendingLine, o exchange.Outcome) {
	p.echo(l.line)
	p.app.Line = l.line.Number
	p.countNewer(l, o.Result)
	var result format.Result
	err := o.Err
	if err == nil {
		p.end(!p.written(o.Warn(p.app)))
		result, err = verb.Present(p.app, &l.req, 0, o.Result)
	}
	if result != nil && !p.flags.silent {
		if queueErr := p.app.Queue(result); queueErr != nil {
			if out, ok := errors.AsType[*fault.OutputError](queueErr); ok {
				out.Done = l.req.Changes() != ""
			}
			err = queueErr
		}
	}
	p.end(!p.report(ctx, l.line, err))
	p.spare = append(p.spare, l)
}
