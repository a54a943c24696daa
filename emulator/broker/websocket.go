package broker

import (
	"bufio"
	"crypto/sha1"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/textproto"
	"slices"
	"strings"
	"sync"
)

// A webSocket carries the bytes of a connection in binary messages, whose boundaries
// mean nothing (MQTT 5, 6). It is the server's side of RFC 6455, without extensions. The
// upgrade is part of the first Read: so a connection counts before it has said a word.
//
// The known libraries bring net/http, and give it the connection, for the one request that
// is read here.
type webSocket struct {
	net.Conn
	path string

	in   *bufio.Reader // nil: before the upgrade
	left uint64        // of the present frame
	mask [4]byte
	at   uint64 // in the present frame
	more bool   // another frame of the message follows

	mu       sync.Mutex // of writes: a pong is written on the reader's goroutine
	open     bool       // upgraded, and no Close was sent
	closedBy error      // what Read returns from now on
	buf      []byte
}

func newWebSocket(nc net.Conn, path string) *webSocket { return &webSocket{Conn: nc, path: path} }

const (
	// maxUpgrade bounds the request for a WebSocket, in bytes.
	maxUpgrade = 64 << 10

	// maxControl is what the payload of a control frame has at most (RFC 6455, 5.5).
	maxControl = 125
)

// The opcodes of frames (RFC 6455, 5.2).
const (
	frameContinuation = 0x0
	frameBinary       = 0x2
	frameClose        = 0x8
	framePing         = 0x9
	framePong         = 0xA
)

// The status codes of Close (RFC 6455, 7.4.1).
const (
	closeNormal      = 1000
	closeProtocol    = 1002
	closeUnsupported = 1003
)

func (w *webSocket) Read(p []byte) (int, error) {
	if w.in == nil {
		if err := w.upgrade(); err != nil {
			return 0, err
		}
	}
	for w.left == 0 {
		if w.closedBy != nil {
			return 0, w.closedBy
		}
		if err := w.nextFrame(); err != nil {
			if _, again := errors.AsType[*retryError](err); !again {
				w.closedBy = err
			}
			return 0, err
		}
	}
	n, err := w.in.Read(p[:min(uint64(len(p)), w.left)])
	for i := range p[:n] {
		p[i] ^= w.mask[w.at&3]
		w.at++
	}
	w.left -= uint64(n)
	return n, err
}

// nextFrame reads up to the payload of the next frame of data.
func (w *webSocket) nextFrame() error {
	for {
		// A read that is given up because of its deadline must find all of this again.
		head, err := w.in.Peek(2)
		if err != nil {
			return w.interrupted(err)
		}
		final, op, masked := head[0]&0x80 != 0, head[0]&0x0F, head[1]&0x80 != 0
		size, n := uint64(head[1]&0x7F), 2
		switch {
		case head[0]&0x70 != 0:
			return w.refuse(closeProtocol, "reserved bits of a frame are set")
		case !masked: // RFC 6455, 5.1
			return w.refuse(closeProtocol, "a frame without a mask")
		case size == 126:
			n += 2
		case size == 127:
			n += 8
		}
		head, err = w.in.Peek(n + 4)
		if err != nil {
			return w.interrupted(err)
		}
		switch n {
		case 4:
			size = uint64(binary.BigEndian.Uint16(head[2:]))
		case 10:
			size = binary.BigEndian.Uint64(head[2:])
		}
		mask := [4]byte(head[n:])
		switch op {
		case frameClose, framePing, framePong:
			if !final || size > maxControl {
				return w.refuse(closeProtocol, "a control frame in parts, or of more than 125 bytes")
			}
			frame, err := w.in.Peek(n + 4 + int(size))
			if err != nil {
				return w.interrupted(err)
			}
			payload := slices.Clone(frame[n+4:])
			for i := range payload {
				payload[i] ^= mask[i&3]
			}
			// It was peeked at.
			_, _ = w.in.Discard(n + 4 + int(size))
			if err := w.control(op, payload); err != nil {
				return err
			}
			continue
		case frameBinary, frameContinuation:
			if (op == frameContinuation) != w.more {
				return w.refuse(closeProtocol, "a frame out of turn")
			}
		default: // [MQTT-6.0.0-1]
			return w.refuse(closeUnsupported, "a WebSocket message that is not binary")
		}
		_, _ = w.in.Discard(n + 4)
		w.more, w.left, w.mask, w.at = !final, size, mask, 0
		if size > 0 {
			return nil
		}
	}
}

// interrupted leaves a timeout for the next Read to get over.
func (w *webSocket) interrupted(err error) error {
	var timeout net.Error
	if errors.As(err, &timeout) && timeout.Timeout() {
		return &retryError{err}
	}
	return err
}

