package broker

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"unicode/utf8"
)

// The packet types (MQTT 5, 2.1.2).
const (
	typeConnect     = 1
	typeConnack     = 2
	typePublish     = 3
	typePuback      = 4
	typePubrec      = 5
	typePubrel      = 6
	typePubcomp     = 7
	typeSubscribe   = 8
	typeSuback      = 9
	typeUnsubscribe = 10
	typeUnsuback    = 11
	typePingreq     = 12
	typePingresp    = 13
	typeDisconnect  = 14
	typeAuth        = 15
)

const (
	version4 = 4 // MQTT 3.1.1
	version5 = 5
)

// maxRemaining is the largest length that a packet can announce.
const maxRemaining = 268_435_455

// frame finds the first packet in b. size is its length with the fixed header, also
// when only a part of it is there, and 0 when not even the length is complete.
func frame(b []byte) (body []byte, size int, err *Error) {
	if len(b) < 2 {
		return nil, 0, nil
	}
	n, shift := 0, 0
	for i := 1; ; i++ {
		if i == len(b) {
			return nil, 0, nil
		}
		n |= int(b[i]&0x7F) << shift
		if b[i] < 0x80 {
			size = i + 1 + n
			if size <= len(b) {
				body = b[i+1 : size]
			}
			return body, size, nil
		}
		if shift += 7; shift > 21 {
			return nil, 0, malformed("a length of more than four digits")
		}
	}
}

// checkFlags holds a first byte to MQTT 5, 2.1.3.
func checkFlags(first byte) *Error {
	want := byte(0)
	switch first >> 4 {
	case typePublish:
		if first&0x06 == 0x06 {
			return malformed("QoS 3 does not exist") // [MQTT-3.3.1-4]
		}
		if first&0x0E == 0x08 {
			return malformed("DUP with QoS 0") // [MQTT-3.3.1-2]
		}
		return nil
	case typePubrel, typeSubscribe, typeUnsubscribe:
		want = 2
	case typeConnect, typePuback, typePubrec, typePubcomp, typePingreq, typeDisconnect, typeAuth:
	default:
		return violation(fmt.Sprintf("packet type %d is not for a client to send", first>>4))
	}
	if first&0x0F != want {
		return malformed(fmt.Sprintf("flags %#x in a packet of type %d", first&0x0F, first>>4))
	}
	return nil
}

// fields takes what a packet consists of, one after the other, and remembers the first
// thing that was wrong. What it returns are parts of the packet.
type fields struct {
	body []byte
	at   int // what was taken so far
	err  *Error
}

// left is how many bytes were not taken.
func (f *fields) left() int { return len(f.body) - f.at }

func (f *fields) fail(err *Error) {
	if f.err == nil {
		f.err = err
	}
	f.at = len(f.body)
}

func (f *fields) take(n int) []byte {
	if n > len(f.body)-f.at {
		f.fail(tooShort())
		return nil
	}
	f.at += n
	return f.body[f.at-n : f.at]
}

func (f *fields) byte() byte {
	if b := f.take(1); len(b) == 1 {
		return b[0]
	}
	return 0
}

func (f *fields) uint16() uint16 {
	if b := f.take(2); len(b) == 2 {
		return binary.BigEndian.Uint16(b)
	}
	return 0
}

func (f *fields) uint32() uint32 {
	if b := f.take(4); len(b) == 4 {
		return binary.BigEndian.Uint32(b)
	}
	return 0
}

// varint takes a Variable Byte Integer.
func (f *fields) varint() int {
	n := 0
	for shift := 0; shift <= 21; shift += 7 {
		b := f.byte()
		n |= int(b&0x7F) << shift
		if b == 0 && shift > 0 { // [MQTT-1.5.5-1]
			break
		}
		if b < 0x80 {
			return n
		}
	}
	f.fail(malformed("a number of more digits than it needs, or than four"))
	return 0
}

