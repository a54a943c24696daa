package broker

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/gorilla/websocket"
)

// A webSocket carries a connection in the binary messages of a WebSocket (MQTT 5, 6). A packet that
// the client sends may span several messages, and a message may hold several packets; each packet
// for the client is one message. The first Read performs the upgrade, so that the limits on
// connections apply before the upgrade.
type webSocket struct {
	*webSocketConn
	path    string
	origins []string                       // see Options.Origins
	ws      atomic.Pointer[websocket.Conn] // nil = before the upgrade
	in      *bufio.Reader                  // reads frames
	frames  frames
	ended   error // what Read returns after the bytes that precede it
	missing int   // bytes of a packet that Write has yet to write
}

// A webSocketConn is the connection below a WebSocket. It repeats reads that time out while goOn
// returns true, because the library ends the connection after any error.
type webSocketConn struct {
	net.Conn
	goOn  func() bool               // reports whether to repeat a read that timed out
	final atomic.Pointer[time.Time] // deadline of all writes; nil = none
}

const (
	// Limits on the HTTP request that opens a WebSocket: its size in bytes, and the number of its lines, because a short
	// header line takes twenty times its size in memory, also while the rest of the request is missing.
	maxUpgrade      = 16 << 10
	maxUpgradeLines = 256

	writeTimeout   = time.Minute // for each packet
	controlTimeout = time.Second // for each control frame
)

func (c *webSocketConn) Read(p []byte) (n int, err error) {
	for {
		n, err = c.Conn.Read(p)
		if n > 0 || !errors.Is(err, os.ErrDeadlineExceeded) || !c.goOn() {
			return n, err
		}
	}
}

// SetDeadline does nothing, because the library's upgrade would clear the connection's deadlines.
func (c *webSocketConn) SetDeadline(time.Time) error { return nil }

// SetWriteDeadline limits one write. The library calls it before each write, with the zero time for
// a message.
func (c *webSocketConn) SetWriteDeadline(t time.Time) error {
	if t.IsZero() {
		t = time.Now().Add(writeTimeout)
	}
	if final := c.final.Load(); final != nil && final.Before(t) {
		t = *final
	}
	return c.Conn.SetWriteDeadline(t)
}

// SetWriteDeadline limits all further writes.
func (w *webSocket) SetWriteDeadline(t time.Time) error {
	w.final.Store(&t)
	return w.Conn.SetWriteDeadline(t)
}

func (w *webSocket) Read(p []byte) (int, error) {
	if w.ws.Load() == nil {
		if err := w.upgrade(); err != nil {
			return 0, err
		}
	}
	for w.ended == nil {
		n, err := w.in.Read(p)
		w.ended = err
		if n, err = w.frames.decode(p[:n]); err != nil {
			w.ended = err
			status := websocket.CloseNormalClosure
			if invalid, ok := errors.AsType[*frameError](err); ok {
				status = invalid.status
			}
			w.close(status)
		}
		if w.frames.pong != nil {
			w.control(websocket.PongMessage, w.frames.pong)
			w.frames.pong = nil
		}
		if n > 0 {
			return n, nil
		}
	}
	return 0, w.ended
}

// Write writes packets, each as a message of one frame. A packet that comes in several calls is a message for
// each call.
func (w *webSocket) Write(p []byte) (int, error) {
	ws := w.ws.Load()
	if ws == nil {
		return 0, net.ErrClosed
	}
	var small []byte // whole frames
	send := func() error {
		if len(small) == 0 {
			return nil
		}
		_ = w.webSocketConn.SetWriteDeadline(time.Time{}) // the write returns the error too
		_, err := w.webSocketConn.Write(small)            // whole frames in one call: frames of the library are never in between
		small = small[:0]
		return err
	}
	for rest := p; len(rest) > 0; {
		if w.missing == 0 {
			_, w.missing, _ = splitPacket(rest)
		}
		n := min(w.missing, len(rest))
		var err error
		if n == len(p) || n > maxSmall { // alone, or large
			if err = send(); err == nil {
				err = ws.WriteMessage(websocket.BinaryMessage, rest[:n])
			}
		} else {
			if len(small)+n > maxSmall {
				err = send()
			}
			small = appendFrame(small, rest[:n])
		}
		if err != nil {
			return len(p) - len(rest), err
		}
		w.missing -= n
		rest = rest[n:]
	}
	return len(p), send()
}

// maxSmall is the size in bytes of the packets that are written together.
const maxSmall = 4 << 10

// appendFrame appends a message of one frame with at most maxSmall bytes.
func appendFrame(dst, payload []byte) []byte {
	dst = append(dst, 0x80|websocket.BinaryMessage)
	if n := len(payload); n < 126 {
		dst = append(dst, byte(n))
	} else {
		dst = binary.BigEndian.AppendUint16(append(dst, 126), uint16(n))
	}
	return append(dst, payload...)
}

