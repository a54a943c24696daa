package broker

import "unsafe"

// A waiting is a delivery in inflight or pending. It has no pointers, because the garbage collector would follow
// each, in millions of deliveries that clients may leave waiting.
type waiting struct {
	msg       slot // of a message; none = sent, and no longer needed
	ids       slot // of an identifierList
	group     slot // of a group; none = not for a shared subscription
	qos       byte
	retain    bool
	transient bool // discarded when the connection ends
	state     byte // see finished, sent and released
}

const waitingSize = int(unsafe.Sizeof(waiting{}))

// The states of a delivery that was sent with QoS 1 or 2.
const (
	finished = iota
	sent
	released // PUBREC was received, PUBREL was sent
)

// A slot stands for a value in [slots]; none = no value.
type slot uint32

const none slot = 0

// A slots has a slot for each value that is held, and counts the holders.
type slots[T any] struct {
	blocks []*[slotBlock]held[T]
	free   slot // the first free one; none = all are used
	values int
}

type held[T any] struct {
	value   *T     // nil = the slot is free
	holders uint32 // or, if the slot is free, the next free one
}

const slotBlock = 1024

// at returns what is in a slot that is not none.
func (s *slots[T]) at(i slot) *held[T] {
	return &s.blocks[(i-1)/slotBlock][(i-1)%slotBlock]
}

// get returns the value in a slot, or nil for none.
func (s *slots[T]) get(i slot) *T {
	if i == none {
		return nil
	}
	return s.at(i).value
}

// hold adds a holder of a value, whose slot is *i. first reports whether it had none, so that *i was none.
func (s *slots[T]) hold(value *T, i *slot) (first bool) {
	if first = *i == none; first {
		if s.free == none {
			s.grow()
		}
		*i = s.free
		entry := s.at(*i)
		s.free = slot(entry.holders)
		*entry = held[T]{value: value}
		s.values++
	}
	s.at(*i).holders++
	return first
}

func (s *slots[T]) grow() {
	block, first := new([slotBlock]held[T]), slot(len(s.blocks)*slotBlock+1)
	for i := range block[:slotBlock-1] {
		block[i].holders = uint32(first) + uint32(i) + 1
	}
	s.blocks, s.free = append(s.blocks, block), first
}

// release removes a holder of the value in a slot. last reports whether the slot is free now.
func (s *slots[T]) release(i slot) (last bool) {
	entry := s.at(i)
	if entry.holders--; entry.holders > 0 {
		return false
	}
	*entry = held[T]{holders: uint32(s.free)}
	s.free = i
	if s.values--; s.values == 0 && len(s.blocks) > 1 {
		*s = slots[T]{}
	}
	return true
}

// cost returns the memory of the slots without the first block, which each broker has, in bytes.
func (s *slots[T]) cost() int {
	if len(s.blocks) <= 1 {
		return 0
	}
	return (len(s.blocks)-1)*int(unsafe.Sizeof([slotBlock]held[T]{})) + cap(s.blocks)*word
}

// hold charges what a delivery refers to, once however many deliveries hold it. It returns the delivery as inflight and
// pending keep it.
func (s *session) hold(d *delivery) waiting {
	b, w := s.b, waiting{qos: d.qos, retain: d.retain, transient: d.transient}
	if m := d.msg; m != nil {
		if b.messages.hold(m, &m.slot) {
			b.charge(m.cost())
		}
		w.msg = m.slot
		s.held += m.cost()
	}
	if l := d.ids; l != nil {
		if b.identifiers.hold(l, &l.slot) {
			b.charge(l.cost())
		}
		w.ids = l.slot
		s.held += l.cost()
	}
	if g := d.group; g != nil {
		b.groups.hold(g, &g.slot)
		w.group = g.slot
	}
	b.chargeSlots()
	return w
}

// delivery returns a delivery as it was held.
func (b *Broker) delivery(w *waiting) delivery {
	return delivery{
		msg: b.messages.get(w.msg), ids: b.identifiers.get(w.ids), group: b.groups.get(w.group),
		qos: w.qos, retain: w.retain, transient: w.transient,
	}
}

// release undoes hold. The delivery refers to nothing afterwards.
func (s *session) release(w *waiting) {
	b, d := s.b, s.b.delivery(w)
	if m := d.msg; m != nil {
		if b.messages.release(w.msg) {
			m.slot = none
			b.charge(-m.cost())
		}
		s.held -= m.cost()
	}
	if l := d.ids; l != nil {
		if b.identifiers.release(w.ids) {
			l.slot = none
			b.charge(-l.cost())
		}
		s.held -= l.cost()
	}
	if g := d.group; g != nil && b.groups.release(w.group) {
		g.slot = none
	}
	w.msg, w.ids, w.group = none, none, none
	b.chargeSlots()
}

// chargeSlots charges the memory of the slots themselves, after one of them has changed.
func (b *Broker) chargeSlots() {
	if n := b.messages.cost() + b.identifiers.cost() + b.groups.cost(); n != b.slotBytes {
		b.charge(n - b.slotBytes)
		b.slotBytes = n
	}
}
