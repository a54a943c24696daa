package batch

import (
	"context"

	"github.com/sscli/sscli/client"
)

// lookUp queues a GET for the key of a line, if the line has a version. It queues none if a request
// for the key is in flight, because then the line will overwrite the value of an earlier line.
func (p *pipeline) lookUp(ctx context.Context, l *pendingLine) {
	if l.Err != nil || l.version.IsZero() {
		return
	}
	if key := l.req.Commands[0].Key(); p.pipe.Busy(key) == nil {
		l.before, _ = p.pipe.Queue(ctx, client.Get(key)) // after an error, the line is not counted
	}
}

// countNewer counts the value that a line has overwritten if that value was newer than the version on
// the line, and differs from the line's value. It does not count a value that an earlier line has
// written: such a value is at least as new as the first write of the batch.
func (p *pipeline) countNewer(l *pendingLine) {
	r, ok := l.Reply.(client.SetResult)
	if !ok || !r.Applied {
		return
	}
	if p.firstWrite.IsZero() {
		p.firstWrite = r.Version
	}
	if l.before == nil {
		return
	}
	reply, err := l.before.Wait(context.Background())
	old, ok := reply.(client.GetResult)
	if err == nil && ok && old.Found && old.Version.Compare(l.version) > 0 && old.Version.Compare(p.firstWrite) < 0 &&
		string(old.Value) != l.req.Commands[0].Value() {
		p.summary.result.Newer++
	}
}