// A retryError does not end the WebSocket.
type retryError struct{ error }

func (e *retryError) Unwrap() error { return e.error }

func (w *webSocket) control(op byte, payload []byte) error {
	switch op {
	case framePing:
		return w.frame(framePong, payload)
	case frameClose:
		w.sayClose()
		return io.EOF
	}
	return nil
}

// refuse closes because of what the client did.
func (w *webSocket) refuse(status uint16, why string) error {
	w.close(status)
	return errors.New(why)
}

// sayClose announces the end, to a client that knows what that is.
func (w *webSocket) sayClose() { w.close(closeNormal) }

func (w *webSocket) close(status uint16) {
	// An error would only repeat that the connection is gone.
	_ = w.frame(frameClose, binary.BigEndian.AppendUint16(nil, status))
	w.mu.Lock()
	w.open = false
	w.mu.Unlock()
}

func (w *webSocket) Write(p []byte) (int, error) {
	if err := w.frame(frameBinary, p); err != nil {
		return 0, err
	}
	return len(p), nil
}

// frame writes one frame, which servers do not mask.
func (w *webSocket) frame(op byte, payload []byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.open {
		return net.ErrClosed
	}
	buf := append(w.buf[:0], 0x80|op)
	switch n := len(payload); {
	case n <= maxControl:
		buf = append(buf, byte(n))
	case n < 1<<16:
		buf = binary.BigEndian.AppendUint16(append(buf, 126), uint16(n))
	default:
		buf = binary.BigEndian.AppendUint64(append(buf, 127), uint64(n))
	}
	buf = append(buf, payload...)
	if w.buf = buf; cap(buf) > maxSpare {
		w.buf = nil
	}
	_, err := w.Conn.Write(buf)
	return err
}

// upgrade serves the one HTTP request of the connection (RFC 6455, 4.2).
func (w *webSocket) upgrade() error {
	limited := &io.LimitedReader{R: w.Conn, N: maxUpgrade}
	in := bufio.NewReader(limited)
	r := textproto.NewReader(in)
	line, err := r.ReadLine()
	if err != nil {
		return fmt.Errorf("read the request for a WebSocket: %w", err)
	}
	method, rest, _ := strings.Cut(line, " ")
	target, version, ok := strings.Cut(rest, " ")
	if !ok || !strings.HasPrefix(version, "HTTP/1.") {
		return fmt.Errorf("%.64q is not a request for a WebSocket", line)
	}
	header, err := r.ReadMIMEHeader()
	if err != nil {
		return fmt.Errorf("read the request for a WebSocket: %w", err)
	}
	path, _, _ := strings.Cut(target, "?")
	if path != w.path {
		return w.answer("404 Not Found", "", fmt.Sprintf("a request for %.64q, want %s", path, w.path))
	}
	key, err := base64.StdEncoding.DecodeString(header.Get("Sec-Websocket-Key"))
	switch {
	case method != "GET", !hasToken(header["Connection"], "upgrade"), !hasToken(header["Upgrade"], "websocket"), err != nil, len(key) != 16:
		return w.answer("400 Bad Request", "", "a request that does not ask for a WebSocket")
	case header.Get("Sec-Websocket-Version") != "13":
		return w.answer("426 Upgrade Required", "Sec-WebSocket-Version: 13\r\n", "another version of WebSocket than 13")
	}
	accept := sha1.Sum([]byte(header.Get("Sec-Websocket-Key") + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"))
	protocol := ""
	if hasToken(header["Sec-Websocket-Protocol"], "mqtt") { // [MQTT-6.0.0-4]
		protocol = "Sec-WebSocket-Protocol: mqtt\r\n"
	}
	_, err = io.WriteString(w.Conn, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: "+
		base64.StdEncoding.EncodeToString(accept[:])+"\r\n"+protocol+"\r\n")
	if err != nil {
		return err
	}
	limited.N = 1<<63 - 1
	w.in = in
	w.mu.Lock()
	w.open = true
	w.mu.Unlock()
	return nil
}

// answer refuses a request, in the words of HTTP, and says why for the log.
func (w *webSocket) answer(status, header, why string) error {
	// The connection is closed after it in any case.
	_, _ = io.WriteString(w.Conn, "HTTP/1.1 "+status+"\r\nConnection: close\r\nContent-Length: 0\r\n"+header+"\r\n")
	return errors.New(why)
}

// hasToken reports whether a header lists a word, in any case.
func hasToken(lines []string, word string) bool {
	for _, line := range lines {
		for token := range strings.SplitSeq(line, ",") {
			if strings.EqualFold(strings.TrimSpace(token), word) {
				return true
			}
		}
	}
	return false
}
