package broker

import (
	"cmp"
	"math"
	"runtime"
	"sync"
	"time"

	"github.com/tidwall/btree"
)

// timerQueue holds the broker's timers in the order in which they are due. Timers that are due
// at the same time run in the order in which they were made.
type timerQueue struct {
	*btree.BTreeG[*Timer]
	made    uint64
	forward time.Duration // Options.Skew, and how far Advance has moved the clock
	wakeup  *time.Timer
	armed   time.Time // the time that wakeup is set to; zero = not set
}

// A Timer is a scheduled call, see [Broker.At]. [Broker.Cancel] stops it.
type Timer struct {
	due  time.Time
	made uint64
	do   func()
}

func newTimerQueue(skew time.Duration) timerQueue {
	earlier := func(a, b *Timer) bool { return cmp.Or(a.due.Compare(b.due), cmp.Compare(a.made, b.made)) < 0 }
	return timerQueue{
		BTreeG: btree.NewBTreeGOptions(earlier, btree.Options{NoLocks: true}),
		wakeup: time.NewTimer(time.Hour), forward: skew,
	}
}

// Now returns the time of the broker's clock: the real time plus [Options].Skew and the durations
// passed to [Broker.Advance]. While packets are handled, the time changes only when the broker is
// unlocked. Now requires the lock.
func (b *Broker) Now() time.Time {
	if !b.readTime.IsZero() {
		return b.readTime
	}
	return time.Now().Add(b.timers.forward)
}

// At calls do, with the lock held, when the broker's clock reaches due. It requires the lock.
func (b *Broker) At(due time.Time, do func()) *Timer {
	b.timers.made++
	t := &Timer{due: due, made: b.timers.made, do: do}
	b.timers.Set(t)
	return t
}

// Cancel stops a timer. It does nothing if t is nil, was stopped or has run. It requires the lock.
func (b *Broker) Cancel(t *Timer) {
	if t != nil {
		b.timers.Delete(t)
	}
}

// Advance moves the broker's clock forward. Before Advance returns, it runs the timers that become
// due, in order, each with the clock at the time when the timer is due. It does not affect Keep
// Alive. The clock is never more than 292 years (the largest Duration) ahead. Advance requires the lock.
func (b *Broker) Advance(d time.Duration) {
	d = min(d, math.MaxInt64-max(0, b.timers.forward))
	b.timers.armed, b.readTime = time.Time{}, time.Time{}
	target := b.Now().Add(d)
	for next, ok := b.timers.Min(); ok && !next.due.After(target); next, ok = b.timers.Min() {
		b.timers.forward += max(0, next.due.Sub(b.Now()))
		b.runNext()
	}
	b.timers.forward += max(0, target.Sub(b.Now()))
	b.changed = true
}

func (b *Broker) runNext() bool {
	next, ok := b.timers.Min()
	if !ok || next.due.After(b.Now()) {
		return false
	}
	b.timers.Delete(next)
	next.do()
	b.changed = true
	return true
}

// Work in many steps keeps the broker locked for maxHold at most. If many goroutines wait for the lock, which
// is given out in their order, it keeps the broker locked for a part of maxRound only: nobody should
// wait much longer than maxRound, however many others do the same.
const (
	maxHold  = 2 * time.Millisecond
	minHold  = 10 * time.Microsecond
	maxRound = 30 * time.Millisecond
)

// Hold returns how long work in many steps may keep the broker locked at present.
func (b *Broker) Hold() time.Duration {
	if b.waiting.Load() == 0 {
		return maxHold // without a division, because this is asked for each packet
	}
	return max(minHold, min(maxHold, maxRound/time.Duration(1+b.waiting.Load())))
}

// arm sets b.timers.wakeup to the next timer. Waking up too early does no harm.
func (b *Broker) arm() {
	if next, ok := b.timers.Min(); ok && !next.due.Equal(b.timers.armed) {
		b.timers.armed = next.due
		b.timers.wakeup.Reset(next.due.Sub(b.Now()))
	}
}

// runTimers runs each timer when it is due, until the broker is closed.
func (b *Broker) runTimers() {
	defer b.timers.wakeup.Stop()
	for {
		select {
		case <-b.done:
			return
		case <-b.timers.wakeup.C:
			b.Lock()
			b.timers.armed = time.Time{}
			for locked := time.Now(); b.runNext(); {
				b.yieldAfter(&locked)
			}
			b.Unlock()
		}
	}
}

// Later calls step on another goroutine, with the lock held, until step returns false. The broker
// is unlocked between the calls. Later returns immediately; it requires the lock.
func (b *Broker) Later(step func() (more bool)) {
	b.later(func() {
		for step() {
			b.yield()
		}
	})
}