// binary takes binary data.
func (f *fields) binary() []byte {
	rest := f.body[f.at:]
	if len(rest) >= 2 {
		if end := 2 + int(binary.BigEndian.Uint16(rest)); end <= len(rest) {
			f.at += end
			return rest[2:end]
		}
	}
	f.fail(tooShort())
	return nil
}

func tooShort() *Error { return malformed("the packet ends too early") }

// text takes a string and checks it (MQTT 5, 1.5.4).
func (f *fields) text() []byte {
	s := f.binary()
	if !validText(s) {
		f.fail(malformed("a string that is not UTF-8, or has NUL in it"))
		return nil
	}
	return s
}

func validText(s []byte) bool {
	// Most strings are ASCII: eight bytes at a time, with a doubt about what is not, and
	// about NUL. The last eight may be some that were looked at before.
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	if len(s) < 8 {
		for _, c := range s {
			if c-1 >= utf8.RuneSelf-1 {
				return utf8.Valid(s) && bytes.IndexByte(s, 0) < 0
			}
		}
		return true
	}
	x := binary.LittleEndian.Uint64(s[len(s)-8:])
	doubt := x | (x - ones)
	for rest := s; len(rest) > 8; rest = rest[8:] {
		x := binary.LittleEndian.Uint64(rest)
		doubt |= x | (x - ones)
	}
	return doubt&highs == 0 || utf8.Valid(s) && bytes.IndexByte(s, 0) < 0
}

// packetID takes a packet identifier (MQTT 5, 2.2.1).
func (f *fields) packetID() uint16 {
	id := f.uint16()
	if id == 0 {
		f.fail(violation("packet identifier 0")) // [MQTT-2.2.1-3]
	}
	return id
}

// end wants nothing to be left.
func (f *fields) end() {
	if n := f.left(); n > 0 {
		f.fail(malformed(fmt.Sprintf("%d bytes after the end of the packet", n)))
	}
}

// The properties (MQTT 5, 2.2.2.2).
const (
	propPayloadFormat    = 0x01
	propMessageExpiry    = 0x02
	propContentType      = 0x03
	propResponseTopic    = 0x08
	propCorrelation      = 0x09
	propSubscriptionID   = 0x0B
	propSessionExpiry    = 0x11
	propAssignedID       = 0x12
	propServerKeepAlive  = 0x13
	propAuthMethod       = 0x15
	propAuthData         = 0x16
	propRequestProblem   = 0x17
	propWillDelay        = 0x18
	propRequestResponse  = 0x19
	propReasonString     = 0x1F
	propReceiveMaximum   = 0x21
	propTopicAliasMax    = 0x22
	propTopicAlias       = 0x23
	propUser             = 0x26
	propMaximumPacket    = 0x27
	highestKnownProperty = 0x2A
)

// propertySet is a set of properties by their numbers.
type propertySet uint64

func setOf(kinds ...byte) propertySet {
	var s propertySet
	for _, k := range kinds {
		s |= 1 << k
	}
	return s
}

func (s propertySet) has(kind byte) bool { return s>>kind&1 != 0 }

// What a client may send with what.
const (
	messageProperties = 1<<propPayloadFormat | 1<<propMessageExpiry | 1<<propContentType |
		1<<propResponseTopic | 1<<propCorrelation | 1<<propUser
	connectProperties = propertySet(1<<propSessionExpiry | 1<<propReceiveMaximum | 1<<propMaximumPacket | 1<<propTopicAliasMax |
		1<<propRequestResponse | 1<<propRequestProblem | 1<<propUser | 1<<propAuthMethod | 1<<propAuthData)
	willProperties        = propertySet(messageProperties | 1<<propWillDelay)
	publishProperties     = propertySet(messageProperties | 1<<propTopicAlias)
	ackProperties         = propertySet(1<<propReasonString | 1<<propUser)
	subscribeProperties   = propertySet(1<<propSubscriptionID | 1<<propUser)
	unsubscribeProperties = propertySet(1 << propUser)
	disconnectProperties  = propertySet(1<<propSessionExpiry | 1<<propReasonString | 1<<propUser)
	authProperties        = propertySet(1<<propAuthMethod | 1<<propAuthData | 1<<propReasonString | 1<<propUser)
)

