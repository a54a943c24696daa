package broker

import "fmt"

// decodeAck reads a PUBACK, PUBREC, PUBREL or PUBCOMP (MQTT 5, 3.4 to 3.7).
func decodeAck(version, kind byte, body []byte) (id uint16, code byte, err *Error) {
	d := decoder{body: body}
	id = d.packetID()
	if version == version5 {
		var props properties
		code = d.reason(&props, ackProperties)
	}
	d.end()
	received := kind == typePuback || kind == typePubrec
	switch code {
	case Success:
		return id, code, d.err
	case NoMatchingSubscriber, UnspecifiedError, 0x83, NotAuthorized, TopicNameInvalid, packetIDInUse, QuotaExceeded, 0x99:
		if received {
			return id, code, d.err
		}
	case packetIDNotFound:
		if !received {
			return id, code, d.err
		}
	}
	d.fail(violation(fmt.Sprintf("reason code 0x%02X in a packet of type %d", code, kind)))
	return id, code, d.err
}

// handleAck handles a PUBACK, PUBREC, PUBREL or PUBCOMP (MQTT 5, 4.3).
func (c *Client) handleAck(kind byte, body []byte) *Error {
	id, code, err := decodeAck(c.Version, kind, body)
	if err != nil {
		return err
	}
	s := c.session
	if kind == typePubrel {
		answer := byte(packetIDNotFound)
		if s.forget(id) {
			answer = Success
			c.unacked = max(0, c.unacked-1) // the message may have come on an earlier connection
		}
		c.ack(typePubcomp, id, answer) // [MQTT-4.3.3-11]
		return nil
	}
	place, found := s.inflight.find(id)
	if !found {
		if kind == typePubrec && code < UnspecifiedError {
			c.ack(typePubrel, id, packetIDNotFound)
		}
		return nil // a repeated acknowledgement
	}
	w := s.inflight.at(place)
	switch {
	case (kind == typePuback) != (w.qos == 1), kind == typePubcomp && w.state != released:
		return violation("an acknowledgement that does not fit the QoS of the message")
	case kind == typePubrec && code < UnspecifiedError:
		w.state = released // [MQTT-4.3.3-4]
		s.release(w)
		c.ack(typePubrel, id, Success)
		return nil
	}
	if s.finish(place) && c.quota < c.receiveMax {
		c.quota++
	}
	s.sendPending()
	return nil
}

// ack queues a PUBACK, PUBREC, PUBREL or PUBCOMP.
func (c *Client) ack(kind byte, id uint16, code byte) {
	if !c.ensureRoom(5) {
		return
	}
	first := kind << 4
	if kind == typePubrel {
		first |= 2
	}
	if code == Success || c.Version == version4 {
		c.out = append(c.reserve(4), first, 2, byte(id>>8), byte(id))
		return
	}
	c.out = append(c.reserve(5), first, 3, byte(id>>8), byte(id), code)
}
