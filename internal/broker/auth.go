package broker

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"time"
)

// A Login holds a client's credentials.
type Login struct {
	ClientID string
	Username string // from CONNECT, not verified; empty if Again is true
	Password []byte // nil = none, or Again is true

	// Enhanced authentication (MQTT 5, 4.12). Method is empty if the client did not ask for it.
	// Data is from the last CONNECT or AUTH. Again is true if the client is already connected.
	Method string
	Data   []byte
	Again  bool

	TLS *tls.ConnectionState // nil = no TLS

	Client *Client // the connection that logs in
}

// A Verdict is the decision on a [Login].
type Verdict struct {
	// Code is 0 to accept the client, 0x18 to send Data in AUTH and wait for the client's next
	// AUTH, or an error code (0x80 or more) for CONNACK, or for DISCONNECT if the client is already
	// connected.
	Code     byte
	Text     string // Reason String
	Data     []byte // Authentication Data
	Username string // the verified user name; empty = none
	Memory   int    // what the owner keeps for the client in Value, in bytes; charged until the session ends
}

// authenticate calls Options.Login, without the lock, and carries out the verdict.
func (c *Client) authenticate() *Error {
	b := c.b
	c.challenged = false
	v := Verdict{}
	switch {
	case b.opts.Login != nil:
		b.Unlock()
		v = b.opts.Login(c.login)
		b.Lock()
		c.login.Data = nil // may be large
		if c.isClosing() {
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
	c.Username = v.Username
	if c.login.Again {
		c.session.belongTo(c.Identity, v.Memory) // the client has logged in as both users
		c.session.reauthorize(c.Identity, new(time.Time))
		if c.session != nil {
			c.sendAuth(Success, v.Data)
		}
		return nil
	}
	return c.openSession(v)
}

// handleAuth handles an AUTH (MQTT 5, 3.15).
func (c *Client) handleAuth(body []byte) *Error {
	if c.Version != version5 {
		return malformed("AUTH in MQTT 3.1.1")
	}
	code, method, data, err := decodeAuth(body)
	if err != nil {
		return err
	}
	switch {
	case c.login.Method == "" || string(method) != c.login.Method: // [MQTT-4.12.0-5], [MQTT-4.12.1-1]
		return violation("AUTH with another authentication method than CONNECT")
	case code == ContinueAuth && !c.challenged, code == reauthenticate && c.session == nil, code == Success: // [MQTT-4.12.0-3]
		return violation("AUTH out of turn")
	}
	c.login.Data = bytes.Clone(data)
	c.login.Again = c.session != nil
	return c.authenticate()
}

func decodeAuth(body []byte) (code byte, method, data []byte, err *Error) {
	d := decoder{body: body}
	var props properties
	code = d.reason(&props, authProperties)
	d.end()
	if code != Success && code != ContinueAuth && code != reauthenticate {
		d.fail(violation(fmt.Sprintf("reason code 0x%02X in AUTH", code)))
	}
	return code, props.bytes(propAuthMethod), props.bytes(propAuthData), d.err
}

func (c *Client) sendAuth(code byte, data []byte) {
	c.packet(typeAuth<<4, appendProperties([]byte{code}, c.appendAuth(nil, data)))
}

// appendAuth appends the Authentication Method and, unless data is nil, the Authentication Data.
func (c *Client) appendAuth(props, data []byte) []byte {
	props = appendString(append(props, propAuthMethod), c.login.Method)
	if data != nil {
		props = appendString(append(props, propAuthData), data)
	}
	return props
}
