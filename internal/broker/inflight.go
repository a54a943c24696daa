package broker

import (
	"time"
	"unsafe"
)

// places holds deliveries at consecutive places. Up to blockPlaces are in a ring, more are in blocks of so many, so that one
// more delivery copies few. If many sessions that get the same messages copied all of theirs, the copies would leave more
// garbage than memory has room for.
type places struct {
	blocks [][]waiting // one, whose length is a power of two, or blocks of blockPlaces: the first has the place lo
	lo, hi uint64      // the first place, and the place of the next delivery to be added
}

const (
	firstPlaces = 16  // places of the smallest ring
	blockPlaces = 512 // 8 KiB, a page of Go's allocator: what one client frees has no other client's deliveries in it
)

func (p *places) len() int { return int(p.hi - p.lo) }

func (p *places) at(place uint64) *waiting {
	block := p.blocks[0]
	if len(p.blocks) > 1 {
		block = p.blocks[place/blockPlaces-p.lo/blockPlaces]
	}
	return &block[place&uint64(len(block)-1)]
}

func (p *places) push(w waiting) {
	switch {
	case len(p.blocks) > 1:
		if p.hi/blockPlaces-p.lo/blockPlaces == uint64(len(p.blocks)) {
			p.blocks = append(p.blocks, make([]waiting, blockPlaces))
		}
	case len(p.blocks) == 0:
		p.blocks = append(p.blocks, make([]waiting, firstPlaces))
	case p.len() == blockPlaces:
		last := make([]waiting, blockPlaces)
		copy(last[:p.hi%blockPlaces], p.blocks[0])
		p.blocks = append(p.blocks, last)
	case p.len() == len(p.blocks[0]):
		ring := make([]waiting, 2*p.len())
		for i := p.lo; i < p.hi; i++ {
			ring[i&uint64(len(ring)-1)] = *p.at(i)
		}
		p.blocks[0] = ring
	}
	p.hi++
	*p.at(p.hi - 1) = w
}

// removeFirst removes the delivery at lo.
func (p *places) removeFirst() {
	if p.lo++; len(p.blocks) > 1 && p.lo%blockPlaces == 0 {
		p.blocks[0] = nil // for the garbage collector
		p.blocks = p.blocks[1:]
	}
}

// shrink frees the ring if it is empty and larger than keep.
func (p *places) shrink(keep int) {
	if p.len() == 0 && len(p.blocks) > 0 && len(p.blocks[0]) > max(keep, firstPlaces) {
		p.blocks = nil
	}
}

// cost returns the memory of the blocks, in bytes.
func (p *places) cost() int {
	if len(p.blocks) == 0 {
		return 0
	}
	const header = int(unsafe.Sizeof([]waiting{}))
	return len(p.blocks)*len(p.blocks[0])*waitingSize + cap(p.blocks)*header
}

// inflight holds the deliveries that were sent with QoS 1 or 2 and are not finished, in the
// order in which they were sent. A delivery's packet identifier follows from its place, so the
// delivery that a client acknowledges is found without a search. Because clients acknowledge in
// order [MQTT-4.6.0-2], there are few places.
type inflight struct {
	places
	again uint64 // place of the next delivery to be sent again on a new connection; hi: none
	count int    // unfinished deliveries
	empty uint64 // hi when there were no places last
}

// identifiers is the number of packet identifiers.
const identifiers = 1<<16 - 1

func identifier(place uint64) uint16 { return uint16(place%identifiers) + 1 }

// full reports whether all packet identifiers are in use. If the client leaves a delivery
// unacknowledged while it acknowledges the next 65534, the next place would have the same
// identifier. Then full moves that delivery to the next place, where it keeps its identifier.
func (w *inflight) full() bool {
	for w.hi-w.lo >= identifiers && w.count < identifiers {
		moved := *w.at(w.lo)
		*w.at(w.lo) = waiting{}
		w.push(moved)
		w.trim()
	}
	return w.count >= identifiers
}

// push adds a delivery at place hi. All deliveries of earlier connections must have been sent again
// or finished first.
func (w *inflight) push(d waiting) {
	if w.again == w.hi {
		w.again++
	}
	w.places.push(d)
}

// trim moves lo to the first unfinished delivery. Places that are more than were needed of late are then freed. Otherwise
// they are kept for the client's next burst.
func (w *inflight) trim() {
	for w.lo < w.hi && w.at(w.lo).state == finished {
		w.removeFirst()
	}
	w.again = max(w.again, w.lo)
	if w.len() == 0 {
		w.shrink(4 * int(w.hi-w.empty))
		w.empty = w.hi
	}
}

// add adds a delivery that was sent, and returns its packet identifier. full must have returned false.
func (w *inflight) add(d waiting) (id uint16) {
	d.state = sent
	w.push(d)
	w.count++
	return identifier(w.hi - 1)
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
	*w.at(place) = waiting{}
	w.count--
	wasSent := place < w.again
	w.trim()
	return wasSent
}

// A queue holds the deliveries that have not been sent yet, in order.
type queue struct {
	places
	soonest time.Time // earliest expiry, possibly of a removed message; zero = no message expires
}

// mayHaveExpired reports whether a message may have expired since prune was last called.
func (q *queue) mayHaveExpired(now time.Time) bool {
	return !q.soonest.IsZero() && !now.Before(q.soonest)
}

// push adds a delivery whose message expires at a time; zero = never.
func (q *queue) push(w waiting, expires time.Time) {
	if !expires.IsZero() && (q.soonest.IsZero() || expires.Before(q.soonest)) {
		q.soonest = expires
	}
	q.places.push(w)
}

// first returns the delivery that pop removes next.
func (q *queue) first() *waiting { return q.at(q.lo) }

func (q *queue) pop() waiting {
	w := *q.first()
	q.removeFirst()
	q.shrink(0)
	return w
}
