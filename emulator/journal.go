package emulator

import (
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/sscli/sscli/emulator/disk"
	"github.com/sscli/sscli/emulator/store"
)

// Data says where a store is kept, so that it outlives the process. The zero value keeps the
// store in memory.
type Data struct {
	File string // created if it does not exist; one process at a time may use it

	// Asked keeps only keys that were last set with `aio-persistence`, and keys that match one
	// of Patterns, which are globs as in [Rule]. Otherwise all keys are kept.
	Asked    bool
	Patterns []string

	// For tests.
	disk   disk.Options
	commit func(write func() error) error // wraps each commit; nil: nothing does
}

// keeps reports whether a key is kept in the file.
func (d Data) keeps(key []byte, persist bool) bool {
	if !d.Asked || persist {
		return true
	}
	return slices.ContainsFunc(d.Patterns, func(p string) bool { return store.MatchGlob([]byte(p), key) })
}

// A DataError is the error of a data file that cannot be opened or written: see package disk.
type DataError struct{ Err error }

func (e *DataError) Error() string { return e.Err.Error() }

func (e *DataError) Unwrap() error { return e.Err }

// A journal writes the changes of a store to its data file. Replies and notifications wait
// until the file has the changes that they show. Each commit writes all changes that were made
// during the previous commit.
//
// Replies and notifications leave the store in one order. While a change is being written, they
// wait in a queue, including the replies to reads. So nobody sees a value that a crash could
// undo, and watchers are notified of a change before its reply leaves.
//
// The journal of a store without a file is nil: nothing waits.
type journal struct {
	file *disk.File
	data Data
	fail func(error) // called once, without the lock, after a commit that did not succeed

	// lock is the store's lock. It guards the fields below.
	lock    sync.Locker
	next    *group    // of the next commit
	writing *group    // of the commit under way; nil: there is none
	changed sync.Cond // signals a change of any of these fields
	clock   int64     // the latest clock in the file or in next
	closing bool
	err     error         // why nothing is written any more
	ended   chan struct{} // closed when run has ended
}

// A group holds changes that are committed together, and the replies and notifications that
// wait for them.
type group struct {
	batch     disk.Batch
	held      []func()
	bytes     int // memory that held refers to, approximately
	committed bool
}

const (
	// maxHeld and maxHeldBytes limit how many replies and notifications, and how much of their
	// memory, may wait for the disk. Further requests wait in their connections.
	maxHeld      = 1 << 16
	maxHeldBytes = 64 << 20

	// clockAhead is how far the clock in the file is ahead of the store's, in milliseconds, so
	// that it need not be written with each change. A restarted store continues from there.
	clockAhead = int64(time.Second / time.Millisecond)
)

// openStore returns a store with the contents of its data file, and its journal, which is nil
// without a file. lock is the store's lock, which the caller must not hold. fail is called when
// a change cannot be written.
func openStore(o store.Options, d Data, lock sync.Locker, fail func(error)) (*store.Store, *journal, error) {
	if d.File == "" {
		return store.New(o), nil, nil
	}
	if d.commit == nil {
		d.commit = func(write func() error) error { return write() }
	}
	j := &journal{data: d, lock: lock, fail: fail, next: new(group), ended: make(chan struct{})}
	j.changed.L = lock
	changed := o.Changed
	o.Keep = d.keeps
	o.Changed = func(c *store.Change) {
		j.add(c)
		if changed != nil {
			changed(c)
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
	s.Expire() // keys that expired while the store was closed
	lock.Unlock()
	go j.run()
	if err := j.wait(); err != nil {
		return nil, nil, errors.Join(err, j.close())
	}
	return s, j, nil
}

// add adds a change of the store to the next commit. It requires the lock.
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
	j.changed.Broadcast()
}

// pending reports whether a reply or notification must wait for the file, see hold. It requires
// the lock.
func (j *journal) pending() bool {
	return j != nil && (j.last() != nil || j.err != nil)
}

// last returns the group of the latest change that is not in the file, or nil.
func (j *journal) last() *group {
	if !j.next.batch.Empty() {
		return j.next
	}
	return j.writing
}

// hold calls do, with the lock held, when the file has all changes that were made so far, and
// never if a commit fails. bytes is the approximate memory that do refers to. hold requires the
// lock, and that pending returned true.
func (j *journal) hold(bytes int, do func()) {
	if j.err != nil {
		return
	}
	g := j.last()
	g.held = append(g.held, do)
	g.bytes += bytes
}

// admit waits until there is room for another request. It requires the lock, and releases it
// while it waits.
func (j *journal) admit() {
	for j != nil && j.err == nil && j.full() {
		j.changed.Wait()
	}
}

func (j *journal) full() bool {
	held, bytes := len(j.next.held), j.next.bytes
	if j.writing != nil {
		held, bytes = held+len(j.writing.held), bytes+j.writing.bytes
	}
	return held >= maxHeld || bytes >= maxHeldBytes
}

// wait waits until the file has all changes that were made so far, or returns why they cannot be
// written. The caller must not hold the lock.
func (j *journal) wait() error {
	if j == nil {
		return nil
	}
	j.lock.Lock()
	defer j.lock.Unlock()
	for g := j.last(); g != nil && !g.committed && j.err == nil; {
		j.changed.Wait()
	}
	return j.err
}

// run commits one group after the other, until the journal is closed or a commit fails.
func (j *journal) run() {
	defer close(j.ended)
	if err := j.commitAll(); err != nil {
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
		g := j.next
		j.next, j.writing = new(group), g
		j.lock.Unlock()
		err := j.data.commit(func() error { return j.file.Commit(&g.batch) })
		j.lock.Lock()
		j.writing = nil
		if err != nil {
			j.err, j.next = &DataError{err}, new(group)
			j.changed.Broadcast()
			return j.err
		}
		g.committed = true
		for _, do := range g.held {
			do()
		}
		j.changed.Broadcast()
	}
}

// close writes the changes that are not in the file yet, ends the journal, and unlocks the file.
// The caller must not hold the lock.
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