// close sends a Close frame. The library writes nothing after it.
func (w *webSocket) close(status int) {
	w.control(websocket.CloseMessage, websocket.FormatCloseMessage(status, ""))
}

func (w *webSocket) control(kind int, payload []byte) {
	if ws := w.ws.Load(); ws != nil {
		// Ignore an error: the next write returns it too, and a client that does not read needs no answer.
		_ = ws.WriteControl(kind, payload, time.Now().Add(controlTimeout))
	}
}

// An upgradeReader reads from a connection. Before done is set, it ends after a number of bytes, or about a number of
// lines.
type upgradeReader struct {
	from         io.Reader
	bytes, lines int // how many may follow
	done         bool
}

func (u *upgradeReader) Read(p []byte) (int, error) {
	if u.done {
		return u.from.Read(p)
	}
	if u.bytes <= 0 || u.lines <= 0 {
		return 0, io.EOF
	}
	n, err := u.from.Read(p[:min(len(p), u.bytes)])
	u.bytes -= n
	u.lines -= bytes.Count(p[:n], []byte{'\n'})
	return n, err
}

// upgrade reads and answers the connection's only HTTP request (RFC 6455, 4.2).
func (w *webSocket) upgrade() error {
	limited := &upgradeReader{from: w.webSocketConn, bytes: maxUpgrade, lines: maxUpgradeLines}
	in := bufio.NewReader(limited)
	r, err := http.ReadRequest(in)
	if err != nil {
		return fmt.Errorf("read the request for a WebSocket: %w", err)
	}
	limited.done = true
	if r.URL.Path != w.path && r.URL.Path != "/" {
		return w.refuse("404 Not Found", "", fmt.Errorf("a request for %.64q, expected %s", r.URL.Path, w.path))
	}
	upgrader := websocket.Upgrader{
		Subprotocols: []string{"mqtt"}, // [MQTT-6.0.0-4]
		CheckOrigin:  w.allowsOrigin,
		Error:        func(http.ResponseWriter, *http.Request, int, error) {},
	}
	ws, err := upgrader.Upgrade(&hijacker{conn: w.webSocketConn, in: in}, r, nil)
	switch {
	case !w.allowsOrigin(r):
		return w.refuse("403 Forbidden", "", fmt.Errorf("a web page of another origin, %.64q", r.Header.Get("Origin")))
	case err != nil && r.Header.Get("Upgrade") != "" && r.Header.Get("Sec-Websocket-Version") != "13":
		return w.refuse("426 Upgrade Required", "Sec-WebSocket-Version: 13\r\n", err)
	case err != nil:
		return w.refuse("400 Bad Request", "", err)
	}
	w.in = in
	w.ws.Store(ws)
	return nil
}

// allowsOrigin reports whether the request's Origin may connect: an allowed origin, a page from the
// listener's own address, or no Origin, because only browsers send one. The request's Host proves
// nothing: by DNS rebinding, a page can make a name of its own resolve to this address.
func (w *webSocket) allowsOrigin(r *http.Request) bool {
	origin := r.Header.Get("Origin")
	if len(r.Header.Values("Origin")) == 0 || slices.ContainsFunc(w.origins, func(allowed string) bool { return strings.EqualFold(allowed, origin) }) {
		return true
	}
	// The scheme does not matter: a proxy may end TLS, and some programs always send https.
	u, err := url.Parse(origin)
	if err != nil {
		return false
	}
	port := cmp.Or(u.Port(), map[string]string{"http": "80", "https": "443"}[u.Scheme])
	local, ok := w.LocalAddr().(*net.TCPAddr)
	if !ok || port != strconv.Itoa(local.Port) {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return local.IP.Equal(ip) || local.IP.IsLoopback() && (ip.IsLoopback() || u.Hostname() == "localhost")
}

// refuse answers a request with an HTTP status, and returns the error for the log.
func (w *webSocket) refuse(status, header string, why error) error {
	// Ignore an error: readLoop closes the connection in any case.
	_, _ = io.WriteString(w.Conn, "HTTP/1.1 "+status+"\r\nConnection: close\r\nContent-Length: 0\r\n"+header+"\r\n")
	return why
}

// A hijacker is a ResponseWriter from which the library takes over the connection.
type hijacker struct {
	http.ResponseWriter // not used
	conn                net.Conn
	in                  *bufio.Reader
}

func (h *hijacker) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	return h.conn, bufio.NewReadWriter(h.in, bufio.NewWriter(h.conn)), nil
}
