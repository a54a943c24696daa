package broker_test

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/eclipse/paho.golang/packets"
	"github.com/gorilla/websocket"

	"github.com/sscli/sscli/internal/broker"
	"github.com/sscli/sscli/internal/testkit/mqtttest"
)

// startWebSocket returns the URL of a broker that listens for WebSockets.
func startWebSocket(t testing.TB, origins ...string) (s *server, url string) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s = start(t, broker.Options{Origins: origins})
	s.ServeWebSocket(ln, "/mqtt")
	return s, "ws://" + ln.Addr().String() + "/mqtt"
}

// A webConn reads and writes the bytes in binary messages.
type webConn struct {
	net.Conn
	ws   *websocket.Conn
	rest io.Reader
}

func (w *webConn) Read(p []byte) (int, error) {
	for {
		if w.rest == nil {
			kind, r, err := w.ws.NextReader()
			if err != nil {
				return 0, err
			}
			if kind != websocket.BinaryMessage { // [MQTT-6.0.0-1]
				return 0, fmt.Errorf("a message of type %d", kind)
			}
			w.rest = r
		}
		n, err := w.rest.Read(p)
		if err == io.EOF {
			w.rest, err = nil, nil
			if n == 0 {
				continue
			}
		}
		return n, err
	}
}

func (w *webConn) Write(p []byte) (int, error) {
	return len(p), w.ws.WriteMessage(websocket.BinaryMessage, p)
}

func (w *webConn) SetReadDeadline(t time.Time) error { return w.ws.SetReadDeadline(t) }

func dialWebSocket(t testing.TB, url, id string) *client {
	t.Helper()
	d := websocket.Dialer{Subprotocols: []string{"other", "mqtt"}}
	ws, response, err := d.Dial(url, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ws.Close() })
	if ws.Subprotocol() != "mqtt" || response.Header.Get("Sec-Websocket-Extensions") != "" { // [MQTT-6.0.0-4]
		t.Errorf("subprotocol %q, headers %v", ws.Subprotocol(), response.Header)
	}
	return &client{mqtttest.New(t, &webConn{Conn: ws.NetConn(), ws: ws}, id)}
}

// TestWebSocket: MQTT 5, 6. Packets may be divided among messages and frames in any way [MQTT-6.0.0-2].
func TestWebSocket(t *testing.T) {
	t.Parallel()
	s, url := startWebSocket(t)
	c := dialWebSocket(t, url+"?x=y", "c")
	c.Hello()
	c.Subscribe("t", 1)
	large := strings.Repeat("0123456789abcdef", 1<<15)
	for _, payload := range []string{"", "small", strings.Repeat("x", 110), strings.Repeat("x", 126), strings.Repeat("x", 70000), large} {
		c.Send(c.Message("t", 1, payload))
		c.ExpectAll(fmt.Sprintf("PUBACK %d 0x00", c.Last), "t q1: "+payload)
	}
	ws := c.Conn.(*webConn).ws
	ponged := make(chan string, 1)
	ws.SetPongHandler(func(data string) error {
		ponged <- data
		return nil
	})
	// A message in several frames, one of them empty, with a ping between them.
	frame := func(first byte, payload string) {
		t.Helper()
		mask := [4]byte{1, 2, 3, byte(len(payload))}
		b := append([]byte{first, 0x80 | byte(len(payload))}, mask[:]...)
		for i := range len(payload) {
			b = append(b, payload[i]^mask[i&3])
		}
		for i := range b { // byte by byte
			if _, err := ws.NetConn().Write(b[i : i+1]); err != nil {
				t.Fatal(err)
			}
		}
	}
	frame(0x02, "\xc0\x00\x30")
	frame(0x89, "ping")
	frame(0x00, "")
	frame(0x00, "\x05\x00\x01t")
	frame(0x80, "\x00x\xc0\x00")
	c.Expect("PINGRESP", "t q0: x", "PINGRESP")
	if got := <-ponged; got != "ping" {
		t.Errorf("pong %q", got)
	}
	other := dial(t, s, "c")
	other.Hello()
	c.Expect("DISCONNECT 0x8e")
	if _, err := c.Conn.Read(make([]byte, 1)); !websocket.IsCloseError(err, websocket.CloseNormalClosure) {
		t.Errorf("%v, want a close", err)
	}
}

