package emulator

import (
	"errors"
	"sync"
	"time"

	"github.com/sscli/sscli/emulator/disk"
	"github.com/sscli/sscli/emulator/store"
)

// Data is where a store is kept, so that it outlives the process. The zero value is
// nowhere.
type Data struct {
	File string // is made if it does not exist; one process at a time may have it

	// Asked keeps only the keys that were last set with `aio-persistence`, and those that
	// match one of Patterns, which are globs as in [Rule]. Otherwise all keys are kept.
	Asked    bool
	Patterns []string

	// For tests.
	disk   disk.Options
	commit func(write func() error) error // is around each commit; nil: nothing is
}

// keeps tells whether a key is kept.
func (d Data) keeps(key []byte, persist bool) bool {
	if !d.Asked || persist {
		return true
	}
	for _, p := range d.Patterns {
		if store.MatchGlob([]byte(p), key) {
			return true
		}
	}
	return false
}

// A DataError is a data file that cannot be used, or no longer: see package disk.
type DataError struct{ Err error }

func (e *DataError) Error() string { return e.Err.Error() }

func (e *DataError) Unwrap() error { return e.Err }

// A journal writes the changes of a store to its data file. Replies and notifications wait
// until the file has the changes that they show. One commit writes all changes that were made
// during the commit before.
//
// There is one order: while a change is on its way to the file, everything that leaves the
// store waits in a queue, replies to reads included. So nobody sees a value that a crash
// could take back, and watchers are notified of a change before its reply leaves.
//
// A nil journal belongs to a store that is not kept: nothing waits.
type journal struct {
	file *disk.File
	data Data
	fail func(error) // is called once, without the lock, when a commit went wrong

	// lock is the store's lock. It guards the fields below.
	lock         sync.Locker
	next, flying *group
	committing   bool
	taken, done  uint64    // groups that the file was given, and that it has
	changed      sync.Cond // any of these
	clock        int64     // that the file has, or will have with next
	closing      bool
	err          error         // why no more is kept
	ended        chan struct{} // closed when run has ended
}

// A group is changes that are committed together, and the replies and notifications that
// wait for them.
type group struct {
	batch disk.Batch
	held  []func()
	bytes int // of memory that held keeps, about
}

const (
	// mostHeld and mostHeldBytes bound what may wait for the disk. More requests wait in
	// their connections.
	mostHeld      = 1 << 16
	mostHeldBytes = 64 << 20

	// clockAhead is how far the clock in the file is ahead of the store's, so that it need
	// not be written with each change. A store that starts again begins there.
	clockAhead = int64(time.Second / time.Millisecond)
)

// openStore returns a store with what is in its data file, and the journal for what comes,
// which is nil without a file. lock is the store's lock, and is not held. fail is called
// when the store can be kept no longer.
func openStore(o store.Options, d Data, lock sync.Locker, fail func(error)) (*store.Store, *journal, error) {
	if d.File == "" {
		return store.New(o), nil, nil
	}
	j := &journal{data: d, lock: lock, fail: fail, next: new(group), flying: new(group), ended: make(chan struct{})}
	j.changed.L = lock
	told := o.Changed
	o.Keep = d.keeps
	o.Changed = func(c *store.Change) {
		j.add(c)
		if told != nil {
			told(c)
		}
	}
	s := store.New(o)
	var err error
	j.file, err = disk.Open(d.File, d.disk, func(r disk.Record) {
		k := store.Saved{Key: r.Key, Value: r.Value, Version: r.Version, Fence: r.Fence, Persist: r.Persist}
		if r.Expires != 0 {
			k.Expires = time.UnixMicro(r.Expires)
		}
		s.Restore(k)
	})
	if err != nil {
		return nil, nil, &DataError{err}
	}
	j.clock = j.file.Clock()
	s.RestoreClock(j.clock)
	lock.Lock()
	s.Expire() // what expired meanwhile
	lock.Unlock()
	go j.run()
	if err := j.wait(); err != nil {
		return nil, nil, errors.Join(err, j.close())
	}
	return s, j, nil
}

// add takes a change of the store. The lock is held.
func (j *journal) add(c *store.Change) {
	b := &j.next.batch
	switch {
	case c.Kept:
		e := c.Entry
		r := disk.Record{Key: e.Key(), Value: e.Value(), Version: e.Version(), Fence: e.Fence(), Persist: e.Persist()}
		if at := e.Expires(); !at.IsZero() {
			r.Expires = at.UnixMicro()
		}
		b.Put(r)
	case c.WasKept:
		b.Delete(c.Entry.Key())
	}
	if c.Clock >= j.clock {
		j.clock = c.Clock + clockAhead
		b.Clock(j.clock)
	}
	if !j.committing {
		j.changed.Broadcast()
	}
}

// pending tells whether what leaves the store now has to wait, see hold. The lock is held.
func (j *journal) pending() bool {
	return j != nil && (j.committing || !j.next.batch.Empty() || j.err != nil)
}

// hold calls do, with the lock held, when the file has all changes that were made so far, and
// never if a commit ends with an error. bytes is about the memory that do keeps. The lock is
// held.
func (j *journal) hold(bytes int, do func()) {
	if j.err != nil {
		return
	}
	g := j.next
	if g.batch.Empty() {
		g = j.flying
	}
	g.held = append(g.held, do)
	g.bytes += bytes
}

// admit waits until there is room for another request. The lock is held, and given away
// meanwhile.
func (j *journal) admit() {
	if j == nil {
		return
	}
	for j.err == nil && (len(j.next.held)+len(j.flying.held) >= mostHeld || j.next.bytes+j.flying.bytes >= mostHeldBytes) {
		j.changed.Wait()
	}
}

// wait waits until the file has all changes that were made so far, and returns why it does
// not have them. The lock is not held.
func (j *journal) wait() error {
	if j == nil {
		return nil
	}
	j.lock.Lock()
	defer j.lock.Unlock()
	last := j.taken
	if !j.next.batch.Empty() {
		last++
	}
	for j.done < last && j.err == nil {
		j.changed.Wait()
	}
	return j.err
}

// run commits one group after the other.
func (j *journal) run() {
	defer close(j.ended)
	err := j.commitAll()
	if err != nil {
		j.fail(err)
	}
}

func (j *journal) commitAll() error {
	j.lock.Lock()
	defer j.lock.Unlock()
	for {
		for j.next.batch.Empty() {
			if j.closing {
				return nil
			}
			j.changed.Wait()
		}
		j.next, j.flying = j.flying, j.next
		j.committing = true
		j.taken++
		g := j.flying
		j.lock.Unlock()
		err := j.write(&g.batch)
		j.lock.Lock()
		if err != nil {
			err = &DataError{err}
			j.err, j.next, j.flying = err, new(group), new(group)
			j.changed.Broadcast()
			return err
		}
		j.committing = false
		j.done++
		for i, do := range g.held {
			do()
			g.held[i] = nil
		}
		g.batch.Reset()
		g.held, g.bytes = g.held[:0], 0
		j.changed.Broadcast()
	}
}

func (j *journal) write(b *disk.Batch) error {
	write := func() error { return j.file.Commit(b) }
	if j.data.commit != nil {
		return j.data.commit(write)
	}
	return write()
}

// close writes what has not been kept yet, ends the journal, and unlocks the file. The lock is
// not held.
func (j *journal) close() error {
	if j == nil {
		return nil
	}
	j.lock.Lock()
	j.closing = true
	j.changed.Broadcast()
	j.lock.Unlock()
	<-j.ended
	if err := j.file.Close(); err != nil {
		return &DataError{err}
	}
	return nil
}
