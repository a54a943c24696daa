package broker

import (
	"crypto/rand"
	"crypto/tls"
	"encoding/binary"
	"math"
	"time"
)

// A Login holds a client's credentials.
type Login struct {
	ClientID string
	Username string
	Password []byte // nil: none

	// Enhanced authentication (MQTT 5, 4.12). Method is empty if there is none, Data comes
	// from the last packet, and Again is true for a client that is connected already.
	Method string
	Data   []byte
	Again  bool

	TLS *tls.ConnectionState // nil: no TLS

	// Client is the connection. State is for the callback, between the packets of one login.
	Client *Client
	State  any
}

// A Verdict is the decision on a [Login].
type Verdict struct {
	// Code is 0 to let the client in, 0x18 to send Data in AUTH and wait for the client's
	// next, and else the reason code of CONNACK, or DISCONNECT if the client was connected.
	Code     byte
	Text     string // reason, for people
	Data     []byte // authentication data
	Username string // the client's name from now on; empty: the one that it gave
}

// hello takes a CONNECT (MQTT 5, 3.1).
func (c *Client) hello(body []byte) *Error {
	p, err := decodeConnect(body)
	if p != nil {
		c.Version = p.version
	}
	if err != nil {
		if p == nil || p.version == 0 {
			c.Version = 0 // no answer that it would understand
		}
		if c.Version == version4 && err.Code == UnsupportedVersion { // but for that, [MQTT-3.1.4-1] wants silence
			c.refuse(Verdict{Code: err.Code})
		}
		return err
	}
	// Later packets may overwrite this one before the login is decided.
	c.connect = p.clone()
	p = c.connect
	c.ID = string(p.clientID)
	c.maxPacket = int(min(p.props.maxPacket, math.MaxInt32))
	switch {
	case c.ID != "":
	case p.version == version4 && !p.cleanStart: // MQTT 3.1.1, [MQTT-3.1.3-8]
		return c.refuse(Verdict{Code: InvalidClientID, Text: "a client id is wanted for a session that lasts"})
	default:
		c.ID = "auto-" + rand.Text() // [MQTT-3.1.3-6]
	}
	c.login = &Login{
		ClientID: c.ID, Username: string(p.user), Password: p.password,
		Method: string(p.props.authMethod), Data: p.props.authData, Client: c,
	}
	if t := tlsOf(c.nc); t != nil {
		state := t.ConnectionState()
		c.login.TLS = &state
	}
	return c.judge()
}

// clone returns a copy that does not share memory with the packet.
func (p *connectPacket) clone() *connectPacket {
	q := *p
	for _, s := range []*[]byte{
		&q.clientID, &q.willTopic, &q.willBody, &q.user, &q.password, &q.props.authMethod, &q.props.authData, &q.willProps.raw,
	} {
		if *s != nil {
			*s = append(make([]byte, 0, len(*s)), *s...)
		}
	}
	q.props.raw = nil
	q.willProps.contentType, q.willProps.responseTopic, q.willProps.correlation = nil, nil, nil
	return &q
}

// judge asks Options.Login, without the lock, and acts on the verdict.
func (c *Client) judge() *Error {
	b := c.b
	c.challenged = false
	v := Verdict{}
	switch {
	case b.opts.Login != nil:
		b.Unlock()
		v = b.opts.Login(c.login)
		b.Lock()
		if c.ending || c.cutOff {
			return nil
		}
	case c.login.Method != "": // [MQTT-4.12.0-1]
		v = Verdict{Code: BadAuthMethod, Text: "no authentication method is known"}
	}
	if v.Code == ContinueAuth {
		c.challenged = true
		c.sendAuth(ContinueAuth, v.Data)
		return nil
	}
	if v.Code >= UnspecifiedError {
		if c.login.Again {
			return &Error{v.Code, v.Text} // [MQTT-4.12.1-2]
		}
		return c.refuse(v)
	}
	c.Username = c.login.Username
	if v.Username != "" {
		c.Username = v.Username
	}
	if c.login.Again {
		c.sendAuth(Success, v.Data)
		return nil
	}
	return c.attach(v)
}

// authPacket takes an AUTH (MQTT 5, 3.15).
func (c *Client) authPacket(body []byte) *Error {
	if c.Version != version5 {
		return malformed("AUTH in MQTT 3.1.1")
	}
	p, err := decodeAuth(body)
	if err != nil {
		return err
	}
	switch {
	case c.login.Method == "" || string(p.method) != c.login.Method: // [MQTT-4.12.0-5], [MQTT-4.12.1-1]
		return violation("AUTH with another authentication method than CONNECT")
	case p.code == ContinueAuth && !c.challenged, p.code == reauthenticate && c.session == nil, p.code == Success: // [MQTT-4.12.0-3]
		return violation("AUTH out of turn")
	}
	c.login.Data = append([]byte{}, p.data...)
	if c.session != nil {
		c.login.Again = true
	}
	return c.judge()
}

