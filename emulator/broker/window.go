package broker

import "time"

// A window holds the deliveries that were sent with QoS 1 or 2 and are not finished, in
// the order of sending. Their packet identifiers follow from their places, so that an
// acknowledgement finds its delivery without a search. Since clients acknowledge in
// order [MQTT-4.6.0-2], the window stays short.
type window struct {
	ring   []delivery // its length is a power of two
	lo, hi uint64     // the first that is not finished, and behind the last
	again  uint64     // the next to be sent again in a new connection; hi: none
	busy   int        // how many are not finished
}

const identifiers = 1<<16 - 1

func (w *window) at(place uint64) *delivery { return &w.ring[place&uint64(len(w.ring)-1)] }

func identifier(place uint64) uint16 { return uint16(place%identifiers) + 1 }

// full reports whether all identifiers are in use. If the client leaves a delivery
// unacknowledged while it acknowledges the 65535 after it, the next identifier would be the
// same: so that delivery moves to the end, where its place gives the same identifier.
func (w *window) full() bool {
	for w.hi-w.lo >= identifiers && w.busy < identifiers {
		*w.at(w.hi) = *w.at(w.lo)
		*w.at(w.lo) = delivery{}
		if w.again == w.hi {
			w.again++
		}
		w.hi++
		w.shrink()
	}
	return w.busy >= identifiers
}

// shrink lets the window begin with a delivery that is not finished.
func (w *window) shrink() {
	for w.lo < w.hi && w.at(w.lo).state == finished {
		w.lo++
	}
	w.again = max(w.again, w.lo)
}

// add takes a delivery and returns its packet identifier. The window is not full.
func (w *window) add(d delivery) uint16 {
	if n := w.hi - w.lo; n >= uint64(len(w.ring)) {
		ring := make([]delivery, max(16, 2*len(w.ring)))
		for i := w.lo; i < w.hi; i++ {
			ring[i&uint64(len(ring)-1)] = *w.at(i)
		}
		w.ring = ring
	}
	d.state = sent
	*w.at(w.hi) = d
	if w.again == w.hi {
		w.again++
	}
	w.hi++
	w.busy++
	return identifier(w.hi - 1)
}

// find returns the place of a packet identifier's delivery.
func (w *window) find(id uint16) (place uint64, ok bool) {
	if id == 0 {
		return 0, false
	}
	first := w.lo % identifiers
	place = w.lo + (uint64(id-1)+identifiers-first)%identifiers
	return place, place < w.hi && w.at(place).state != finished
}

// finish forgets a delivery. It reports whether it had been sent in this connection.
func (w *window) finish(place uint64) bool {
	*w.at(place) = delivery{}
	w.busy--
	flown := place < w.again
	w.shrink()
	return flown
}

// A backlog holds deliveries that are not sent yet, in order.
type backlog struct {
	queue []delivery
	first int

	soonest time.Time // when the first message expires, or did; zero: none does
}

// mayBeOver reports whether a message may have expired since the last filter.
func (q *backlog) mayBeOver(now time.Time) bool { return !q.soonest.IsZero() && !now.Before(q.soonest) }

func (q *backlog) len() int { return len(q.queue) - q.first }

func (q *backlog) push(d delivery) {
	if d.msg.expires && (q.soonest.IsZero() || d.msg.ends().Before(q.soonest)) {
		q.soonest = d.msg.ends()
	}
	q.queue = append(q.queue, d)
}

func (q *backlog) pop() delivery {
	d := q.queue[q.first]
	q.queue[q.first] = delivery{}
	q.first++
	switch {
	case q.first == len(q.queue):
		q.queue, q.first = q.queue[:0], 0
		if cap(q.queue) > keepDeliveries {
			q.queue = nil
		}
	case q.first >= keepDeliveries && q.first > len(q.queue)/2:
		n := copy(q.queue, q.queue[q.first:])
		clear(q.queue[n:])
		q.queue, q.first = q.queue[:n], 0
	}
	return d
}

// keepDeliveries is how many places a backlog that became empty keeps.
const keepDeliveries = 1024

// filter removes the deliveries that are not wanted.
func (q *backlog) filter(wanted func(*delivery) bool) {
	q.soonest = time.Time{}
	for n := q.len(); n > 0; n-- {
		if d := q.pop(); wanted(&d) {
			q.push(d)
		}
	}
}
