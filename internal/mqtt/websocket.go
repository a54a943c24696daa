package mqtt

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/gorilla/websocket"
)

const webSocketBuffer = 16 << 10

// upgrade turns a connection into a WebSocket (MQTT 5, 6).
func upgrade(ctx context.Context, nc net.Conn, o Options) (net.Conn, error) {
	target, err := url.ParseRequestURI(o.WebSocket)
	if err != nil || !strings.HasPrefix(o.WebSocket, "/") {
		// Omit the path and err from the message: the query may hold a secret.
		return nil, errors.New("the path of the WebSocket: expected one that begins with /")
	}
	target.Scheme, target.Host = "ws", o.Address // "ws" even with TLS, which nc already provides
	w := &webSocket{Conn: nc, below: &firstErrorConn{Conn: nc}}
	d := websocket.Dialer{
		Subprotocols:    []string{"mqtt"},
		ReadBufferSize:  webSocketBuffer,
		WriteBufferSize: webSocketBuffer,
		NetDialContext:  func(context.Context, string, string) (net.Conn, error) { return w.below, nil },
	}
	err = during(ctx, nc, func() error {
		ws, response, err := d.DialContext(ctx, target.String(), nil)
		if errors.Is(err, websocket.ErrBadHandshake) && response != nil {
			return fmt.Errorf("the server answered %s, not with a WebSocket", statusText(response.StatusCode))
		}
		w.ws = ws
		return err
	})
	if err != nil {
		return nil, err
	}
	return w, nil
}

// A webSocket carries bytes in binary messages, whose boundaries have no meaning (MQTT 5,
// 6.0.0-1, 6.0.0-2). At most one goroutine may read and one may write at a time.
type webSocket struct {
	net.Conn // the connection below the WebSocket; handles deadlines and Close
	below    *firstErrorConn
	ws       *websocket.Conn
	message  io.Reader // the unread rest of the current message; nil = none
}

func (w *webSocket) Read(b []byte) (int, error) {
	for {
		if w.message == nil {
			kind, message, err := w.ws.NextReader()
			if err != nil {
				return 0, w.readError(err)
			}
			if kind != websocket.BinaryMessage {
				return 0, &MalformedError{Why: "a text message on the WebSocket"}
			}
			w.message = message
		}
		n, err := w.message.Read(b)
		if errors.Is(err, io.EOF) {
			w.message, err = nil, nil
			if n == 0 {
				continue
			}
		}
		if err != nil {
			err = w.readError(err)
		}
		return n, err
	}
}

func (w *webSocket) Write(b []byte) (int, error) {
	if err := w.ws.WriteMessage(websocket.BinaryMessage, b); err != nil {
		return 0, w.below.prefer(err)
	}
	return len(b), nil
}

// CloseWrite announces that nothing more will be written.
func (w *webSocket) CloseWrite() error {
	message := websocket.FormatCloseMessage(websocket.CloseNormalClosure, "")
	return w.ws.WriteControl(websocket.CloseMessage, message, time.Now().Add(closeWithin))
}

func (w *webSocket) readError(err error) error {
	if below := w.below.prefer(nil); below != nil {
		return below
	}
	ended, ok := errors.AsType[*websocket.CloseError](err)
	switch {
	case !ok:
		return &MalformedError{Why: err.Error()}
	case ended.Code == websocket.CloseNormalClosure, ended.Code == websocket.CloseGoingAway, ended.Code == websocket.CloseNoStatusReceived:
		return io.EOF
	default:
		return fmt.Errorf("the broker closed the WebSocket: %w", err)
	}
}

// A firstErrorConn keeps the first error of a connection, because gorilla/websocket replaces
// errors with its own. It ignores the write deadlines that gorilla/websocket sets, because they
// would override the deadlines that Conn sets.
type firstErrorConn struct {
	net.Conn
	mu  sync.Mutex
	err error
}

func (r *firstErrorConn) note(err error) {
	if err != nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.err == nil {
			r.err = err
		}
	}
}

// prefer returns the first error of the connection, or err if there was none.
func (r *firstErrorConn) prefer(err error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err != nil {
		return r.err
	}
	return err
}

func (r *firstErrorConn) Read(b []byte) (int, error) {
	n, err := r.Conn.Read(b)
	r.note(err)
	return n, err
}

func (r *firstErrorConn) Write(b []byte) (int, error) {
	n, err := r.Conn.Write(b)
	r.note(err)
	return n, err
}

func (r *firstErrorConn) SetWriteDeadline(time.Time) error { return nil }
