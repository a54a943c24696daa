package batch

import (
	"context"
	"hash/maphash"

	"github.com/sscli/sscli/client"
)

// lookUp queues a GET for the key of a line, if the line has a version. It queues none if an earlier line
// with the key has no result yet, because then the line will overwrite the value of that line.
func (p *pipeline) lookUp(ctx context.Context, l *pendingLine) {
	if l.err != nil || !p.flags.Newer {
		return
	}
	key := l.req.Commands[0].Key()
	if p.latest[key] == nil && !l.version.IsZero() {
		l.before, _ = p.window.Queue(ctx, client.Get(key)) // after an error, the line is not counted
	}
	p.latest[key] = l
}

// countNewer counts the value that a line, which got a reply, has overwritten if that value was newer than the version on
// the line, differs from the line's value, and was not written by an earlier line.
func (p *pipeline) countNewer(l *pendingLine, result client.Result) {
	if !p.flags.Newer || len(l.req.Commands) == 0 {
		return
	}
	key, value := l.req.Commands[0].Key(), l.req.Commands[0].Value()
	if p.latest[key] == l {
		delete(p.latest, key)
	}
	r, ok := result.(client.SetResult)
	if !ok || !r.Applied {
		return
	}
	if l.before != nil {
		result, err := l.before.Wait(context.Background())
		old, ok := result.(client.GetResult)
		if err == nil && ok && old.Found && old.Version.Compare(l.version) > 0 && string(old.Value) != value && !p.own.has(key, old.Version) {
			p.summary.result.Newer++
		}
	}
	p.own.add(key, r.Version)
}

// writes is a set of writes. It holds only a hash of each one's key and version.
type writes struct {
	hashes map[uint64]struct{}
	seed   maphash.Seed
}

func (w *writes) add(key string, v client.Version) {
	if w.hashes == nil {
		w.hashes, w.seed = make(map[uint64]struct{}), maphash.MakeSeed()
	}
	w.hashes[w.hash(key, v)] = struct{}{}
}

func (w *writes) has(key string, v client.Version) (found bool) {
	if w.hashes != nil {
		_, found = w.hashes[w.hash(key, v)]
	}
	return found
}

func (w *writes) hash(key string, v client.Version) uint64 {
	type write struct {
		key     string
		wall    int64
		counter uint64
	}
	return maphash.Comparable(w.seed, write{key, v.Wall, v.Counter})
}
