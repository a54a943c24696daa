package emulator

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/gorilla/websocket"
)

const (
	webSocketPath = "/mqtt"

	// maxUpgrade bounds the request for a WebSocket, in bytes.
	maxUpgrade = 64 << 10
)

// A webSocket carries the bytes of a connection in binary messages (MQTT 5, 6). The
// upgrade is part of the first Read, on the goroutine that mochi reads on: so a
// connection is a link, and counted, before it has said a word.
type webSocket struct {
	net.Conn
	ws      atomic.Pointer[websocket.Conn] // nil before the upgrade
	message io.Reader                      // what is left of the current one; nil: nothing
}

func newWebSocket(conn net.Conn) net.Conn { return &webSocket{Conn: conn} }

func (w *webSocket) Read(p []byte) (int, error) {
	if w.ws.Load() == nil {
		if err := w.upgrade(); err != nil {
			return 0, err
		}
	}
	for {
		if w.message == nil {
			kind, message, err := w.ws.Load().NextReader()
			if err != nil {
				return 0, err
			}
			if kind != websocket.BinaryMessage {
				return 0, fmt.Errorf("a WebSocket message of type %d, want binary", kind)
			}
			w.message = message
		}
		n, err := w.message.Read(p)
		if err == io.EOF {
			w.message, err = nil, nil
			if n == 0 {
				continue
			}
		}
		return n, err
	}
}

// Write is the link's writer's, which has nothing to write before the upgrade.
func (w *webSocket) Write(p []byte) (int, error) {
	ws := w.ws.Load()
	if ws == nil {
		return 0, net.ErrClosed
	}
	if err := ws.WriteMessage(websocket.BinaryMessage, p); err != nil {
		return 0, err
	}
	return len(p), nil
}

// goodbye announces the end, to a client that knows what that is.
func (w *webSocket) goodbye() {
	if ws := w.ws.Load(); ws != nil {
		// Its error would be that of a connection that is gone already.
		_ = ws.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(websocket.CloseNormalClosure, ""), time.Now().Add(drain))
	}
}

// upgrade serves the one HTTP request of the connection. http.Server is not used
// because nobody could wait for its goroutines.
func (w *webSocket) upgrade() error {
	r := bufio.NewReader(io.LimitReader(w.Conn, maxUpgrade))
	request, err := http.ReadRequest(r)
	if err != nil {
		return fmt.Errorf("read the request for a WebSocket: %w", err)
	}
	answer := &upgradeAnswer{conn: w.Conn, r: r, header: make(http.Header)}
	if request.URL.Path != webSocketPath {
		http.NotFound(answer, request)
		return fmt.Errorf("a request for %q, want %s", request.URL.Path, webSocketPath)
	}
	upgrader := websocket.Upgrader{
		Subprotocols:    []string{"mqtt"},
		CheckOrigin:     func(*http.Request) bool { return true },
		ReadBufferSize:  readBuffer,
		WriteBufferSize: readBuffer,
	}
	ws, err := upgrader.Upgrade(answer, request, nil)
	if err != nil {
		return err
	}
	w.ws.Store(ws)
	return nil
}

// upgradeAnswer is what the upgrader writes to, and takes the connection from.
type upgradeAnswer struct {
	conn    net.Conn
	r       *bufio.Reader
	header  http.Header
	written bool
}

func (a *upgradeAnswer) Header() http.Header { return a.header }

func (a *upgradeAnswer) WriteHeader(status int) {
	if a.written {
		return
	}
	a.written = true
	a.header.Set("Connection", "close")
	// The connection is closed after it in any case.
	_, _ = fmt.Fprintf(a.conn, "HTTP/1.1 %d %s\r\n", status, http.StatusText(status))
	_ = a.header.Write(a.conn)
	_, _ = io.WriteString(a.conn, "\r\n")
}

func (a *upgradeAnswer) Write(p []byte) (int, error) {
	a.WriteHeader(http.StatusOK)
	return a.conn.Write(p)
}

// Hijack lends the upgrader the connection; write deadlines stay the link's, which
// the upgrader's package would take back.
func (a *upgradeAnswer) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	return keptDeadline{a.conn}, bufio.NewReadWriter(a.r, bufio.NewWriter(a.conn)), nil
}

type keptDeadline struct{ net.Conn }

func (keptDeadline) SetWriteDeadline(time.Time) error { return nil }
