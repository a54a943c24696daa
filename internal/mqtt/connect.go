package mqtt

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/eclipse/paho.golang/packets"
)

// ErrQoS0 means that the broker supports only QoS 0, for all clients or for a subscription.
var ErrQoS0 = errors.New("the broker grants QoS 0 only, the store requires QoS 1")

// open sends CONNECT and SUBSCRIBE and waits until the broker has granted both. It stops waiting
// for the SUBACK when the early message's Answered is closed. authData is the Authentication Data
// of CONNECT. If open fails, stage is the step that failed.
func (c *Conn) open(ctx context.Context, authData []byte) (stage Stage, err error) {
	var subscribe []*packets.ControlPacket
	granted := make(chan error, 1)
	if len(c.o.Subscribe) > 0 {
		cp, err := c.newSubscribe(c.o.Subscribe, granted)
		if err != nil {
			return StageSubscribe, err
		}
		subscribe = append(subscribe, cp)
	} else {
		granted <- nil
	}
	awaitConnack := c.o.AwaitConnack || c.o.Auth.Method != "" // MQTT 5, 3.1.2-30
	connect := []*packets.ControlPacket{c.newConnect(authData)}
	var answered <-chan struct{}
	if awaitConnack {
		err = c.send(connect...)
	} else {
		answered, err = c.sendEarly(append(connect, subscribe...))
	}
	if err != nil {
		return StageConnect, err
	}
	select {
	case <-c.connack:
	case <-c.done:
		select {
		case <-c.connack: // granted before the connection ended
			return StageSubscribe, c.Err()
		default:
			return StageConnect, c.Err()
		}
	case <-ctx.Done():
		return StageConnect, context.Cause(ctx)
	}
	if awaitConnack {
		if answered, err = c.sendEarly(subscribe); err != nil {
			return StageSubscribe, err
		}
	}
	select {
	case err := <-granted:
		return StageSubscribe, err
	case <-answered:
		select {
		case err := <-granted:
			return StageSubscribe, err
		default:
			return StageSubscribe, c.Err()
		}
	case <-ctx.Done():
		return StageSubscribe, context.Cause(ctx)
	}
}

func (c *Conn) newConnect(authData []byte) *packets.ControlPacket {
	noSession := uint32(0)
	cp := packets.NewControlPacket(packets.CONNECT)
	p := cp.Content.(*packets.Connect)
	p.ClientID = c.o.ClientID
	p.CleanStart = true
	p.KeepAlive = uint16(c.o.keepAlive() / time.Second)
	p.Username, p.UsernameFlag = c.o.Username, c.o.Username != ""
	p.Password, p.PasswordFlag = c.o.Password, c.o.Password != nil
	c.o.Password = nil // a connection that is printed shows no password
	p.Properties.SessionExpiryInterval = &noSession
	if c.o.ReceiveMaximum > 0 {
		p.Properties.ReceiveMaximum = &c.o.ReceiveMaximum
	}
	if c.o.MaxPacketSize > 0 {
		p.Properties.MaximumPacketSize = &c.o.MaxPacketSize
	}
	for _, user := range c.o.User {
		p.Properties.User = append(p.Properties.User, packets.User{Key: user.Name, Value: user.Value})
	}
	if c.o.Auth.Method != "" {
		p.Properties.AuthMethod, p.Properties.AuthData = c.o.Auth.Method, authData
	}
	return cp
}

// sendEarly queues packets and the message of Options.Early, if any, so that they go out in one
// write. answered is the message's Answered channel; nil if there is no message.
func (c *Conn) sendEarly(cps []*packets.ControlPacket) (answered <-chan struct{}, err error) {
	if c.o.Early == nil {
		return nil, c.send(cps...)
	}
	m := c.o.Early()
	if err = m.check(); err != nil {
		m.Acked(err)
		return nil, err
	}
	c.mu.Lock()
	if err = c.over(); err == nil {
		err = c.enqueue(cps...)
	}
	if err != nil {
		c.mu.Unlock()
		m.Acked(err)
		return nil, err
	}
	id, size, refused := c.publish(&m.Message, m.Acked)
	if c.quota == 0 {
		c.early.id, c.early.size = id, size
	}
	c.Flush()
	c.mu.Unlock()
	if refused != nil {
		m.Acked(refused)
	}
	return m.Answered, nil
}

func (c *Conn) handleConnack(p *packets.Connack) error {
	if p.ReasonCode != 0 {
		return &MalformedError{Why: fmt.Sprintf("reason code 0x%02X in CONNACK", p.ReasonCode)}
	}
	if q := p.Properties.MaximumQOS; q != nil && *q == 0 {
		return ErrQoS0
	}
	limits := c.limits
	if v := p.Properties.ReceiveMaximum; v != nil {
		if *v == 0 {
			return &MalformedError{Why: "receive maximum 0 in CONNACK"}
		}
		limits.ReceiveMaximum = int(*v)
	}
	if v := p.Properties.MaximumPacketSize; v != nil {
		if *v == 0 {
			return &MalformedError{Why: "maximum packet size 0 in CONNACK"}
		}
		limits.MaxPacketSize = int(min(*v, maxPacket))
	}
	if v := p.Properties.ServerKeepAlive; v != nil {
		limits.KeepAlive = time.Duration(*v) * time.Second
	}
	if err := c.setLimits(limits); err != nil {
		return err
	}
	close(c.connack)
	return nil
}

// setLimits applies the limits from CONNACK. If an early message was sent before CONNACK and is
// larger than the broker accepts, the message's Acked is called with a *TooLargeError, which setLimits returns
// too: the broker will end the connection when it reads the message.
func (c *Conn) setLimits(limits Limits) error {
	// SUBSCRIBE needs Packet Identifiers too, so publishes may not use them all.
	const forSubscriptions = 100
	c.mu.Lock()
	c.limits = limits
	c.quota = min(limits.ReceiveMaximum, math.MaxUint16-forSubscriptions)
	var early pending
	if c.early.size > limits.MaxPacketSize {
		if p, ok := c.pending.Remove(c.early.id); ok {
			c.inFlight.Add(-1)
			early = p
		}
	}
	c.mu.Unlock()
	if early.done == nil {
		return nil
	}
	tooLarge := &TooLargeError{Size: c.early.size, Max: limits.MaxPacketSize}
	early.done(tooLarge)
	return tooLarge
}