// properties are all that a client can send; those that came are in seen.
type properties struct {
	seen propertySet
	raw  []byte // as they came

	messageExpiry, sessionExpiry, willDelay, maxPacket uint32
	receiveMaximum, topicAlias, topicAliasMax          uint16
	requestProblem                                     byte
	subscriptionID                                     int
	contentType, responseTopic, correlation            []byte
	authMethod, authData                               []byte

	// Where Message Expiry Interval and Topic Alias are in raw, which are not passed on, and
	// the first User Property.
	expiryAt, aliasAt, userAt int
}

// properties takes the properties of a packet.
func (f *fields) properties(p *properties, allowed propertySet) {
	*p = properties{requestProblem: 1}
	raw := f.take(f.varint())
	if f.err != nil {
		return
	}
	p.raw = raw
	q := fields{body: raw}
	for q.left() > 0 {
		if rest := raw[q.at:]; rest[0] == propUser && p.seen.has(propUser) { // one of many
			if name, value, n := userProperty(rest); n > 0 && validText(name) && validText(value) {
				q.at += n
				continue
			}
		}
		q.property(p, allowed)
	}
	if q.err != nil {
		f.fail(q.err)
	}
}

// userProperty returns the User Property that b begins with, and how long it is: 0 if it is
// cut off.
func userProperty(b []byte) (name, value []byte, n int) {
	if len(b) < 3 {
		return nil, nil, 0
	}
	nameEnd := 3 + int(binary.BigEndian.Uint16(b[1:]))
	if nameEnd+2 > len(b) {
		return nil, nil, 0
	}
	end := nameEnd + 2 + int(binary.BigEndian.Uint16(b[nameEnd:]))
	if end > len(b) {
		return nil, nil, 0
	}
	return b[3:nameEnd], b[nameEnd+2 : end], end
}

// property takes one property.
func (f *fields) property(p *properties, allowed propertySet) {
	at := f.at
	kind := f.byte()
	if kind > highestKnownProperty || !allowed.has(kind) {
		// MQTT 5, 2.2.2.2, whether or not another packet has that property.
		f.fail(malformed(fmt.Sprintf("property 0x%02X is not for this packet", kind)))
		return
	}
	if kind != propUser && p.seen.has(kind) {
		f.fail(violation(fmt.Sprintf("property 0x%02X comes twice", kind)))
		return
	}
	if kind == propUser && !p.seen.has(propUser) {
		p.userAt = at
	}
	p.seen |= 1 << kind
	switch kind {
	case propUser:
		f.text()
		f.text()
	case propPayloadFormat, propRequestResponse, propRequestProblem:
		b := f.byte()
		if b > 1 {
			f.fail(violation(fmt.Sprintf("property 0x%02X is neither 0 nor 1", kind)))
		}
		if kind == propRequestProblem {
			p.requestProblem = b
		}
	case propMessageExpiry:
		p.messageExpiry, p.expiryAt = f.uint32(), at
	case propContentType:
		p.contentType = f.text()
	case propResponseTopic:
		p.responseTopic = f.text()
	case propCorrelation:
		p.correlation = f.binary()
	case propSubscriptionID:
		if p.subscriptionID = f.varint(); p.subscriptionID == 0 {
			f.fail(violation("subscription identifier 0")) // MQTT 5, 3.8.2.1.2
		}
	case propSessionExpiry:
		p.sessionExpiry = f.uint32()
	case propWillDelay:
		p.willDelay = f.uint32()
	case propReceiveMaximum:
		if p.receiveMaximum = f.uint16(); p.receiveMaximum == 0 {
			f.fail(violation("receive maximum 0")) // MQTT 5, 3.1.2.11.3
		}
	case propMaximumPacket:
		if p.maxPacket = f.uint32(); p.maxPacket == 0 {
			f.fail(violation("maximum packet size 0")) // MQTT 5, 3.1.2.11.4
		}
	case propTopicAliasMax:
		p.topicAliasMax = f.uint16()
	case propTopicAlias:
		p.topicAlias, p.aliasAt = f.uint16(), at
	case propAuthMethod:
		p.authMethod = f.text()
	case propAuthData:
		p.authData = f.binary()
	case propReasonString:
		f.text()
	}
}

