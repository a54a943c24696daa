package apiservertest

import (
	"bufio"
	"errors"
	"fmt"
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
	// forwardProtocol is the protocol of the streams of a port-forward.
	forwardProtocol = "portforward.k8s.io"

	// tunnelProtocol is the WebSocket protocol that carries SPDY, which carries the streams.
	tunnelProtocol = "SPDY/3.1+" + forwardProtocol
)

// A forward is the SPDY connection of one kubectl port-forward. For each local connection, kubectl
// opens two streams with one request id: one for an error message, then one for the data.
type forward struct {
	broker string
	silent atomic.Bool // discard all bytes
	spdy   *spdystream.Connection
	conn   net.Conn

	mu     sync.Mutex
	errs   map[string]*spdystream.Stream // streams for errors, by request id
	copies sync.WaitGroup
}

// portForward serves a port-forward until it ends.
func (s *Server) portForward(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	delay := s.delay
	s.mu.Unlock()
	select {
	case <-time.After(delay):
	case <-s.closed:
		return
	case <-r.Context().Done():
		return
	}
	conn, err := upgrade(w, r)
	if err != nil {
		return // upgrade has answered
	}
	defer conn.Close()
	f := &forward{broker: s.o.Broker, conn: conn, errs: make(map[string]*spdystream.Stream)}
	if f.spdy, err = spdystream.NewConnection(conn, true); err != nil {
		return
	}
	s.mu.Lock()
	if isClosed(s.closed) || !isClosed(s.created) {
		s.mu.Unlock()
		return
	}
	f.silent.Store(s.silent)
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

// closeForwards ends the port-forwards.
func (s *Server) closeForwards() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for f := range s.forwards {
		_ = f.conn.Close() // it may have ended already
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
		return &tunnel{Conn: ws.NetConn(), ws: ws}, nil
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
	return &hijacked{conn, buffered.Reader}, nil
}

// stream begins to serve a stream. It replies before it returns, because the connection drops data
// that it receives before the reply.
func (f *forward) stream(stream *spdystream.Stream) {
	id := stream.Headers().Get("requestID")
	f.mu.Lock()
	defer f.mu.Unlock()
	errs := f.errs[id]
	if stream.Headers().Get("streamType") == "error" {
		f.errs[id] = stream
	} else {
		delete(f.errs, id)
		f.copies.Go(func() { f.connect(stream, errs) })
	}
	_ = stream.SendReply(http.Header{}, false) // fails if the connection is lost, as reads do
}

// connect connects a data stream to the broker.
func (f *forward) connect(data, errs *spdystream.Stream) {
	defer data.Close()
	if errs != nil {
		defer errs.Close()
	}
	nc, err := net.Dial("tcp", f.broker)
	if err != nil {
		if errs != nil {
			fmt.Fprintf(errs, "error forwarding port %s to pod %s, uid : %v", data.Headers().Get("port"), Pod, err)
		}
		return
	}
	defer nc.Close()
	f.copies.Go(func() {
		f.copy(nc, data)
		_ = nc.(*net.TCPConn).CloseWrite() // nc may be closed
	})
	f.copy(data, nc)
}

// copy copies bytes until an error, or discards them while the forward is silent.
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

// hijacked is a connection of an HTTP server with the bytes that the server has read.
type hijacked struct {
	net.Conn
	buffered *bufio.Reader
}

func (c *hijacked) Read(p []byte) (int, error) { return c.buffered.Read(p) }

// A tunnel carries bytes in the binary messages of a WebSocket.
type tunnel struct {
	net.Conn
	ws      *websocket.Conn
	message io.Reader // the rest of a message
}

func (c *tunnel) Read(p []byte) (int, error) {
	for {
		if c.message != nil {
			n, err := c.message.Read(p)
			if n > 0 || !errors.Is(err, io.EOF) {
				return n, err
			}
		}
		var err error
		if _, c.message, err = c.ws.NextReader(); err != nil {
			return 0, err
		}
	}
}

func (c *tunnel) Write(p []byte) (int, error) {
	if err := c.ws.WriteMessage(websocket.BinaryMessage, p); err != nil {
		return 0, err
	}
	return len(p), nil
}
