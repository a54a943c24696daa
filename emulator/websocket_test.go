package emulator_test

import (
	"bufio"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"github.com/sscli/sscli/emulator"
	"github.com/sscli/sscli/internal/testkit/await"
	"github.com/sscli/sscli/internal/testkit/freeport"
)

func TestWebSocketAddresses(t *testing.T) {
	t.Parallel()
	s := emulator.Start(t)
	if s.WebSocketAddr() != nil || s.WebSocketURL() != "" {
		t.Errorf("%v, %q", s.WebSocketAddr(), s.WebSocketURL())
	}
	s = emulator.Start(t, emulator.Options{WebSocket: "127.0.0.1:0"})
	if want := "ws://" + s.WebSocketAddr().String() + "/mqtt"; s.WebSocketURL() != want || s.WebSocketAddr().String() == s.Addr().String() {
		t.Errorf("%q, want %q", s.WebSocketURL(), want)
	}
	web := httptest.NewTLSServer(nil) // has a certificate
	defer web.Close()
	s = emulator.Start(t, emulator.Options{WebSocket: "127.0.0.1:0", TLS: &tls.Config{Certificates: web.TLS.Certificates}})
	if !strings.HasPrefix(s.WebSocketURL(), "wss://") {
		t.Errorf("%q", s.WebSocketURL())
	}

	taken := s.WebSocketAddr().String()
	free := freeport.Address(t)
	if _, err := emulator.New(emulator.Options{Listen: free, WebSocket: taken}); !errors.Is(err, syscall.EADDRINUSE) || !strings.Contains(err.Error(), taken) {
		t.Errorf("%v", err)
	}
	emulator.Start(t, emulator.Options{Listen: free}) // the listener was closed
}

func TestWebSocketRefusals(t *testing.T) {
	t.Parallel()
	s := emulator.Start(t, emulator.Options{WebSocket: "127.0.0.1:0"})
	for request, want := range map[string]string{
		"GET /x HTTP/1.1\r\nHost: h\r\n\r\n":         "404 Not Found",
		"GET / HTTP/1.1\r\nHost: h\r\n\r\n":          "400 Bad Request",
		"GET /mqtt HTTP/1.1\r\nHost: h\r\n\r\n":      "400 Bad Request",
		"\x10\x10\x00\x04MQTT\r\n\r\n":               "",
		"GET /" + strings.Repeat("x", 70<<10) + "\n": "",
	} {
		conn, err := net.Dial("tcp", s.WebSocketAddr().String())
		if err != nil {
			t.Fatal(err)
		}
		conn.SetDeadline(time.Now().Add(time.Minute))
		io.WriteString(conn, request) // the server may close the connection before it has read everything
		response, err := http.ReadResponse(bufio.NewReader(conn), nil)
		switch {
		case want == "" && err == nil:
			t.Errorf("%.20q: %s, want no answer", request, response.Status)
		case want != "" && (err != nil || response.Status != want):
			t.Errorf("%.20q: %v (%v), want %s", request, response, err, want)
		case err == nil:
			if _, err := io.ReadAll(response.Body); err != nil {
				t.Errorf("%.20q: %v", request, err)
			}
		}
		conn.Close()
	}
}

// TestWebSocketText: MQTT 5, 6.0.0-1.
func TestWebSocketText(t *testing.T) {
	t.Parallel()
	s := emulator.Start(t, emulator.Options{WebSocket: "127.0.0.1:0"})
	conn, _, err := (&websocket.Dialer{Subprotocols: []string{"other", "mqtt"}}).DialContext(t.Context(), s.WebSocketURL(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if conn.Subprotocol() != "mqtt" {
		t.Errorf("subprotocol %q", conn.Subprotocol())
	}
	if err := conn.WriteMessage(websocket.TextMessage, []byte("hello")); err != nil {
		t.Fatal(err)
	}
	conn.SetReadDeadline(time.Now().Add(time.Minute))
	if _, _, err := conn.ReadMessage(); !websocket.IsCloseError(err, websocket.CloseUnsupportedData) {
		t.Errorf("%v, want a close", err)
	}
}

// TestCloseWaitsForNoWebSocket: neither a silent connection nor a WebSocket without CONNECT delays Close.
func TestCloseWaitsForNoWebSocket(t *testing.T) {
	t.Parallel()
	s := emulator.Start(t, emulator.Options{WebSocket: "127.0.0.1:0"})
	silent, err := net.Dial("tcp", s.WebSocketAddr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	upgraded, _, err := websocket.DefaultDialer.DialContext(t.Context(), s.WebSocketURL(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer upgraded.Close()
	await.State(t, s, func(st emulator.State) bool { return st.Connections == 2 })
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}
