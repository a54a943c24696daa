package emulator

import (
	"bytes"
	"crypto/tls"
	"encoding/binary"
	"io"
	"math"
	"net"
	"slices"
	"sync"
	"time"

	mqtt "github.com/mochi-mqtt/server/v2"
	"github.com/mochi-mqtt/server/v2/packets"
)

// A link is one connection's way out. Everything that goes to a client passes its
// outbox, also what mochi writes: so replies and notifications keep their order,
// one Receive Maximum holds for all deliveries, and whatever has piled up leaves
// in one write.
//
// mochi's own flow control is switched off, see hook.OnSessionEstablish: it counts
// only what mochi sends and forgets to give back the quota of messages that it
// held up. Packet ids on the wire are the link's, because mochi keeps both
// directions in one table and would take a client's request for the end of a
// delivery with the same id.
type link struct {
	net.Conn
	limit int // of the outbox, in packets

	settled    chan struct{} // closed when the session is established, or never will be
	settleOnce sync.Once
	gone       chan struct{} // closed when mochi is done with the connection

	// Guarded by Server.mu.
	client   *mqtt.Client // nil before CONNECT was accepted
	lasts    bool         // the session outlives the connection
	expires  time.Time    // when the token that the client showed ends; zero: never
	detached bool         // mochi is about to delete the session, if next is nil
	next     *link        // the connection that took the session over

	mu        sync.Mutex
	ready     sync.Cond // something for the writer
	queue     []outgoing
	waiting   []outgoing // deliveries that the Receive Maximum holds up, before queue
	flights   map[uint16]flight
	wireIDs   map[uint16]uint16 // mochi's id of a delivery to the one on the wire
	lastID    uint16
	sequence  uint64 // of deliveries
	quota     int    // the client's Receive Maximum
	maxPacket uint32 // the client's Maximum Packet Size; 0 is none
	version   byte   // of MQTT
	unacked   int    // requests whose PUBACK is not on its way
	batching  bool   // the reader is at work on a request: the writer is woken when it reads on
	closing   bool   // take nothing more, send what can be sent, close
	cutOff    bool   // close now
}

// outgoing is one packet in the outbox.
type outgoing struct {
	data  []byte
	order bool            // a PUBLISH: they keep their order
	idAt  int             // where the packet id of a PUBLISH with QoS 1 or 2 is, or 0
	mochi uint16          // the packet id that mochi gave it; 0 for the store's
	ack   bool            // the PUBACK of a request
	reply *packets.Packet // to be sent again in the client's next connection
}

// flight is a delivery that the client has not acknowledged.
type flight struct {
	mochi    uint16
	sequence uint64
	reply    *packets.Packet
}

const (
	// drain is how long a closing connection has for what is in its outbox.
	drain = time.Second

	// linger is how long a closed connection waits for the client to close its side.
	// Without, a client that was still sending would get a reset, which can overtake
	// the DISCONNECT.
	linger = 200 * time.Millisecond
)

func newLink(conn net.Conn, limit int) *link {
	l := &link{
		Conn: conn, limit: limit, settled: make(chan struct{}), gone: make(chan struct{}),
		flights: make(map[uint16]flight), wireIDs: make(map[uint16]uint16), quota: math.MaxUint16,
	}
	l.ready.L = &l.mu
	return l
}

func (l *link) settle() { l.settleOnce.Do(func() { close(l.settled) }) }

// limits takes the client's wishes from its CONNECT.
func (l *link) limits(version byte, receiveMaximum uint16, maxPacket uint32) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if receiveMaximum > 0 {
		l.quota = int(receiveMaximum)
	}
	l.maxPacket, l.version = maxPacket, version
}

// Read is called by mochi when it has worked on all that came. What it queued
// meanwhile goes out in one write.
func (l *link) Read(p []byte) (int, error) {
	l.hold(false)
	n, err := l.Conn.Read(p)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closing { // goodbye may have taken bytes before these
		return 0, net.ErrClosed
	}
	return n, err
}

// hold keeps the writer asleep until the next Read, or wakes it.
func (l *link) hold(on bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.batching = on
	if !on && len(l.queue) > 0 {
		l.ready.Signal()
	}
}

// Write takes whole packets from mochi. It never blocks.
func (l *link) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closing || l.cutOff {
		return 0, net.ErrClosed
	}
	for rest := bytes.Clone(p); len(rest) > 0; {
		size := packetSize(rest)
		out := newOutgoing(rest[:size:size])
		switch out.kind() {
		case packets.Publish:
			if out.idAt > 0 {
				out.mochi = binary.BigEndian.Uint16(out.data[out.idAt:])
			}
		case packets.Pubrel:
			l.translate(out.data)
		}
		l.push(out)
		rest = rest[size:]
	}
	return len(p), nil
}

