package broker

import (
	"container/heap"
	"time"
)

// agenda holds the appointments of the broker, by its clock. Those for the same time are
// done in the order in which they were made.
type agenda struct {
	queue   appointments
	made    uint64
	forward time.Duration // how far Advance has moved the clock
	timer   *time.Timer
	armed   time.Time // what the timer is set to; zero: nothing
}

// An Timer is a call that is due later, see [Broker.At].
// Callers keep it to cancel it.
type Timer struct {
	due   time.Time
	made  uint64
	index int // in the queue; -1: done or canceled
	do    func()
}

type appointments []*Timer

func (q appointments) Len() int { return len(q) }
func (q appointments) Less(i, j int) bool {
	return q[i].due.Before(q[j].due) || q[i].due.Equal(q[j].due) && q[i].made < q[j].made
}
func (q appointments) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].index, q[j].index = i, j
}
func (q *appointments) Push(x any) {
	a := x.(*Timer)
	a.index = len(*q)
	*q = append(*q, a)
}
func (q *appointments) Pop() any {
	last := len(*q) - 1
	a := (*q)[last]
	(*q)[last] = nil
	*q = (*q)[:last]
	a.index = -1
	return a
}

// now reads the clock once for all packets of a batch.
func (b *Broker) now() time.Time {
	if !b.batch.IsZero() {
		return b.batch
	}
	return time.Now().Add(b.agenda.forward)
}

// Now returns the broker's clock: the present time, moved by [Broker.Advance]. It wants
// the lock.
func (b *Broker) Now() time.Time { return b.now() }

// At calls do, with the lock held, when the broker's clock reaches due. It wants the lock.
func (b *Broker) At(due time.Time, do func()) *Timer {
	b.agenda.made++
	a := &Timer{due: due, made: b.agenda.made, do: do}
	heap.Push(&b.agenda.queue, a)
	return a
}

// Cancel ends an appointment, which may be nil, done or canceled already. It wants the
// lock.
func (b *Broker) Cancel(a *Timer) {
	if a != nil && a.index >= 0 {
		heap.Remove(&b.agenda.queue, a.index)
	}
}

// Advance moves the broker's clock. What comes due meanwhile is done before it returns,
// in the order of time, and while the clock shows its time. Keep Alive goes by real
// time. Advance wants the lock.
func (b *Broker) Advance(d time.Duration) {
	b.agenda.armed, b.batch = time.Time{}, time.Time{}
	target := b.now().Add(d)
	for len(b.agenda.queue) > 0 && !b.agenda.queue[0].due.After(target) {
		if wait := b.agenda.queue[0].due.Sub(b.now()); wait > 0 {
			b.agenda.forward += wait
		}
		b.runDue()
	}
	if rest := target.Sub(b.now()); rest > 0 {
		b.agenda.forward += rest
	}
	b.runDue()
	b.changed = true
}

// runDue runs the timers that are due.
func (b *Broker) runDue() {
	for len(b.agenda.queue) > 0 && !b.agenda.queue[0].due.After(b.now()) {
		heap.Pop(&b.agenda.queue).(*Timer).do()
		b.changed = true
	}
}

// arm sets the timer to what comes next. A timer that rings for nothing does no harm.
func (b *Broker) arm() {
	if len(b.agenda.queue) == 0 || b.agenda.queue[0].due.Equal(b.agenda.armed) {
		return
	}
	b.agenda.armed = b.agenda.queue[0].due
	b.agenda.timer.Reset(b.agenda.armed.Sub(b.now()))
}

// keepTime runs the appointments as time passes.
func (b *Broker) keepTime() {
	defer b.agenda.timer.Stop()
	for {
		select {
		case <-b.done:
			return
		case <-b.agenda.timer.C:
			b.Lock()
			b.agenda.armed = time.Time{}
			b.runDue()
			b.Unlock()
		}
	}
}
