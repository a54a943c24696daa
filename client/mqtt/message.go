package mqtt

import (
	"fmt"
	"math"
	"strings"
	"time"
	"unicode/utf8"
)

// A Message is a PUBLISH.
type Message struct {
	Topic         string
	Payload       []byte
	Large         LargePayload // in place of Payload
	ResponseTopic string
	Correlation   []byte // Correlation Data
	ContentType   string
	Expiry        time.Duration // Message Expiry Interval, rounded up to seconds; 0 = none
	User          []Property    // User Properties in the order of the wire
	QoS           byte          // of a received message; Publish always uses QoS 1
	Retained      bool          // of a received message: the broker kept it from before the subscription
}

// A LargePayload is the payload of a message that is sent, encoded only where it is sent from, which
// saves the memory of a copy. The zero value is none.
type LargePayload struct {
	Size   int                     // in bytes, exactly
	Append func(dst []byte) []byte // appends the payload
}

// A Property is a User Property.
type Property struct {
	Name, Value string
}

// Property returns the first user property with a given name.
func (m *Message) Property(name string) (value string, ok bool) {
	for _, p := range m.User {
		if p.Name == name {
			return p.Value, true
		}
	}
	return "", false
}

// check rejects what cannot be encoded, and topics for which a broker would end the whole
// connection.
func (m *Message) check() error {
	if err := m.checkTopics(); err != nil {
		return err
	}
	return m.checkSizes()
}

func (m *Message) checkTopics() error {
	err := checkTopic("topic", m.Topic)
	if err == nil && m.ResponseTopic != "" {
		err = checkTopic("response topic", m.ResponseTopic)
	}
	return err
}

func (m *Message) checkSizes() error {
	if err := checkLength("correlation data", len(m.Correlation)); err != nil {
		return err
	}
	if err := checkLength("content type", len(m.ContentType)); err != nil {
		return err
	}
	size := 64 + len(m.Topic) + len(m.ResponseTopic) + len(m.Correlation) + len(m.ContentType)
	for i := range m.User {
		p := &m.User[i]
		if n := max(len(p.Name), len(p.Value)); n > math.MaxUint16 {
			return checkLength(fmt.Sprintf("user property %.32q", p.Name), n)
		}
		size += 5 + len(p.Name) + len(p.Value)
	}
	if size > maxRemaining {
		return &TooLargeError{Size: size + len(m.Payload) + m.Large.Size, Max: maxPacket}
	}
	return nil
}

func checkTopic(what, topic string) error {
	switch {
	case topic == "":
		return fmt.Errorf("the %s is empty", what)
	case strings.IndexByte(topic, '+') >= 0 || strings.IndexByte(topic, '#') >= 0 || strings.IndexByte(topic, 0) >= 0 || !utf8.ValidString(topic):
		return fmt.Errorf("%s %.64q: expected UTF-8 without +, # and NUL", what, topic)
	}
	return checkLength(what, len(topic))
}

// checkLength checks the length of a string or of binary data, except the payload.
func checkLength(what string, n int) error {
	if n > math.MaxUint16 {
		return fmt.Errorf("%s of %d bytes: MQTT allows at most %d", what, n, math.MaxUint16)
	}
	return nil
}
