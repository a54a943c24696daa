package emulator

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/sscli/sscli/internal/disk"
	"github.com/sscli/sscli/internal/glob"
	"github.com/sscli/sscli/internal/store"
)

// Data configures the data file in which a store keeps its keys. With the zero value, the store is in
// memory only.
type Data struct {
	File string // created if it does not exist; one process at a time may use it

	// Without Asked, the file has all keys. If Asked is set, the file has only the keys whose last SET had
	// `aio-persistence`, and the keys that match one of Patterns, in the syntax of SCAN.
	Asked    bool
	Patterns []string

	patterns []*glob.Pattern // Patterns

	// For tests.
	disk   disk.Options
	commit func(write func() error) error // wraps each commit; nil = no wrapper
}

// keeps reports whether to keep a key in the file. persist is set if the key's last write had
// `aio-persistence`.
func (d Data) keeps(key []byte, persist bool) bool {
	if !d.Asked || persist {
		return true
	}
	return slices.ContainsFunc(d.patterns, func(p *glob.Pattern) bool { return p.Match(key) })
}

// A DataError reports a data file that cannot be opened or written.
type DataError struct{ Err error }

func (e *DataError) Error() string { return fmt.Sprint(e.Err) }

func (e *DataError) Unwrap() error { return e.Err }

// A journal writes the changes of a store to a data file. Each commit writes all changes that were
// made since the previous commit began.
//
// While changes are being written, all replies and notifications wait in a queue, including the
// replies to reads. So no client sees a value that a crash could undo. The queue keeps the messages in
// order: watchers are notified of a change before the client that made the change gets the reply.
// Messages in the server's backlog wait there instead, see postpone.
//
// A store without a data file has a nil journal, and its replies and notifications do not wait.
type journal struct {
	file *disk.File
	data Data
	fail func(error) // called once, without the lock, after a commit fails

	// lock is the store's lock. It guards the fields below.
	lock    sync.Locker
	next    *group    // changes for the next commit
	writing *group    // changes that the current commit writes; nil = no commit is running
	changed sync.Cond // signals a change of the fields in this struct
	clock   int64     // the wall clock in the file after all pending commits, in milliseconds; later than every version
	closing bool
	over    bool          // run has ended after close; later changes are not committed
	err     error         // why the last commit failed; no commit follows
	ended   chan struct{} // closed when run ends
}

// A group holds changes to commit together, and the replies and notifications that wait for the
// commit.
type group struct {
	batch     disk.Batch
	held      []func() // functions that send the waiting messages, see hold
	bytes     int      // approximate size of the messages in held
	committed bool
}

const (
	// maxHeld and maxHeldBytes limit the number and the total size of the replies and
	// notifications that wait for a commit. At either limit, the server processes no further requests.
	maxHeld      = 1 << 16
	maxHeldBytes = 64 << 20

	// maxBatchBytes limits the size of the changes that are not committed yet, in the same way. Their number is not
	// limited by maxHeld, because a Redis client need not want replies.
	maxBatchBytes = 16 << 20

	// clockAhead is how far the clock in the file is set ahead of the time, in milliseconds, so that most
	// changes need not write a new clock. A restarted store begins with the clock in the file.
	clockAhead = int64(time.Second / time.Millisecond)
)

// openStore returns a store with the contents of its data file, and the journal, which is nil
// without a file. lock is the store's lock; the caller must not hold it. The journal calls fail if
// a commit fails.
func openStore(o store.Options, d Data, lock sync.Locker, fail func(error)) (*store.Store, *journal, error) {
	if d.File == "" {
		return store.New(o), nil, nil
	}
	for _, text := range d.Patterns {
		p, ok := glob.Parse(text)
		if !ok {
			return nil, nil, fmt.Errorf("emulator: Data.Patterns: %.64q is not a pattern", text)
		}
		d.patterns = append(d.patterns, p)
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
		s.Restore(r.Key, r.Value, r.Version, r.Fence, r.Expires, r.Persist)
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

// A batch must not keep a value that the store may change.
const _ = uint(disk.Large - store.Large)

// add adds a change to the next commit. It requires the lock.
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
		j.clock = max(c.Clock+1, c.Time.UnixMilli()+clockAhead) // not c.Clock+clockAhead, which restarts would add up
		b.Clock(j.clock)
	}
	j.changed.Broadcast()
}

// resetClock makes the next change write the clock to the file, even if it was set back. It requires the lock.
func (j *journal) resetClock() {
	if j != nil {
		j.clock = 0
	}
}

// pending reports whether the caller must pass replies and notifications to hold, because changes are not
// committed yet or a commit has failed. It requires the lock.
func (j *journal) pending() bool {
	return j != nil && (j.last() != nil || j.err != nil)
}

// last returns the latest group that has changes and is not committed, or nil.
func (j *journal) last() *group {
	if !j.next.batch.Empty() {
		return j.next
	}
	return j.writing
}

// hold queues do, a function that sends a message. Once all changes made so far are in the file, run calls
// the function with the lock held. If a commit fails, the function is never called. bytes is the
// approximate size of the message. hold requires the lock, and must be called only if pending returns true.
func (j *journal) hold(bytes int, do func()) {
	if j.err != nil {
		return
	}
	g := j.last()
	g.held = append(g.held, do)
	g.bytes += bytes
}

// admit waits until there is room for the changes of another request and for its reply. It requires the lock,
// and releases the lock while waiting.
func (j *journal) admit() {
	for j != nil && j.err == nil && !j.over && j.full() {
		j.changed.Wait()
	}
}

func (j *journal) full() bool {
	held, bytes, batch := len(j.next.held), j.next.bytes, j.next.batch.Size()
	if w := j.writing; w != nil {
		held, bytes, batch = held+len(w.held), bytes+w.bytes, batch+w.batch.Size()
	}
	return held >= maxHeld || bytes >= maxHeldBytes || batch >= maxBatchBytes
}

// wait waits until all changes made so far are in the file. If a commit has failed, wait returns the
// error of that commit; for changes after close, it returns ErrClosed. The caller must not hold the lock.
func (j *journal) wait() error {
	if j == nil {
		return nil
	}
	j.lock.Lock()
	defer j.lock.Unlock()
	for g := j.last(); g != nil && !g.committed && j.err == nil; {
		if j.over {
			return ErrClosed
		}
		j.changed.Wait()
	}
	return j.err
}

// await waits until a group is in the file; nil = no group. It returns false if a commit has failed. It requires the
// lock, and releases the lock while waiting.
func (j *journal) await(g *group) bool {
	for g != nil && !g.committed && j.err == nil {
		j.changed.Wait()
	}
	return j == nil || j.err == nil
}

// run commits groups, one at a time, until the journal is closed or a commit fails.
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
				j.over = true
				j.changed.Broadcast()
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

// close commits the remaining changes, stops run and closes the file. The caller must not hold the
// lock.
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