// later queues a long job, which runs on another goroutine after the jobs that were queued before
// it. The job runs in line, with the lock held, and calls yield between its steps.
func (b *Broker) later(job func()) {
	b.jobs = append(b.jobs, job)
	if len(b.jobs) > 1 {
		return
	}
	b.running.Go(func() {
		b.lockFor(muchWork)
		defer b.Unlock()
		for len(b.jobs) > 0 {
			for range len(b.jobs) { // each has a turn in every round of all who stand in line
				b.jobs[0]()
				b.changed = true
				b.pause(math.MaxInt)
				b.jobs[0] = nil // for the garbage collector
				b.jobs = b.jobs[1:]
			}
			if len(b.jobs) > 0 { // otherwise another goroutine would begin with the next job
				b.yield()
			}
		}
		b.jobs = nil
	})
}

// muchWork is the number of bytes of a client that count as much work.
const muchWork = 1 << 10

// Line returns a lock that a goroutine with much work must hold, in addition to the broker's. So only one
// of many such goroutines competes with clients that want little. A goroutine that does not know how much
// work it has may begin without Line, for the time Hold, or for 20 µs if others wait. The caller must lock Line before
// the broker.
func (b *Broker) Line() sync.Locker { return &b.line }

// LineIsLong reports whether many goroutines stand in the Line.
func (b *Broker) LineIsLong() bool { return b.line.IsLong() }

// briefly is for how long the broker may be locked without standing in line while others wait.
const briefly = 20 * time.Microsecond

// Crowded reports whether others wait for the lock who are not in line, and the caller is not in line either.
// Crowded requires the lock.
func (b *Broker) Crowded() bool { return b.waiting.Load() > 0 && !b.inLine }

// Waiting returns the number of goroutines that wait for the lock.
func (b *Broker) Waiting() int { return int(b.waiting.Load()) }

// StandInLine must be called before work that may take more than some 20 µs. While the broker is Crowded, if costly
// returns true, it unlocks the broker until it is the caller's turn in the line of those with much work: otherwise those
// who want little would wait for the work of all who came before them. Meanwhile the client may disconnect. It reports
// whether it unlocked the broker. StandInLine requires the lock.
func (b *Broker) StandInLine(costly func() bool) bool {
	if !b.Crowded() || !costly() {
		return false
	}
	b.yield()
	return true
}

// lockFor locks the broker for the packets in a number of bytes.
func (b *Broker) lockFor(bytes int) {
	if bytes < muchWork {
		b.Lock()
		return
	}
	b.line.Lock()
	b.Lock()
	b.inLine = true
}

// yield unlocks the broker, lets the goroutines that wait for it run, and locks it again when it is the
// caller's turn in the line of those with much work. Without
// Gosched, such a goroutine would become runnable, but on a busy machine it would run only after
// Go's scheduler has preempted the caller, 10 to 20 ms later, and find the broker locked again.
//
// If it was the caller's turn, yield writes the queued packets to all plain TCP clients on the calling
// goroutine, instead of waking a goroutine for each client.
func (b *Broker) yield() {
	limit := 0
	if b.inLine {
		limit = math.MaxInt
	}
	b.unlock(limit)
	runtime.Gosched()
	b.line.Lock()
	b.Lock()
	b.inLine = true
}

// pause unlocks the broker, lets the goroutines that wait for it run, and locks it again, but keeps the turn in line: the
// caller works for many, and takes their turns one after the other. Packets are written to at most limit clients on the
// calling goroutine.
func (b *Broker) pause(limit int) {
	b.inLine = false // so that unlock does not give up the turn
	b.unlock(limit)
	runtime.Gosched()
	b.Lock()
	b.inLine = true
}

// PauseAfter unlocks the broker if it has been locked for longer than Hold, lets the goroutines that wait for it run, and
// locks it again, without standing in line. It writes the queued packets to all plain TCP clients on the calling
// goroutine, as yield does. It reports whether it did, and updates locked, when the broker was locked last.
func (b *Broker) PauseAfter(locked *time.Time) bool {
	if time.Since(*locked) <= b.Hold() {
		return false
	}
	b.unlock(math.MaxInt)
	runtime.Gosched()
	b.Lock()
	*locked = time.Now()
	return true
}

// yieldAfter calls yield if the broker has been locked for longer than Hold, or, while Crowded, for longer than
// briefly. It reports whether it did. locked is when the broker was locked last; yieldAfter updates it. If locked is
// zero, yieldAfter only sets it to the current time, so a caller with short work need not read the clock first. If
// locked is nil, yieldAfter does nothing.
func (b *Broker) yieldAfter(locked *time.Time) bool {
	if locked == nil {
		return false
	}
	if locked.IsZero() {
		*locked = time.Now()
		return false
	}
	limit := b.Hold()
	if b.Crowded() {
		limit = briefly
	}
	if time.Since(*locked) <= limit {
		return false
	}
	b.yield()
	*locked = time.Now()
	return true
}
