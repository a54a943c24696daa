package broker

import "time"

// inflight holds the deliveries that were sent with QoS 1 or 2 and are not finished, in the
// order in which they were sent. A delivery's packet identifier follows from its place, so the
// delivery that a client acknowledges is found without a search. Because clients acknowledge in
// order [MQTT-4.6.0-2], the ring stays short.
type inflight struct {
	ring   []delivery // its length is a power of two
	lo, hi uint64     // places of the first unfinished delivery and of the next delivery to be added
	again  uint64     // place of the next delivery to be sent again on a new connection; hi: none
	count  int        // unfinished deliveries
	empty  uint64     // hi when the ring was last empty
}

// identifiers is the number of packet identifiers.
const identifiers = 1<<16 - 1

func (w *inflight) at(place uint64) *delivery { return &w.ring[place&uint64(len(w.ring)-1)] }

func identifier(place uint64) uint16 { return uint16(place%identifiers) + 1 }

// full reports whether all packet identifiers are in use. If the client leaves a delivery
// unacknowledged while it acknowledges the next 65534, the next place would have the same
// identifier. Then full moves that delivery to the next place, where it keeps its identifier.
func (w *inflight) full() bool {
	for w.hi-w.lo >= identifiers && w.count < identifiers {
		moved := *w.at(w.lo)
		*w.at(w.lo) = delivery{}
		w.push(moved)
		w.trim()
	}
	return w.count >= identifiers
}

// push adds a delivery at place hi. All deliveries of earlier connections must have been sent again
// or finished first.
func (w *inflight) push(d delivery) {
	if n := w.hi - w.lo; n >= uint64(len(w.ring)) {
		ring := make([]delivery, max(16, 2*len(w.ring)))
		for i := w.lo; i < w.hi; i++ {
			ring[i&uint64(len(ring)-1)] = *w.at(i)
		}
		w.ring = ring
	}
	*w.at(w.hi) = d
	if w.again == w.hi {
		w.again++
	}
	w.hi++
}

// trim moves lo to the first unfinished delivery. An empty ring that is larger than of late is freed. Otherwise it is
// kept, because it would have to grow again for the client's next burst.
func (w *inflight) trim() {
	for w.lo < w.hi && w.at(w.lo).state == finished {
		w.lo++
	}
	w.again = max(w.again, w.lo)
	if w.lo < w.hi {
		return
	}
	if len(w.ring) > keptPlaces && w.hi-w.empty <= uint64(len(w.ring)/4) {
		w.ring = nil
	}
	w.empty = w.hi
}

// add adds a copy of a delivery, and returns the copy and its packet identifier. full must have
// returned false.
func (w *inflight) add(d *delivery) (added *delivery, id uint16) {
	w.push(*d)
	w.count++
	added = w.at(w.hi - 1)
	added.state = sent
	return added, identifier(w.hi - 1)
}

// find returns the place of the unfinished delivery that has the packet identifier id.
func (w *inflight) find(id uint16) (place uint64, ok bool) {
	if id == 0 {
		return 0, false
	}
	first := w.lo % identifiers
	place = w.lo + (uint64(id-1)+identifiers-first)%identifiers
	return place, place < w.hi && w.at(place).state != finished
}

// finish removes a delivery. It reports whether the delivery was sent on this connection.
func (w *inflight) finish(place uint64) bool {
	*w.at(place) = delivery{}
	w.count--
	wasSent := place < w.again
	w.trim()
	return wasSent
}

// cost returns the memory of the ring, in bytes. It has a place for each identifier since the first
// unfinished delivery, however many of those deliveries are finished.
func (w *inflight) cost() int { return len(w.ring) * deliverySize }

// A queue holds the deliveries that have not been sent yet, in order.
type queue struct {
	deliveries []delivery // the first ones have been removed
	removed    int        // how many
	soonest    time.Time  // earliest expiry, possibly of a removed message; zero = no message expires
}

// mayHaveExpired reports whether a message may have expired since filter was last called.
func (q *queue) mayHaveExpired(now time.Time) bool {
	return !q.soonest.IsZero() && !now.Before(q.soonest)
}

func (q *queue) len() int { return len(q.deliveries) - q.removed }

// cost returns the memory of the queue, in bytes.
func (q *queue) cost() int { return cap(q.deliveries) * deliverySize }

// keptPlaces is the number of places that an empty queue or inflight keeps.
const keptPlaces = 16

func (q *queue) push(d delivery) {
	if at := d.msg.expires; !at.IsZero() && (q.soonest.IsZero() || at.Before(q.soonest)) {
		q.soonest = at
	}
	if n := len(q.deliveries); n == cap(q.deliveries) && q.removed > n/2 {
		kept := copy(q.deliveries, q.deliveries[q.removed:])
		clear(q.deliveries[kept:])
		q.deliveries, q.removed = q.deliveries[:kept], 0
	}
	q.deliveries = append(q.deliveries, d)
}

// first returns the delivery that pop removes next.
func (q *queue) first() *delivery { return &q.deliveries[q.removed] }

func (q *queue) pop() delivery {
	d := q.deliveries[q.removed]
	q.deliveries[q.removed] = delivery{} // for the garbage collector
	q.removed++
	if q.len() == 0 {
		q.deliveries, q.removed = q.deliveries[:0], 0
		if cap(q.deliveries) > keptPlaces {
			q.deliveries = nil
		}
	}
	return d
}

func (q *queue) filter(wanted func(*delivery) bool) {
	q.soonest = time.Time{}
	for n := q.len(); n > 0; n-- {
		if d := q.pop(); wanted(&d) {
			q.push(d)
		}
	}
}
