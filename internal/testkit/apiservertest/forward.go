package apiservertest

import (
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gorilla/websocket"
	"github.com/moby/spdystream"
)

const (
	// forwardProtocol is the name of the protocol of the streams in a port-forward.
	forwardProtocol = "portforward.k8s.io"

	// tunnelProtocol is the name of the WebSocket subprotocol that carries SPDY, which in turn
	// carries the streams.
	tunnelProtocol = "SPDY/3.1+" + forwardProtocol
)

// A forward is the SPDY connection of one kubectl port-forward.
type forward struct {
	broker string
	silent atomic.Bool // whether to discard all bytes
	spdy   *spdystream.Connection
	conn   net.Conn
	copies sync.WaitGroup
}

// portForward serves a port-forward until it ends.
func (s *Server) portForward(w http.ResponseWriter, r *http.Request) {
	select {
	case <-time.After(time.Duration(s.Delay.Load())):
	case <-s.closed:
		return
	case <-r.Context().Done():
		return
	}
	conn, err := upgrade(w, r)
	if err != nil {
		return // upgrade has answered the request
	}
	defer conn.Close()
	f := &forward{broker: s.o.Broker, conn: conn}
	if f.spdy, err = spdystream.NewConnection(conn, true); err != nil {
		return
	}
	s.mu.Lock()
	if isClosed(s.closed) || !isClosed(s.created) {
		s.mu.Unlock()
		return
	}
	f.silent.Store(s.Silent.Load())
	s.forwards[f] = true
	s.running.Add(1)
	s.mu.Unlock()
	defer s.running.Done()
	f.spdy.Serve(f.stream)
	s.mu.Lock()
	delete(s.forwards, f)
	s.mu.Unlock()
	_ = conn.Close()
	f.copies.Wait()
}

func (s *Server) closeForwards() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for f := range s.forwards {
		_ = f.conn.Close() // fails if the connection is closed already
	}
}

// upgrade turns a request into a connection that carries SPDY, and answers the request.
func upgrade(w http.ResponseWriter, r *http.Request) (net.Conn, error) {
	if websocket.IsWebSocketUpgrade(r) {
		upgrader := websocket.Upgrader{Subprotocols: []string{tunnelProtocol}}
		ws, err := upgrader.Upgrade(w, r, nil)
		if err != nil {
			return nil, err
		}
		return &upgraded{ws.NetConn(), websocket.JoinMessages(ws, ""), messages{ws}}, nil
	}
	if !strings.EqualFold(r.Header.Get("Upgrade"), "SPDY/3.1") {
		fail(w, http.StatusBadRequest, "BadRequest", "Upgrade request required")
		return nil, errors.New("no upgrade")
	}
	w.Header().Set("Connection", "Upgrade")
	w.Header().Set("Upgrade", "SPDY/3.1")
	w.Header().Set("X-Stream-Protocol-Version", forwardProtocol)
	w.WriteHeader(http.StatusSwitchingProtocols)
	conn, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return nil, err
	}
	return &upgraded{conn, buffered.Reader, conn}, nil
}

// stream starts to serve a stream. kubectl opens two streams for each local connection: one for an
// error message, which stays empty, and one for the data. The reply is sent before the method
// returns, because spdystream drops data that arrives before the reply.
func (f *forward) stream(stream *spdystream.Stream) {
	_ = stream.SendReply(http.Header{}, false) // fails only if the connection is lost; then reads fail too
	if stream.Headers().Get("streamType") == "error" {
		_ = stream.Close() // fails only if the connection is lost
		return
	}
	f.copies.Go(func() { f.connect(stream) })
}

// connect connects a data stream to the broker.
func (f *forward) connect(data *spdystream.Stream) {
	defer data.Close()
	nc, err := net.Dial("tcp", f.broker)
	if err != nil {
		return
	}
	defer nc.Close()
	f.copies.Go(func() {
		f.copy(nc, data)
		_ = nc.(*net.TCPConn).CloseWrite() // fails if nc is closed already
	})
	f.copy(data, nc)
}

// copy copies bytes until a read or a write fails. While the forward is silent, copy discards the
// bytes.
func (f *forward) copy(to io.Writer, from io.Reader) {
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		if n > 0 && !f.silent.Load() {
			if _, err := to.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// An upgraded is a connection after its HTTP upgrade. r and w carry the bytes of the new protocol.
type upgraded struct {
	net.Conn
	r io.Reader
	w io.Writer
}

func (c *upgraded) Read(p []byte) (int, error)  { return c.r.Read(p) }
func (c *upgraded) Write(p []byte) (int, error) { return c.w.Write(p) }

// messages writes bytes as binary messages of a WebSocket.
type messages struct{ ws *websocket.Conn }

func (m messages) Write(p []byte) (int, error) {
	return len(p), m.ws.WriteMessage(websocket.BinaryMessage, p)
}
