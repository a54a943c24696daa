package mqtt

import (
	"context"
	"errors"
	"fmt"

	"github.com/eclipse/paho.golang/packets"
)

// Auth configures enhanced authentication (MQTT 5, 4.12) with a method that needs only one
// message from the client, such as K8S-SAT (protocol.md 7.2). Dial and [Conn.Reauthenticate] call
// Data.
type Auth struct {
	Method string                 // name of the method; empty = no enhanced authentication
	Data   func() ([]byte, error) // returns the Authentication Data, such as a token
}

// ErrAuthLater means that the broker cannot verify the Authentication Data now (AUTH 0x18); try
// again later (protocol.md 7.2). If Reauthenticate returns it, the connection stays open.
var ErrAuthLater = errors.New("the broker cannot verify the login now (AUTH 0x18)")

// A ReauthError means that the broker refused a re-authentication and ended the connection. A
// new connection may succeed.
type ReauthError struct {
	Err *ReasonError
}

func (e *ReauthError) Error() string {
	return "the broker refused to authenticate the connection again: " + e.Err.Error()
}

func (e *ReauthError) Unwrap() error { return e.Err }

func (a *Auth) data() ([]byte, error) {
	if a.Method == "" {
		return nil, nil
	}
	if err := checkLength("authentication method", len(a.Method)); err != nil {
		return nil, err
	}
	if a.Data == nil {
		return nil, fmt.Errorf("authentication method %q without data", a.Method)
	}
	data, err := a.Data()
	if err != nil {
		return nil, err
	}
	return data, checkLength("authentication data", len(data))
}

// Reauthenticate authenticates the client again with new data and waits for the broker's
// answer (MQTT 5, 4.12.1). If the broker refuses, it ends the connection; the error is a
// *[LostError], which wraps a *[ReauthError] if the broker gave a reason. The connection stays open
// after [ErrAuthLater], after an error of Options.Auth.Data, and when ctx ends.
func (c *Conn) Reauthenticate(ctx context.Context) error {
	if c.o.Auth.Method == "" {
		return errors.New("authenticate again: the connection has no authentication method")
	}
	data, err := c.o.Auth.data()
	if err != nil {
		return err
	}
	cp := packets.NewControlPacket(packets.AUTH)
	cp.Flags = 0 // MQTT 5, 2.1.3; paho writes 1
	p := cp.Content.(*packets.Auth)
	p.ReasonCode = packets.AuthReauthenticate
	p.Properties.AuthMethod, p.Properties.AuthData = c.o.Auth.Method, data
	verdict := make(chan error, 1)
	c.mu.Lock()
	if err = c.over(); err == nil {
		err = c.enqueue(cp)
	}
	if err != nil {
		c.mu.Unlock()
		return err
	}
	c.verdicts = append(c.verdicts, verdict)
	c.Flush()
	c.mu.Unlock()
	select {
	case err := <-verdict:
		return err
	case <-c.done:
		return c.Err()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// authChallenge returns the reason to end the connection when the broker sends AUTH before
// CONNACK. No supported method has a second step.
func (c *Conn) authChallenge(p *packets.Auth) error {
	if c.o.Auth.Method == "" || p.ReasonCode != packets.AuthContinueAuthentication {
		return &LostError{&MalformedError{Why: "AUTH before CONNACK"}}
	}
	return ErrAuthLater
}

// handleAuth passes the broker's answer to the oldest unanswered call to Reauthenticate. Answers
// arrive in the order of the requests.
func (c *Conn) handleAuth(p *packets.Auth) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.verdicts) == 0 {
		return &MalformedError{Why: "AUTH is not for a client that did not ask for it"}
	}
	if method := p.Properties.AuthMethod; method != "" && method != c.o.Auth.Method {
		return &MalformedError{Why: fmt.Sprintf("AUTH with method %.64q, the connection's is %.64q", method, c.o.Auth.Method)}
	}
	var verdict error
	switch p.ReasonCode {
	case packets.AuthSuccess:
	case packets.AuthContinueAuthentication:
		verdict = ErrAuthLater
	default:
		return &MalformedError{Why: fmt.Sprintf("reason code 0x%02X in AUTH", p.ReasonCode)}
	}
	c.verdicts[0] <- verdict // never blocks: its capacity is 1
	c.verdicts = c.verdicts[1:]
	return nil
}

// disconnectReason returns why the broker sent DISCONNECT. The error is a [*ReauthError] if the
// DISCONNECT refuses a re-authentication: the broker need not send AUTH first (MQTT 5,
// 4.12.1). Otherwise it is a *ReasonError.
func (c *Conn) disconnectReason(p *packets.Disconnect) error {
	reason := &ReasonError{Packet: "DISCONNECT", Code: p.ReasonCode, Text: p.Properties.ReasonString, Reference: p.Properties.ServerReference}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.verdicts) == 0 {
		return reason
	}
	switch reason.Code {
	case 0x82, ReasonBadLogin, ReasonNotAuthorized, ReasonBadAuthMethod: // 0x82: no support for re-authentication
		return &ReauthError{reason}
	}
	return reason
}