// TestWebSocketErrors: RFC 6455, 5.1, 5.4, 5.5; [MQTT-6.0.0-1].
func TestWebSocketErrors(t *testing.T) {
	t.Parallel()
	_, url := startWebSocket(t)
	for name, tt := range map[string]struct {
		frames string
		status int
	}{
		"text":                       {"\x81\x80\x00\x00\x00\x00", websocket.CloseUnsupportedData},
		"no mask":                    {"\x82\x00", websocket.CloseProtocolError},
		"a reserved bit":             {"\xc2\x80\x00\x00\x00\x00", websocket.CloseProtocolError},
		"continuation of nothing":    {"\x80\x80\x00\x00\x00\x00", websocket.CloseProtocolError},
		"a message within a message": {"\x02\x80\x00\x00\x00\x00\x82\x80\x00\x00\x00\x00", websocket.CloseProtocolError},
		"a ping in parts":            {"\x09\x80\x00\x00\x00\x00", websocket.CloseProtocolError},
		"a ping of 126 bytes":        {"\x89\xfe\x00\x7e\x00\x00\x00\x00", websocket.CloseProtocolError},
		"close":                      {"\x88\x80\x00\x00\x00\x00", websocket.CloseNormalClosure},
	} {
		t.Run(name, func(t *testing.T) {
			ws, _, err := websocket.DefaultDialer.Dial(url, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer ws.Close()
			if _, err := io.WriteString(ws.NetConn(), tt.frames); err != nil {
				t.Fatal(err)
			}
			ws.SetReadDeadline(time.Now().Add(patience))
			if _, _, err := ws.ReadMessage(); !websocket.IsCloseError(err, tt.status) {
				t.Errorf("%v, want status %d", err, tt.status)
			}
		})
	}
}

// TestWebSocketRequests: RFC 6455, 4.2.
func TestWebSocketRequests(t *testing.T) {
	t.Parallel()
	_, url := startWebSocket(t)
	address := strings.TrimSuffix(strings.TrimPrefix(url, "ws://"), "/mqtt")
	const good = "Host: h\r\nConnection: keep-alive, UPGRADE\r\nUpgrade: WebSocket\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\n"
	without := func(line string) string {
		return strings.Replace(good, line+"\r\n", "", 1)
	}
	for request, want := range map[string]int{
		"GET /mqtt HTTP/1.1\r\n" + good:                                                              101,
		"GET /mqtt HTTP/1.1\r\n" + strings.Replace(good, "AAAA", "AAAAA", 1):                         400,
		"GET /other HTTP/1.1\r\n" + good:                                                             404,
		"POST /mqtt HTTP/1.1\r\n" + good:                                                             400,
		"GET /mqtt HTTP/1.1\r\n" + without("Upgrade: WebSocket"):                                     400,
		"GET /mqtt HTTP/1.1\r\n" + without("Connection: keep-alive, UPGRADE"):                        400,
		"GET /mqtt HTTP/1.1\r\n" + without("Sec-WebSocket-Version: 13"):                              426,
		"GET /mqtt\r\n" + good:                                                                       0,
		"GET /mqtt HTTP/1.1\r\nno header\r\n":                                                        0,
		"GET /mqtt HTTP/1.1\r\n" + strings.Repeat("X: "+strings.Repeat("x", 100)+"\r\n", 160) + good: 0,
		"GET /mqtt HTTP/1.1\r\n" + strings.Repeat("X:\r\n", 3000) + good:                             0,
	} {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		conn.SetDeadline(time.Now().Add(patience))
		io.WriteString(conn, request+"\r\n") // the broker may close the connection before it has read everything
		got := 0
		if response, err := http.ReadResponse(bufio.NewReader(conn), nil); err == nil {
			got = response.StatusCode
		}
		if got != want {
			t.Errorf("%.60q: status %d, want %d", request, got, want)
		}
		conn.Close()
	}
}

// FuzzWebSocket: whatever a client sends after the upgrade, the broker survives, and data arrives in frames
// of any size.
func FuzzWebSocket(f *testing.F) {
	s, url := startWebSocket(f)
	f.Add([]byte("\x82\x82\x00\x00\x00\x00\xc0\x00"), []byte{3, 1, 200})
	f.Add([]byte("\x82\xff\xff\xff\xff\xff\xff\xff\xff\xff\x00\x00\x00\x00"), []byte{0})
	f.Add([]byte("\x89\x80\x00\x00\x00\x00\x88\x82\x00\x00\x00\x00\x03\xe8"), []byte{})
	f.Fuzz(func(t *testing.T, garbage, sizes []byte) {
		bad, _, err := websocket.DefaultDialer.Dial(url, nil)
		if err != nil {
			t.Fatal(err)
		}
		bad.NetConn().Write(garbage) // the broker may close the connection in the middle
		bad.Close()

		c := dialWebSocket(t, url, "good")
		c.Hello()
		var stream bytes.Buffer
		if _, err := c.Message("t", 1, "payload").WriteTo(&stream); err != nil {
			t.Fatal(err)
		}
		ws := c.Conn.(*webConn).ws
		var frames []byte
		rest, first := stream.Bytes(), byte(0x02)
		for _, size := range append(sizes[:min(len(sizes), 20)], 255) {
			n := min(int(size), len(rest))
			b := []byte{first, 0x80 | 126}
			b = binary.BigEndian.AppendUint16(b, uint16(n))
			b = append(b, 0, 0, 0, 0)
			frames = append(append(frames, b...), rest[:n]...)
			rest, first = rest[n:], 0
		}
		frames = append(frames, 0x80, 0x80, 0, 0, 0, 0)
		if _, err := ws.NetConn().Write(frames); err != nil {
			t.Fatal(err)
		}
		c.Expect("PUBACK 1 0x10")
		ws.Close()
		s.await(t, func(st broker.Stats) bool { return st.Connections == 0 })
	})
}

// TestWebSocketMessages: each packet is a separate message, even when several are sent at once.
func TestWebSocketMessages(t *testing.T) {
	t.Parallel()
	_, url := startWebSocket(t)
	c := dialWebSocket(t, url, "c")
	c.Hello()
	c.Subscribe("t", 0)
	const pings = 50
	var out bytes.Buffer
	for range pings {
		out.WriteString("\xc0\x00")
	}
	c.Raw(out.String())
	ws := c.Conn.(*webConn).ws
	ws.SetReadDeadline(time.Now().Add(patience))
	for i := range pings {
		if _, message, err := ws.ReadMessage(); err != nil || string(message) != "\xd0\x00" {
			t.Fatalf("message %d: % x, %v; want one PINGRESP", i, message, err)
		}
	}
}

// TestWebSocketPings: a client that pings the WebSocket but neither reads nor sends packets is disconnected
// after its Keep Alive.
func TestWebSocketPings(t *testing.T) {
	t.Parallel()
	s, url := startWebSocket(t)
	c := dialWebSocket(t, url, "c")
	c.Hello(func(p *packets.Connect) { p.KeepAlive = 1 })
	conn := c.Conn.(*webConn).ws.NetConn()
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		block := bytes.Repeat([]byte("\x89\xfd\x00\x00\x00\x00"+strings.Repeat("x", 125)), 1000)
		for {
			if _, err := conn.Write(block); err != nil {
				return
			}
		}
	}()
	s.await(t, func(st broker.Stats) bool { return st.Connections == 0 })
	conn.Close()
	<-stopped
}