// The lengths of the properties that are not passed on.
const (
	expiryLength = 1 + 4
	aliasLength  = 1 + 2
)

// passedOn appends the properties of a message that its subscribers get, unaltered and
// in their order [MQTT-3.3.2-17]; all but the Message Expiry Interval, the Topic Alias
// and the Will Delay Interval.
func (p *properties) passedOn(dst []byte) []byte {
	rest := p.raw
	at := 0
	cut := func(from, n int) {
		dst = append(dst, rest[:from-at]...)
		rest, at = rest[from-at+n:], from+n
	}
	type part struct{ from, n int }
	var parts [2]part
	n := 0
	if p.seen.has(propMessageExpiry) {
		parts[n] = part{p.expiryAt, expiryLength}
		n++
	}
	if p.seen.has(propTopicAlias) {
		parts[n] = part{p.aliasAt, aliasLength}
		n++
	}
	if n == 2 && parts[0].from > parts[1].from {
		parts[0], parts[1] = parts[1], parts[0]
	}
	for _, x := range parts[:n] {
		cut(x.from, x.n)
	}
	return append(dst, rest...)
}

// connectPacket is a CONNECT (MQTT 5, 3.1).
type connectPacket struct {
	version             byte
	cleanStart          bool
	keepAlive           uint16
	props               properties
	clientID            []byte
	hasWill             bool
	willQoS             byte
	willRetain          bool
	willProps           properties
	willTopic, willBody []byte
	hasUser             bool
	user, password      []byte
}

func decodeConnect(body []byte) (*connectPacket, *Error) {
	p := new(connectPacket)
	f := fields{body: body}
	name := f.binary()
	p.version = f.byte()
	if f.err != nil {
		return nil, f.err
	}
	switch {
	case string(name) == "MQIsdp", string(name) == "MQTT" && p.version < version4:
		p.version = version4 // answered in the words of 3.1.1
		return p, &Error{UnsupportedVersion, "this is MQTT 3.1; MQTT 5 and 3.1.1 are served"}
	case string(name) != "MQTT":
		p.version = 0
		return p, &Error{UnsupportedVersion, "the protocol's name is not MQTT"} // [MQTT-3.1.2-1]
	case p.version > version5:
		p.version = version5
		return p, &Error{UnsupportedVersion, "MQTT 5 and 3.1.1 are served"} // [MQTT-3.1.2-2]
	}
	flags := f.byte()
	p.keepAlive = f.uint16()
	p.cleanStart = flags&0x02 != 0
	p.hasWill, p.willQoS, p.willRetain = flags&0x04 != 0, flags>>3&3, flags&0x20 != 0
	hasPassword, hasUser := flags&0x40 != 0, flags&0x80 != 0
	switch {
	case flags&0x01 != 0: // [MQTT-3.1.2-3]
		f.fail(malformed("the reserved flag of CONNECT is set"))
	case p.willQoS == 3: // [MQTT-3.1.2-12]
		f.fail(malformed("a will with QoS 3"))
	case !p.hasWill && (p.willQoS != 0 || p.willRetain): // [MQTT-3.1.2-11], [MQTT-3.1.2-13]
		f.fail(malformed("flags of a will without a will"))
	case p.version == version4 && hasPassword && !hasUser: // MQTT 3.1.1, [MQTT-3.1.2-22]
		f.fail(malformed("a password without a user name"))
	}
	p.props.requestProblem = 1
	if p.version == version5 {
		f.properties(&p.props, connectProperties)
		if p.props.seen.has(propAuthData) && !p.props.seen.has(propAuthMethod) { // MQTT 5, 3.1.2.11.10
			f.fail(violation("authentication data without a method"))
		}
	}
	p.clientID = f.text()
	if p.hasWill {
		if p.version == version5 {
			f.properties(&p.willProps, willProperties)
		}
		p.willTopic = f.text()
		p.willBody = f.binary()
		switch {
		case f.err != nil:
		case len(p.willTopic) == 0: // [MQTT-4.7.3-1]
			f.fail(violation("the topic of the will is empty"))
		case !validTopic(p.willTopic):
			f.fail(&Error{TopicNameInvalid, "the topic of the will has wildcards"})
		}
		if f.err == nil && hasWildcard(p.willProps.responseTopic) { // [MQTT-3.3.2-14]
			f.fail(violation("a response topic with wildcards"))
		}
	}
	if hasUser {
		p.hasUser, p.user = true, f.text()
	}
	if hasPassword {
		p.password = f.binary()
	}
	f.end()
	return p, f.err
}