// translate puts the id on the wire into a PUBREL of mochi.
func (l *link) translate(data []byte) {
	at := 1 + varintSize(data[1:])
	if at+2 > len(data) {
		return
	}
	if id, ok := l.wireIDs[binary.BigEndian.Uint16(data[at:])]; ok {
		binary.BigEndian.PutUint16(data[at:], id)
	}
}

// push adds a packet. An outbox that is full ends the connection.
func (l *link) push(out outgoing) {
	if l.closing || l.cutOff {
		return
	}
	if len(l.queue)+len(l.waiting) >= l.limit {
		l.end(packets.ErrQuotaExceeded.Code)
		return
	}
	l.queue = append(l.queue, out)
	if !l.batching {
		l.ready.Signal()
	}
}

// end empties the outbox for a DISCONNECT and closes behind it. A CONNACK stays: it comes
// before any other packet (MQTT 5, 3.2), and the client need not wait for it.
func (l *link) end(reason byte) {
	if l.closing || l.cutOff {
		return
	}
	l.queue = slices.DeleteFunc(l.queue, func(out outgoing) bool { return out.kind() != packets.Connack })
	l.waiting = nil
	if l.version >= 5 { // before, servers had no DISCONNECT
		l.queue = append(l.queue, outgoing{data: []byte{packets.Disconnect << 4, 2, reason, 0}})
	}
	l.finish()
}

// finish lets the writer send what can be sent and then close.
func (l *link) finish() {
	if l.closing || l.cutOff {
		return
	}
	l.closing = true
	// The error would be that of a connection that is closed already.
	_ = l.Conn.SetWriteDeadline(time.Now().Add(drain))
	l.ready.Signal()
}

// puback acknowledges a request.
func (l *link) puback(id uint16, reason byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	data := []byte{packets.Puback << 4, 2, byte(id >> 8), byte(id)}
	if reason != 0 {
		data = []byte{packets.Puback << 4, 4, byte(id >> 8), byte(id), reason, 0}
	}
	l.push(outgoing{data: data, ack: true})
}

// publish sends a message of the store. It tells whether the client's Maximum
// Packet Size let it through (MQTT 5, 3.1.2.11.4). again keeps a message with QoS 1
// for the client's next connection.
func (l *link) publish(pk packets.Packet, again bool) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	pk.ProtocolVersion = l.version
	pk.FixedHeader.Type = packets.Publish
	pk.Mods.AllowResponseInfo = true // without it mochi leaves the correlation data out
	if pk.FixedHeader.Qos > 0 {
		pk.PacketID = 1 // any: the writer gives it
	}
	var buf bytes.Buffer
	if err := pk.PublishEncode(&buf); err != nil {
		return false
	}
	if l.maxPacket > 0 && uint64(buf.Len()) > uint64(l.maxPacket) {
		return false
	}
	out := newOutgoing(buf.Bytes())
	if again && pk.FixedHeader.Qos > 0 {
		out.reply = &pk
	}
	l.push(out)
	return true
}

// received counts a request that awaits its PUBACK and tells whether the client
// may have that many.
func (l *link) received(limit int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.unacked++
	return l.unacked <= limit
}

// disconnect ends the connection with a reason. Nothing that waits is sent.
func (l *link) disconnect(reason byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.end(reason)
}

// cut closes the connection without a word.
func (l *link) cut() {
	l.mu.Lock()
	l.cutOff = true
	l.ready.Signal()
	l.mu.Unlock()
	raw := l.Conn
	if w, ok := raw.(*webSocket); ok {
		raw = w.Conn
	}
	if t, ok := raw.(*tls.Conn); ok { // whose Close would say goodbye
		raw = t.NetConn()
	}
	_ = raw.Close()
}

// Close is mochi's: the client left or is to leave.
func (l *link) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.finish()
	return nil
}

// SetDeadline is mochi's keep-alive. It must not take back the limits that a closing
// connection has.
func (l *link) SetDeadline(t time.Time) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closing {
		return nil
	}
	return l.Conn.SetDeadline(t)
}

// run is the writer. It ends with the connection.
func (l *link) run() {
	defer l.cut()
	var buf []byte
	for {
		var ok bool
		if buf, ok = l.batch(buf[:0]); !ok {
			l.goodbye()
			return
		}
		if _, err := l.Conn.Write(buf); err != nil {
			return
		}
	}
}

// goodbye closes our side and waits a moment for the client's. Errors are those of a
// connection that is gone already.
func (l *link) goodbye() {
	conn := l.Conn
	if w, ok := conn.(*webSocket); ok {
		w.goodbye()
		conn = w.Conn
	}
	if t, ok := conn.(*tls.Conn); ok {
		_ = t.CloseWrite()
		conn = t.NetConn()
	}
	half, ok := conn.(interface{ CloseWrite() error })
	if !ok || half.CloseWrite() != nil {
		return
	}
	_ = conn.SetReadDeadline(time.Now().Add(linger))
	_, _ = io.Copy(io.Discard, conn)
}

