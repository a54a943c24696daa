package mqtt

import (
	"fmt"
	"math"
	"strings"
	"time"
	"unicode/utf8"
)

// A Message is the content of a PUBLISH, sent or received.
type Message struct {
	Topic         string
	Payload       []byte
	ResponseTopic string
	Correlation   []byte // Correlation Data
	ContentType   string
	Expiry        time.Duration // Message Expiry Interval, rounded up to seconds; 0 = none
	User          []Property    // User Properties, in the order they are sent
	QoS           byte          // received messages only; Publish always uses QoS 1
	Retained      bool          // received messages only: the broker had stored the message before the subscription

	// Large is a part of the payload that takes much memory, so that Publish does not copy it. It belongs
	// before Payload[LargeAt:]. Only for messages that are sent.
	Large   string
	LargeAt int
}

// A Property is a User Property.
type Property struct {
	Name, Value string
}

// Property returns the value of the first user property with the given name.
func (m *Message) Property(name string) (value string, ok bool) {
	for _, p := range m.User {
		if p.Name == name {
			return p.Value, true
		}
	}
	return "", false
}

// check returns an error if the message cannot be encoded, or if a broker would end the connection
// because of its topic or response topic.
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
		return &TooLargeError{Size: size + len(m.Payload) + len(m.Large), Max: maxPacket}
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

// checkLength returns an error if n bytes are too long for an MQTT string or for binary data. The limit
// does not apply to the payload.
func checkLength(what string, n int) error {
	if n > math.MaxUint16 {
		return fmt.Errorf("%s of %d bytes: MQTT allows at most %d", what, n, math.MaxUint16)
	}
	return nil
}