// publishPacket is a PUBLISH (MQTT 5, 3.3).
type publishPacket struct {
	dup, retain bool
	qos         byte
	id          uint16
	topic       []byte // empty: its alias stands for it
	props       properties
	payload     []byte
}

// decode reads a PUBLISH. known is a topic that need not be checked again.
func (p *publishPacket) decode(version, first byte, body, known []byte) *Error {
	f := fields{body: body}
	p.dup, p.qos, p.retain = first&8 != 0, first>>1&3, first&1 != 0
	p.topic, p.id = f.binary(), 0
	if p.qos > 0 {
		p.id = f.packetID()
	}
	if version == version5 {
		f.properties(&p.props, publishProperties)
	} else {
		p.props = properties{}
	}
	p.payload = body[f.at:]
	if f.err != nil {
		return f.err
	}
	if len(p.topic) == 0 && p.props.seen.has(propTopicAlias) {
		return nil
	}
	if len(known) > 0 && string(p.topic) == string(known) {
		return nil
	}
	switch {
	case !validText(p.topic):
		return malformed("a topic that is not UTF-8, or has NUL in it")
	case len(p.topic) == 0:
		return violation("neither a topic nor a topic alias") // MQTT 5, 3.3.2.1
	case !validTopic(p.topic): // [MQTT-3.3.2-2]
		return &Error{TopicNameInvalid, "a topic with wildcards"}
	}
	return nil
}

// ackPacket is a PUBACK, PUBREC, PUBREL or PUBCOMP (MQTT 5, 3.4 to 3.7).
type ackPacket struct {
	id   uint16
	code byte
}

func decodeAck(version byte, body []byte) (p ackPacket, err *Error) {
	f := fields{body: body}
	p.id = f.packetID()
	if version == version5 && f.left() > 0 {
		p.code = f.byte()
		if f.left() > 0 {
			var props properties
			f.properties(&props, ackProperties)
		}
	}
	f.end()
	return p, f.err
}

// checkAckCode holds the reason code of an acknowledgement to MQTT 5, 3.4.2.1 to 3.7.2.1.
func checkAckCode(kind, code byte) *Error {
	switch code {
	case Success:
		return nil
	case NoMatchingSubscriber, UnspecifiedError, 0x83, NotAuthorized, TopicNameInvalid, packetIDInUse, QuotaExceeded, 0x99:
		if kind == typePuback || kind == typePubrec {
			return nil
		}
	case packetIDNotFound:
		if kind == typePubrel || kind == typePubcomp {
			return nil
		}
	}
	return violation(fmt.Sprintf("reason code 0x%02X in a packet of type %d", code, kind))
}

