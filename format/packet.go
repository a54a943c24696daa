package format

import "time"

// Packet is an MQTT packet in a JSON trace.
type Packet struct {
	Elapsed   time.Duration `json:"elapsed_ms"` // since the trace began
	Sent      bool          `json:"sent"`
	Type      string        `json:"packet"` // such as PUBACK
	ID        int           `json:"id,omitzero"`
	Size      int           `json:"bytes"`
	Duplicate bool          `json:"duplicate,omitzero"`
	Detail    string        `json:"detail,omitzero"` // what the trace for people shows

	Client  string   `json:"client,omitzero"` // of CONNECT
	User    string   `json:"user,omitzero"`   // of CONNECT
	Filters []string `json:"filters,omitempty"`
	Codes   []int    `json:"codes,omitempty"` // the reason codes of an answer

	Topic         string   `json:"topic,omitzero"`
	ResponseTopic string   `json:"response_topic,omitzero"`
	Correlation   string   `json:"correlation,omitzero"` // in hexadecimal
	Words         [][]byte `json:"words,omitempty"`      // of a request to the store, or of a notification
	Payload       []byte   `json:"payload,omitempty"`    // of any other message
	Properties    []string `json:"properties,omitempty"` // the user properties, NAME=VALUE
}

// JSON returns the packet as a line of JSON that is safe on a terminal.
func (p Packet) JSON() []byte { return append(appendObject(nil, p), '\n') }

func (p Packet) fields(o *objectWriter) { o.result("packet", p) }