func (c *Client) sendAuth(code byte, data []byte) {
	props := appendString([]byte{propAuthMethod}, c.login.Method)
	if data != nil {
		props = appendString(append(props, propAuthData), data)
	}
	c.packet(typeAuth<<4, append(binary.AppendUvarint([]byte{code}, uint64(len(props))), props...))
}

// refuse sends a CONNACK that does not let the client in, and closes [MQTT-3.2.2-7].
func (c *Client) refuse(v Verdict) *Error {
	if c.ending || c.cutOff {
		return nil
	}
	if c.b.opts.Refused != nil {
		c.b.opts.Refused(c, v)
	}
	if c.Version == version4 {
		c.packet(typeConnack<<4, []byte{0, connackCode3(v.Code)})
	} else {
		var props []byte
		if v.Text != "" && (c.maxPacket == 0 || len(v.Text)+20 < c.maxPacket) {
			props = appendString([]byte{propReasonString}, v.Text)
		}
		c.packet(typeConnack<<4, append(binary.AppendUvarint([]byte{0, v.Code}, uint64(len(props))), props...))
	}
	c.connack = len(c.out)
	c.end(v.Code, "")
	return nil
}

// attach gives a client its session, and takes it from another connection
// [MQTT-3.1.4-3].
func (c *Client) attach(v Verdict) *Error {
	b, p := c.b, c.connect
	if p.hasWill && !c.may(string(p.willTopic), true) {
		return c.refuse(Verdict{Code: NotAuthorized, Text: "the topic of the will is not for this client"})
	}
	var last *will
	cost := sessionOverhead + len(c.ID)
	if p.hasWill {
		last = newWill(p)
		cost += last.msg.cost()
	}
	c.keepAlive = time.Duration(p.keepAlive) * time.Second
	serverKeepAlive := false
	if limit := b.opts.KeepAlive; p.version == version5 && limit > 0 && (c.keepAlive == 0 || c.keepAlive > limit) {
		c.keepAlive, serverKeepAlive = limit, true
	}
	connack := c.connackBody(v, serverKeepAlive)
	if !c.takes(len(connack)) { // [MQTT-3.1.2-24]
		return c.refuse(Verdict{Code: packetTooLarge})
	}
	if s := b.sessions[c.ID]; s != nil && s.client != nil {
		s.client.end(sessionTakenOver, "")
	}
	s := b.sessions[c.ID]
	if s == nil && (len(b.sessions) >= b.opts.MaxSessions || !b.affords(cost)) || s != nil && last != nil && !b.affords(last.msg.cost()) {
		return c.refuse(Verdict{Code: QuotaExceeded, Text: "there are too many sessions"})
	}
	if s != nil && p.cleanStart { // [MQTT-3.1.2-4]
		b.endSession(s)
		s = nil
	}
	present := s != nil
	if present {
		s.wake()
	} else {
		s = b.newSession(c.ID)
	}
	s.client, c.session = c, s
	switch {
	case p.version == version5:
		s.expiry = p.props.sessionExpiry
	case p.cleanStart:
		s.expiry = 0
	default:
		s.expiry = neverExpires
	}
	s.setWill(last)
	c.mayHave = identifiers
	if n := int(p.props.receiveMaximum); n > 0 {
		c.mayHave = n
	}
	c.quota = c.mayHave
	c.aliasMax = min(p.props.topicAliasMax, maxOutgoingAliases)
	c.readDeadline(c.keepAlive + c.keepAlive/2)
	if present {
		connack[0] = 1
	}
	c.packet(typeConnack<<4, connack)
	c.connack = len(c.out)
	c.connect, c.login.Password, c.login.Data = nil, nil, nil
	b.stats.Clients++
	b.changed = true
	if b.opts.Connected != nil {
		b.opts.Connected(c)
	}
	s.pump()
	return nil
}

// maxOutgoingAliases bounds the topics that the broker remembers for a client.
const maxOutgoingAliases = 256

// connackBody is the body of the CONNACK that accepts the client, with no session present: it
// says what is not as the client asked for or as MQTT presumes (MQTT 5, 3.2.2.3).
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
		props = appendString(append(props, propAuthMethod), c.login.Method)
		if v.Data != nil {
			props = appendString(append(props, propAuthData), v.Data)
		}
	}
	return append(binary.AppendUvarint([]byte{0, Success}, uint64(len(props))), props...)
}

func tlsOf(nc any) *tls.Conn {
	if w, ok := nc.(*webSocket); ok {
		nc = w.Conn
	}
	t, _ := nc.(*tls.Conn)
	return t
}
