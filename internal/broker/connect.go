package broker

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"encoding/binary"
	"math"
	"time"
)

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
	user, password      []byte
}

// decodeConnect reads a CONNECT. If decodeConnect returns both a packet and an error, the packet's
// version is the protocol version of the CONNACK, if the broker sends one. If the packet is nil or
// its version is 0, the broker sends no CONNACK.
func decodeConnect(body []byte) (*connectPacket, *Error) {
	p := new(connectPacket)
	d := decoder{body: body}
	name := d.binary()
	p.version = d.byte()
	if d.err != nil {
		return nil, d.err
	}
	switch {
	case string(name) == "MQIsdp", string(name) == "MQTT" && p.version < version4:
		p.version = version4 // answered as in 3.1.1
		return p, &Error{UnsupportedVersion, "MQTT 3.1 is not supported, only MQTT 5 and 3.1.1"}
	case string(name) != "MQTT":
		p.version = 0
		return p, &Error{UnsupportedVersion, "the protocol name is not MQTT"} // [MQTT-3.1.2-1]
	case p.version > version5:
		p.version = version5
		return p, &Error{UnsupportedVersion, "only MQTT 5 and 3.1.1 are supported"} // [MQTT-3.1.2-2]
	}
	flags := d.byte()
	p.keepAlive = d.uint16()
	p.cleanStart = flags&0x02 != 0
	p.hasWill, p.willQoS, p.willRetain = flags&0x04 != 0, flags>>3&3, flags&0x20 != 0
	hasPassword, hasUser := flags&0x40 != 0, flags&0x80 != 0
	switch {
	case flags&0x01 != 0: // [MQTT-3.1.2-3]
		d.fail(malformed("the reserved flag of CONNECT is set"))
	case p.willQoS == 3: // [MQTT-3.1.2-12]
		d.fail(malformed("a will with QoS 3"))
	case !p.hasWill && (p.willQoS != 0 || p.willRetain): // [MQTT-3.1.2-11], [MQTT-3.1.2-13]
		d.fail(malformed("flags of a will without a will"))
	case p.version == version4 && hasPassword && !hasUser: // MQTT 3.1.1, [MQTT-3.1.2-22]
		d.fail(malformed("a password without a user name"))
	}
	if p.version == version5 {
		d.properties(&p.props, connectProperties)
		if p.props.seen.has(propAuthData) && !p.props.seen.has(propAuthMethod) { // MQTT 5, 3.1.2.11.10
			d.fail(violation("authentication data without a method"))
		}
	}
	p.clientID = d.text()
	if p.hasWill {
		p.decodeWill(&d)
	}
	if hasUser {
		p.user = d.text()
	}
	if hasPassword {
		p.password = d.binary()
	}
	d.end()
	return p, d.err
}

func (p *connectPacket) decodeWill(d *decoder) {
	if p.version == version5 {
		d.properties(&p.willProps, willProperties)
	}
	p.willTopic = d.text()
	p.willBody = d.binary()
	switch {
	case d.err != nil:
	case len(p.willTopic) == 0: // [MQTT-4.7.3-1]
		d.fail(violation("the topic of the will is empty"))
	case hasWildcard(p.willTopic):
		d.fail(&Error{TopicNameInvalid, "the topic of the will has wildcards"})
	case p.willProps.seen.has(propResponseTopic) && !validTopic(p.willProps.bytes(propResponseTopic)): // [MQTT-3.3.2-14], [MQTT-4.7.3-1]
		d.fail(violation("the response topic of the will is empty or has wildcards"))
	}
}

func (c *Client) handleConnect(body []byte) *Error {
	// Later packets may overwrite body before the login is decided.
	p, err := decodeConnect(bytes.Clone(body))
	if p != nil {
		c.Version = p.version
	}
	if err != nil {
		if c.Version == version4 && err.Code == UnsupportedVersion { // other errors are not answered [MQTT-3.1.4-1]
			c.refuse(Verdict{Code: err.Code})
		}
		return err
	}
	c.connect = p
	c.ID = string(p.clientID)
	c.maxPacket = int(min(p.props.number(propMaximumPacket), math.MaxInt32))
	switch {
	case c.ID != "":
	case p.version == version4 && !p.cleanStart: // MQTT 3.1.1, [MQTT-3.1.3-8]
		return c.refuse(Verdict{Code: InvalidClientID, Text: "a persistent session needs a client id"})
	default:
		c.ID = "auto-" + rand.Text() // [MQTT-3.1.3-6]
	}
	c.login = &Login{
		ClientID: c.ID, Username: string(p.user), Password: p.password,
		Method: string(p.props.bytes(propAuthMethod)), Data: p.props.bytes(propAuthData), Client: c,
	}
	if c.tls != nil {
		state := c.tls.ConnectionState()
		c.login.TLS = &state
	}
	return c.authenticate()
}

// refuse sends a CONNACK with an error code and closes the connection [MQTT-3.2.2-7].
func (c *Client) refuse(v Verdict) *Error {
	if c.isClosing() {
		return nil
	}
	if c.b.opts.Refused != nil {
		c.b.opts.Refused(c, v)
	}
	body := []byte{0, connackCode3(v.Code)}
	if c.Version != version4 {
		body = appendProperties([]byte{0, v.Code}, c.reasonString(v.Text))
	}
	c.packet(typeConnack<<4, body)
	c.connack = len(c.out)
	c.disconnect(v.Code, "")
	return nil
}