// batch waits for packets that may be sent and appends them to buf. It is false
// when there will be none any more.
func (l *link) batch(buf []byte) ([]byte, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for {
		if l.cutOff {
			return nil, false
		}
		if buf = l.take(buf); len(buf) > 0 {
			return buf, true
		}
		if l.closing {
			return nil, false
		}
		l.ready.Wait()
	}
}

// take moves what may be sent out of the outbox.
func (l *link) take(buf []byte) []byte {
	for len(l.waiting) > 0 && l.mayFly(l.waiting[0]) {
		buf = l.launch(buf, l.waiting[0])
		l.waiting[0] = outgoing{}
		l.waiting = l.waiting[1:]
	}
	for _, out := range l.queue {
		if out.order && (len(l.waiting) > 0 || !l.mayFly(out)) {
			l.waiting = append(l.waiting, out)
			continue
		}
		buf = l.launch(buf, out)
	}
	clear(l.queue)
	l.queue = l.queue[:0]
	return buf
}

func (l *link) mayFly(out outgoing) bool { return out.idAt == 0 || len(l.flights) < l.quota }

func (l *link) launch(buf []byte, out outgoing) []byte {
	if out.ack {
		l.unacked--
	}
	if out.idAt > 0 {
		id := l.freeID(out.mochi)
		l.sequence++
		l.flights[id] = flight{out.mochi, l.sequence, out.reply}
		if out.mochi != 0 {
			l.wireIDs[out.mochi] = id
		}
		binary.BigEndian.PutUint16(out.data[out.idAt:], id)
	}
	return append(buf, out.data...)
}

// freeID returns the wanted packet id if it is free, else one from the upper end,
// away from mochi's, which count up from 1: so its ids are the same on the wire,
// also when it sends a message again in a later connection. There is a free one:
// the quota is at most their number.
func (l *link) freeID(wanted uint16) uint16 {
	if wanted != 0 {
		if _, taken := l.flights[wanted]; !taken {
			return wanted
		}
	}
	for {
		l.lastID--
		if l.lastID == 0 {
			l.lastID = math.MaxUint16
		}
		if _, taken := l.flights[l.lastID]; !taken {
			return l.lastID
		}
	}
}

// acknowledged takes a PUBACK, PUBREC or PUBCOMP and returns the packet id that
// mochi knows it by. 0 is a message that is not mochi's.
func (l *link) acknowledged(id uint16, done bool) uint16 {
	l.mu.Lock()
	defer l.mu.Unlock()
	f, ok := l.flights[id]
	if !ok {
		return 0
	}
	if done {
		delete(l.flights, id)
		delete(l.wireIDs, f.mochi)
		l.ready.Signal()
	}
	return f.mochi
}

// leftovers returns the replies that the client has not acknowledged, with the
// packet id of those that were sent.
func (l *link) leftovers() []packets.Packet {
	l.mu.Lock()
	defer l.mu.Unlock()
	type sent struct {
		id uint16
		flight
	}
	var flown []sent
	for id, f := range l.flights {
		if f.reply != nil {
			flown = append(flown, sent{id, f})
		}
	}
	slices.SortFunc(flown, func(a, b sent) int { return int(a.sequence) - int(b.sequence) })
	var left []packets.Packet
	for _, f := range flown {
		pk := *f.reply
		pk.PacketID = f.id
		left = append(left, pk)
	}
	for _, out := range slices.Concat(l.waiting, l.queue) {
		if out.reply != nil {
			pk := *out.reply
			pk.PacketID = 0
			left = append(left, pk)
		}
	}
	return left
}

func (out outgoing) kind() byte { return out.data[0] >> 4 }

// newOutgoing finds the packet id of a PUBLISH.
func newOutgoing(data []byte) outgoing {
	out := outgoing{data: data}
	if out.kind() != packets.Publish {
		return out
	}
	out.order = true
	if data[0]&0x06 != 0 {
		topicAt := 1 + varintSize(data[1:])
		out.idAt = topicAt + 2 + int(binary.BigEndian.Uint16(data[topicAt:]))
	}
	return out
}

// packetSize is the length of the first packet in p, which holds whole packets.
func packetSize(p []byte) int {
	remaining, shift := 0, 0
	for i := 1; i < len(p) && i <= 4; i++ {
		remaining |= int(p[i]&0x7f) << shift
		shift += 7
		if p[i] < 0x80 {
			return min(i+1+remaining, len(p))
		}
	}
	return len(p)
}

// varintSize is the length of the remaining length field at the start of p.
func varintSize(p []byte) int {
	for i, b := range p {
		if b < 0x80 {
			return i + 1
		}
	}
	return len(p)
}
