package broker

import (
	"encoding/binary"
	"io"

	"github.com/gorilla/websocket"
)

// frames decodes the frames that a client sends on a WebSocket (RFC 6455, 5.2), all that have arrived at a time. The
// library reads a frame at a time and answers each ping by itself: thousands of clients that send small frames
// then take seconds of the processor.
type frames struct {
	header  [14]byte // of the frame that begins
	filled  int      // bytes in header
	left    uint64   // bytes of the payload that are missing
	inFrame bool     // the header is complete
	masked  int      // bytes of the payload so far, modulo 4
	more    bool     // a message continues in the next frame
	control []byte   // payload of a control frame, of at most maxControl bytes
	pong    []byte   // answer to the last ping; nil = none. One answer to several pings is enough (RFC 6455, 5.5.3).
}

const maxControl = 125

// A frameError is why a WebSocket is closed, with the status of the Close frame.
type frameError struct {
	status int
	why    string
}

func (e *frameError) Error() string { return e.why }

// decode replaces the frames in b by the payloads of binary messages, and returns their length. The error is io.EOF if the
// client has closed the WebSocket, or a *frameError.
func (f *frames) decode(b []byte) (n int, err error) {
	for i := 0; i < len(b); {
		if !f.inFrame {
			f.header[f.filled] = b[i]
			f.filled++
			i++
			if f.filled == 2 { // a frame without a mask may end here
				if err := f.check(); err != nil {
					return n, err
				}
			}
			if f.filled < f.headerSize() {
				continue
			}
			f.begin()
		} else {
			part := b[i:min(len(b), i+int(min(f.left, uint64(len(b)))))]
			mask := f.header[f.filled-4 : f.filled]
			for j := range part {
				part[j] ^= mask[(f.masked+j)&3]
			}
			f.masked = (f.masked + len(part)) & 3
			f.left -= uint64(len(part))
			i += len(part)
			if f.isControl() {
				f.control = append(f.control, part...)
			} else {
				n += copy(b[n:], part)
			}
		}
		if f.left == 0 {
			if err := f.end(); err != nil {
				return n, err
			}
		}
	}
	return n, nil
}

func (f *frames) opcode() int     { return int(f.header[0] & 0xF) }
func (f *frames) isControl() bool { return f.header[0]&8 != 0 }

// headerSize returns the size of the header, of which only the first byte may be known.
func (f *frames) headerSize() int {
	if f.filled < 2 {
		return 2
	}
	switch f.header[1] & 0x7F {
	case 126:
		return 2 + 2 + 4
	case 127:
		return 2 + 8 + 4
	}
	return 2 + 4
}

// begin begins the payload, after the header.
func (f *frames) begin() {
	f.inFrame, f.masked, f.control = true, 0, f.control[:0]
	switch f.left = uint64(f.header[1] & 0x7F); f.left {
	case 126:
		f.left = uint64(binary.BigEndian.Uint16(f.header[2:]))
	case 127:
		f.left = binary.BigEndian.Uint64(f.header[2:])
	}
}

// check checks the first two bytes of a header.
func (f *frames) check() error {
	final := f.header[0]&0x80 != 0
	switch kind := f.opcode(); {
	case f.header[0]&0x70 != 0:
		return &frameError{websocket.CloseProtocolError, "reserved bits of a WebSocket frame are set"}
	case f.header[1]&0x80 == 0:
		return &frameError{websocket.CloseProtocolError, "a WebSocket frame without a mask"}
	case f.isControl() && (kind > websocket.PongMessage || !final || f.header[1]&0x7F > maxControl):
		return &frameError{websocket.CloseProtocolError, "an invalid control frame"}
	case f.isControl():
	case kind == websocket.TextMessage: // [MQTT-6.0.0-1]
		return &frameError{websocket.CloseUnsupportedData, "a WebSocket message that is not binary"}
	case kind > websocket.BinaryMessage, (kind == 0) != f.more:
		return &frameError{websocket.CloseProtocolError, "a WebSocket frame out of turn"}
	default:
		f.more = !final
	}
	return nil
}

func (f *frames) end() error {
	f.inFrame, f.filled = false, 0
	switch f.opcode() {
	case websocket.PingMessage:
		f.pong = append(make([]byte, 0, len(f.control)), f.control...)
	case websocket.CloseMessage:
		if len(f.control) < 2 {
			return io.EOF
		}
		switch binary.BigEndian.Uint16(f.control) {
		case websocket.CloseNormalClosure, websocket.CloseGoingAway:
			return io.EOF
		}
		return &frameError{websocket.CloseNormalClosure, "the client has closed the WebSocket with an error"}
	}
	return nil
}