// TestWebSocketOrigins: a page of another site cannot reach the broker through the browser of a user who can,
// not even under a name that the site maps to the broker's address.
func TestWebSocketOrigins(t *testing.T) {
	t.Parallel()
	_, url := startWebSocket(t, "https://dashboard.example")
	address := strings.TrimSuffix(strings.TrimPrefix(url, "ws://"), "/mqtt")
	_, port, _ := net.SplitHostPort(address)
	for origin, allowed := range map[string]bool{
		"":                                true,
		"http://" + address:               true,
		"http://localhost:" + port:        true,
		"https://" + address:              true,
		"https://Dashboard.example":       true,
		"http://dashboard.example":        false,
		"https://dashboard.example:8443":  false,
		"http://evil.example":             false,
		"http://evil.example:" + port:     false,
		"http://127.0.0.1":                false,
		"http://127.0.0.1:1":              false,
		"http://127.0.0.1.evil.example:1": false,
		"null":                            false,
		" ":                               false, // an empty Origin
		"http://%zz":                      false,
	} {
		header := http.Header{"Host": {"evil.example:" + port}}
		if origin != "" {
			header.Set("Origin", strings.Trim(origin, " "))
		}
		ws, response, err := websocket.DefaultDialer.Dial(url, header)
		if err == nil {
			ws.Close()
		}
		if (err == nil) != allowed || !allowed && (response == nil || response.StatusCode != http.StatusForbidden) {
			t.Errorf("origin %q: %v, %v, want %t", origin, err, response, allowed)
		}
	}
}

// TestWebSocketMemory: the buffers of a WebSocket are charged.
func TestWebSocketMemory(t *testing.T) {
	t.Parallel()
	s, url := startWebSocket(t)
	kept := func() int {
		s.Lock()
		defer s.Unlock()
		return s.Stats().Kept
	}
	connect(t, s, "1")
	plain := kept()
	dialWebSocket(t, url, "2").Hello()
	if more := kept() - 2*plain; more < 8<<10 {
		t.Errorf("a WebSocket is charged %d bytes more than a plain connection", more)
	}
}