// subscribePacket is a SUBSCRIBE (MQTT 5, 3.8).
type subscribePacket struct {
	id             uint16
	subscriptionID int // 0: none
	filters        []requestedFilter
}

type requestedFilter struct {
	filter      []byte
	qos         byte
	noLocal     bool
	asPublished bool
	handling    byte // of retained messages
}

func decodeSubscribe(version byte, body []byte) (p subscribePacket, err *Error) {
	f := fields{body: body}
	p.id = f.packetID()
	if version == version5 {
		var props properties
		f.properties(&props, subscribeProperties)
		p.subscriptionID = props.subscriptionID
	}
	if f.err == nil && f.left() == 0 {
		f.fail(violation("SUBSCRIBE without a topic filter")) // [MQTT-3.8.3-2]
	}
	for f.left() > 0 {
		r := requestedFilter{filter: f.text()}
		options := f.byte()
		r.qos, r.noLocal, r.asPublished, r.handling = options&3, options&4 != 0, options&8 != 0, options>>4&3
		switch {
		case f.err != nil:
		case len(r.filter) == 0: // [MQTT-4.7.3-1]
			f.fail(malformed("an empty topic filter"))
		case r.qos == 3:
			f.fail(malformed("a subscription with QoS 3"))
		case options>>6 != 0, version == version4 && options>>2 != 0: // [MQTT-3.8.3-5]
			f.fail(malformed("reserved bits of the subscription options are set"))
		case r.handling == 3:
			f.fail(violation("retain handling 3"))
		case r.noLocal && isShared(r.filter): // [MQTT-3.8.3-4]
			f.fail(violation("no local on a shared subscription"))
		}
		p.filters = append(p.filters, r)
	}
	return p, f.err
}

// unsubscribePacket is an UNSUBSCRIBE (MQTT 5, 3.10).
type unsubscribePacket struct {
	id      uint16
	filters [][]byte
}

func decodeUnsubscribe(version byte, body []byte) (p unsubscribePacket, err *Error) {
	f := fields{body: body}
	p.id = f.packetID()
	if version == version5 {
		var props properties
		f.properties(&props, unsubscribeProperties)
	}
	if f.err == nil && f.left() == 0 {
		f.fail(violation("UNSUBSCRIBE without a topic filter")) // [MQTT-3.10.3-2]
	}
	for f.left() > 0 {
		filter := f.text()
		if f.err == nil && len(filter) == 0 { // [MQTT-4.7.3-1]
			f.fail(malformed("an empty topic filter"))
		}
		p.filters = append(p.filters, filter)
	}
	return p, f.err
}

// disconnectPacket is a DISCONNECT (MQTT 5, 3.14).
type disconnectPacket struct {
	code      byte
	hasExpiry bool
	expiry    uint32
}

func decodeDisconnect(version byte, body []byte) (p disconnectPacket, err *Error) {
	f := fields{body: body}
	if version == version5 && f.left() > 0 {
		p.code = f.byte()
		if f.left() > 0 {
			var props properties
			f.properties(&props, disconnectProperties)
			p.hasExpiry, p.expiry = props.seen.has(propSessionExpiry), props.sessionExpiry
		}
	}
	f.end()
	return p, f.err
}

// authPacket is an AUTH (MQTT 5, 3.15).
type authPacket struct {
	code         byte
	method, data []byte
}

func decodeAuth(body []byte) (p authPacket, err *Error) {
	f := fields{body: body}
	if f.left() > 0 {
		p.code = f.byte()
		if f.left() > 0 {
			var props properties
			f.properties(&props, authProperties)
			p.method, p.data = props.authMethod, props.authData
		}
	}
	f.end()
	switch {
	case f.err != nil:
	case p.code != Success && p.code != ContinueAuth && p.code != reauthenticate:
		f.fail(violation(fmt.Sprintf("reason code 0x%02X in AUTH", p.code)))
	}
	return p, f.err
}
