package batch

import (
	"context"
	"hash/maphash"
	"math"
	"slices"

	"github.com/sscli/sscli/client"
)

// lookUp queues a GET for the key of a line, if the line has a version. It queues none if an earlier line
// with the key has no result yet, because then the line will overwrite the value of that line.
func (p *pipeline) lookUp(ctx context.Context, l *pendingLine) {
	if l.Err != nil || !p.flags.Newer {
		return
	}
	key := l.req.Commands[0].Key()
	if p.latest[key] == nil && !l.version.IsZero() {
		l.before, _ = p.pipe.Queue(ctx, client.Get(key)) // after an error, the line is not counted
	}
	p.latest[key] = l
}

// countNewer counts the value that a line has overwritten if that value was newer than the version on
// the line, differs from the line's value, and was not written by an earlier line.
func (p *pipeline) countNewer(l *pendingLine) {
	if !p.flags.Newer || len(l.req.Commands) == 0 {
		return
	}
	key, value := l.req.Commands[0].Key(), l.req.Commands[0].Value()
	if p.latest[key] == l {
		delete(p.latest, key)
	}
	r, ok := l.Reply.(client.SetResult)
	if !ok || !r.Applied {
		return
	}
	if l.before != nil {
		reply, err := l.before.Wait(context.Background())
		old, ok := reply.(client.GetResult)
		if err == nil && ok && old.Found && old.Version.Compare(l.version) > 0 && string(old.Value) != value && !p.own.has(key, old.Version) {
			p.summary.result.Newer++
		}
	}
	p.own.add(key, r.Version)
}

// writes is a set of writes, each with 8 bytes: 32 bits for the milliseconds between the first write and
// this one, and 32 bits of a hash of its key and version. The set is sorted, which costs little if each
// write is later than most of the others.
type writes struct {
	sorted []uint64
	first  int64 // the wall clock of the first write
	seed   maphash.Seed
}

// add adds the write that gave a key its version.
func (w *writes) add(key string, v client.Version) {
	if len(w.sorted) == 0 {
		w.first, _, _ = v.Parts()
		w.seed = maphash.MakeSeed()
	}
	element := w.element(key, v)
	if i, found := slices.BinarySearch(w.sorted, element); !found {
		w.sorted = slices.Insert(w.sorted, i, element)
	}
}

// has reports whether the write that gave a key its version is in the set.
func (w *writes) has(key string, v client.Version) (found bool) {
	if len(w.sorted) > 0 {
		_, found = slices.BinarySearch(w.sorted, w.element(key, v))
	}
	return found
}

func (w *writes) element(key string, v client.Version) uint64 {
	type write struct {
		key     string
		wall    int64
		counter uint64
	}
	wall, counter, _ := v.Parts()
	since := min(max(wall-w.first, 0), math.MaxUint32)
	return uint64(since)<<32 | maphash.Comparable(w.seed, write{key, wall, counter})>>32
}
