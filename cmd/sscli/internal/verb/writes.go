package verb

import (
	"cmp"
	"context"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/cmd/sscli/internal/app"
	"github.com/sscli/sscli/cmd/sscli/internal/bulkread"
	"github.com/sscli/sscli/cmd/sscli/internal/fault"
)

// Writes sends writes to many keys, and passes their outcomes to the caller in the order of the calls
// of Add and Skip. Up to [bulkread.Window] writes are pending at a time, fewer if their values are
// large.
type Writes struct {
	app     *app.App
	session *client.Session
	pipe    *client.Pipeline
	pending []*write // the writes whose outcome was not passed on
	bytes   int      // the size of their values
}

// maxPendingBytes is the size of the values of pending writes, unless one value alone is larger.
const maxPendingBytes = 16 << 20

// A write is one pending call of Add or Skip.
type write struct {
	command client.Command
	f       *client.InFlight // nil if nothing was sent
	answer  Answer
	done    func(Answer) error
}

// NewWrites returns a Writes for a session.
func NewWrites(a *app.App, s *client.Session) *Writes {
	return &Writes{app: a, session: s, pipe: s.Pipeline(bulkread.Window)}
}

// Add queues a write, and calls done with its outcome when all earlier outcomes were passed on. An
// error of done, or one that is not about this key, is returned by Add or Finish.
func (w *Writes) Add(ctx context.Context, c client.Command, done func(Answer) error) error {
	item := &write{command: c, done: done}
	if err := CheckFence(w.app.Env, c); err != nil {
		item.answer.Err = err
		return w.add(ctx, item)
	}
	var err error
	switch item.f, err = w.pipe.Queue(ctx, c); {
	case ctx.Err() != nil && item.f == nil:
		return context.Cause(ctx)
	case err != nil && !bulkread.IsAboutKey(err):
		return fault.Describe(c, err)
	case err != nil:
		item.answer.Err = fault.Describe(c, err)
	}
	return w.add(ctx, item)
}

// Skip calls done with answer in the place of a write, when all earlier outcomes were passed on.
func (w *Writes) Skip(ctx context.Context, answer Answer, done func(Answer) error) error {
	return w.add(ctx, &write{answer: answer, done: done})
}

func (w *Writes) add(ctx context.Context, item *write) error {
	w.pending = append(w.pending, item)
	w.bytes += len(item.command.Value())
	for len(w.pending) > 0 && (w.pending[0].f == nil || w.pending[0].f.Over() || len(w.pending) > bulkread.Window || w.bytes > maxPendingBytes) {
		if err := w.finishFirst(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Flush sends the writes that wait to be sent together with others.
func (w *Writes) Flush() { w.pipe.Flush() }

// Finish waits for all pending writes and passes their outcomes on, even after an error, so that each
// write that was sent is reported. It returns err, if not nil, or the first error of its own.
func (w *Writes) Finish(ctx context.Context, err error) error {
	for len(w.pending) > 0 {
		err = cmp.Or(err, w.finishFirst(ctx))
	}
	return err
}

// finishFirst waits for the first pending write and passes its outcome on.
func (w *Writes) finishFirst(ctx context.Context) error {
	item := w.pending[0]
	if item.wait(); item.answer.Lost() != nil {
		w.recoverLost(ctx)
	}
	w.pending[0] = nil
	w.pending = w.pending[1:]
	w.bytes -= len(item.command.Value())
	if item.f != nil && item.answer.Err != nil {
		item.answer.Err = fault.Describe(item.command, item.answer.Err)
	}
	return item.done(item.answer)
}

func (item *write) wait() {
	if item.f != nil && item.answer.Reply == nil && item.answer.Err == nil {
		item.answer.Reply, item.answer.Err = item.f.Wait(context.Background())
	}
}

// recoverLost waits for all pending writes, and finds out whether those without a reply were applied.
// If one reply is lost, others usually are too, and reading back all keys together is faster.
func (w *Writes) recoverLost(ctx context.Context) {
	var answers []*Answer
	for _, item := range w.pending {
		item.wait()
		answers = append(answers, &item.answer)
	}
	Recover(ctx, w.session, answers, w.app.Timeout())
}