// openSession resumes or creates the client's session and sends CONNACK. If another connection is
// using the session, openSession first ends that connection [MQTT-3.1.4-3]. What the client may no longer
// receive is removed from the session. openSession refuses the client if the session belongs to another user,
// the will is not authorized, or a limit is exceeded.
func (c *Client) openSession(v Verdict) *Error {
	b, p := c.b, c.connect
	if !c.claimSession() || c.isClosing() {
		return c.refuse(Verdict{Code: InvalidClientID, Text: "the client id is in use by another user"})
	}
	if p.hasWill && !b.may(c.Identity, string(p.willTopic), true) {
		return c.refuse(Verdict{Code: NotAuthorized, Text: "not authorized to publish to the topic of the will"})
	}
	var newWill *will
	cost := c.fixedCost() + v.Memory
	if p.hasWill {
		if b.unawaited > b.opts.MaxBytes/maxUnawaited {
			return c.refuse(Verdict{Code: QuotaExceeded, Text: "there are too many wills to be published"})
		}
		newWill = p.will()
		cost += newWill.msg.cost()
	}
	c.keepAlive = time.Duration(p.keepAlive) * time.Second
	serverKeepAlive := false
	if limit := b.opts.KeepAlive; p.version == version5 && limit > 0 && (c.keepAlive == 0 || c.keepAlive > limit) {
		c.keepAlive, serverKeepAlive = limit, true
	}
	connack := c.connackBody(v, serverKeepAlive)
	if !c.accepts(len(connack)) { // [MQTT-3.1.2-24]
		return c.refuse(Verdict{Code: packetTooLarge})
	}
	s := b.sessions[c.ID]
	if s == nil {
		cost += sessionOverhead + len(c.ID) + len(c.Username)
	} else {
		cost -= b.reserve() + min(b.opts.MaxBytes/resumeShare, maxResume)
	}
	if !b.affords(cost) || s == nil && len(b.sessions) >= b.opts.MaxSessions && !b.makeRoomFor(c.Username) {
		return c.refuse(Verdict{Code: QuotaExceeded, Text: "there are too many sessions"})
	}
	if s != nil && p.cleanStart { // [MQTT-3.1.2-4]
		b.removeSession(s)
		s = nil
	}
	if s != nil {
		connack[0] = 1 // session present
		s.resume()
	} else {
		s = b.newSession(c.Identity)
	}
	s.client, c.session = c, s
	s.belongTo(c.Identity, v.Memory)
	c.ticket.LoggedIn()
	c.reserved, c.overhead = 0, c.fixedCost()
	b.charge(c.overhead)
	switch {
	case p.version == version5:
		s.expiry = p.props.number(propSessionExpiry)
	case p.cleanStart:
		s.expiry = 0
	default:
		s.expiry = neverExpires
	}
	s.setWill(newWill)
	c.receiveMax = int(cmp.Or(p.props.number(propReceiveMaximum), identifiers))
	c.quota = c.receiveMax
	c.aliasMax = uint16(min(p.props.number(propTopicAliasMax), maxOutgoingAliases))
	c.readDeadline(c.keepAlive + c.keepAlive/2)
	c.queuePacket(typeConnack<<4, connack) // even if the resumed session exceeds Limits.Outbox
	c.connack = len(c.out)
	c.connect, c.login.Password, c.login.Data, c.login.Username = nil, nil, nil, ""
	b.stats.Clients++
	b.changed = true
	if b.opts.Connected != nil {
		b.opts.Connected(c)
	}
	s.sendPending()
	return nil
}

// claimSession disconnects the client that is using the session, if any, and removes from the session what c may not
// receive. It may unlock the broker. It returns false if the session belongs to another user.
func (c *Client) claimSession() bool {
	for {
		s := c.b.sessions[c.ID]
		switch {
		case s == nil:
			return true
		case s.user != c.Username:
			return false
		case c.isClosing():
			return true
		case s.client != nil:
			s.client.takeOver()
		case c.connect.cleanStart || s.reauthorize(c.Identity, new(time.Time)):
			return true
		}
	}
}

// resumeShare: clients that resume their sessions may exceed the budget by 1/resumeShare of its size, at most by maxResume, besides
// the reserve, which others may already have used.
const resumeShare = 8

// maxOutgoingAliases is the maximum number of Topic Aliases that the broker uses for one client.
const maxOutgoingAliases = 256

// connackBody returns the body of a CONNACK that accepts the client, with no session present. Its
// properties state the broker's limits and any values that replace values in the CONNECT (MQTT 5,
// 3.2.2.3).
func (c *Client) connackBody(v Verdict, serverKeepAlive bool) []byte {
	if c.Version == version4 {
		return []byte{0, 0}
	}
	o := &c.b.opts
	props := binary.BigEndian.AppendUint16([]byte{propReceiveMaximum}, o.ReceiveMaximum)
	props = binary.BigEndian.AppendUint16(append(props, propTopicAliasMax), o.TopicAliasMaximum)
	if o.MaxPacketSize > 0 {
		props = binary.BigEndian.AppendUint32(append(props, propMaximumPacket), o.MaxPacketSize)
	}
	if len(c.connect.clientID) == 0 {
		props = appendString(append(props, propAssignedID), c.ID) // [MQTT-3.2.2-16]
	}
	if serverKeepAlive {
		props = binary.BigEndian.AppendUint16(append(props, propServerKeepAlive), uint16(c.keepAlive/time.Second))
	}
	if c.login.Method != "" { // [MQTT-4.12.0-5]
		props = c.appendAuth(props, v.Data)
	}
	return appendProperties([]byte{0, Success}, props)
}
