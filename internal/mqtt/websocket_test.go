package mqtt_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"github.com/sscli/sscli/emulator"
	"github.com/sscli/sscli/internal/mqtt"
)

func TestWebSocket(t *testing.T) {
	authority := newCA(t)
	for name, o := range map[string]emulator.Options{"ws": {}, "wss": {TLS: authority.server()}} {
		t.Run(name, func(t *testing.T) {
			o.WebSocket = "127.0.0.1:0"
			server := emulator.Start(t, o)
			messages := make(chan mqtt.Message, 100)
			to := mqtt.Options{ClientID: "c", WebSocket: "/mqtt", Subscribe: []string{"t"}, OnMessage: func(m mqtt.Message) { messages <- m }}
			if o.TLS != nil {
				to.TLS = trust(t, authority)
			}
			conn := dial(t, server.WebSocketAddr().String(), to)
			for i := range 10 {
				sent := bytes.Repeat([]byte{byte(i), 0, 0xFF}, i*20_000)
				acked, outcome := ack()
				if err := conn.Publish(within(t), mqtt.Message{Topic: "t", Payload: sent}, acked); err != nil {
					t.Fatal(err)
				}
				if err := wait(t, "PUBACK", outcome); err != nil {
					t.Error(err)
				}
				if m := wait(t, "the message", messages); !bytes.Equal(m.Payload, sent) {
					t.Errorf("%d bytes came of %d", len(m.Payload), len(sent))
				}
			}
			if err := conn.Close(); err != nil {
				t.Error(err)
			}
			conn = dial(t, server.WebSocketAddr().String(), to)
			server.DropAll()
			if err := lost(t, conn); !hungUp(err) {
				t.Errorf("cut: %v", err)
			}
			conn = dial(t, server.WebSocketAddr().String(), to)
			dial(t, server.WebSocketAddr().String(), to)
			if code, _ := mqtt.ReasonCode(lost(t, conn)); code != mqtt.ReasonTakenOver {
				t.Errorf("taken over: %v", conn.Err())
			}
			conn = dial(t, server.WebSocketAddr().String(), mqtt.Options{ClientID: "d", WebSocket: "/mqtt", TLS: to.TLS})
			if err := server.Close(); err != nil {
				t.Error(err)
			}
			if code, _ := mqtt.ReasonCode(lost(t, conn)); code != 0x8B {
				t.Errorf("shutdown: %v", conn.Err())
			}
		})
	}
}

// TestWebSocketOutcomes: everything published before Close is sent.
func TestWebSocketOutcomes(t *testing.T) {
	server := emulator.Start(t, emulator.Options{WebSocket: "127.0.0.1:0"})
	conn := dial(t, server.WebSocketAddr().String(), mqtt.Options{WebSocket: "/mqtt"})
	for i := range 100 {
		if err := conn.Publish(within(t), request(fmt.Sprint(i)), func(error) {}); err != nil {
			t.Fatal(err)
		}
	}
	if err := conn.Close(); err != nil {
		t.Error(err)
	}
	if err := server.Await(within(t), func(s emulator.State) bool { return s.Requests == 100 }); err != nil {
		t.Error(err)
	}
}

func TestNoWebSocket(t *testing.T) {
	authority := newCA(t)
	server := emulator.Start(t, emulator.Options{WebSocket: "127.0.0.1:0"})
	secure := emulator.Start(t, emulator.Options{WebSocket: "127.0.0.1:0", TLS: authority.server()})
	forbidden := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { http.Error(w, "no", http.StatusForbidden) }))
	defer forbidden.Close()
	status := func(want int) func(error) bool {
		return func(err error) bool {
			return err != nil && strings.HasSuffix(err.Error(), fmt.Sprintf("the server answered %d %s, not with a WebSocket", want, http.StatusText(want)))
		}
	}
	for _, test := range []struct {
		name string
		o    mqtt.Options
		is   func(error) bool
	}{
		{"another path", mqtt.Options{Address: server.WebSocketAddr().String(), WebSocket: "/elsewhere?a=b"}, status(404)},
		{"forbidden", mqtt.Options{Address: forbidden.Listener.Addr().String(), WebSocket: "/mqtt"}, status(403)},
		{"no path", mqtt.Options{Address: server.WebSocketAddr().String(), WebSocket: "mqtt"}, func(err error) bool { return err != nil }},
		{"MQTT port", mqtt.Options{Address: server.Addr().String(), WebSocket: "/mqtt"}, hungUp},
		{"ws to wss", mqtt.Options{Address: secure.WebSocketAddr().String(), WebSocket: "/mqtt"}, func(err error) bool { return err != nil }},
	} {
		t.Run(test.name, func(t *testing.T) {
			test.o.ClientID = "c"
			_, err := mqtt.Dial(within(t), test.o)
			dialError, ok := errors.AsType[*mqtt.DialError](err)
			if !ok || dialError.Stage != mqtt.StageWebSocket || !test.is(err) {
				t.Errorf("%v", err)
			}
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	silent := hostile(t, func(p *peer) {
		_, _ = p.Read(make([]byte, 1)) // the handshake has begun
		cancel()
		p.silence()
	})
	_, err := mqtt.Dial(ctx, mqtt.Options{Address: silent, WebSocket: "/mqtt"})
	if dialError, ok := errors.AsType[*mqtt.DialError](err); !ok || dialError.Stage != mqtt.StageWebSocket || !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

// TestWebSocketHostile: the peer breaks the rules of WebSockets.
func TestWebSocketHostile(t *testing.T) {
	for _, test := range []struct {
		name   string
		script func(*websocket.Conn)
		is     func(error) bool
	}{
		{"text", func(c *websocket.Conn) { c.WriteMessage(websocket.TextMessage, []byte(" \x03\x00\x00\x00")) }, has[*mqtt.MalformedError]},
		{"bad frame", func(c *websocket.Conn) { c.NetConn().Write([]byte{0xFF, 0}) }, has[*mqtt.MalformedError]},
		{"goodbye", func(c *websocket.Conn) {
			c.WriteMessage(websocket.CloseMessage, websocket.FormatCloseMessage(websocket.CloseGoingAway, ""))
		}, is(mqtt.ErrBrokerClosed)},
		{"policy", func(c *websocket.Conn) {
			c.WriteMessage(websocket.CloseMessage, websocket.FormatCloseMessage(websocket.ClosePolicyViolation, "no"))
		}, has[*websocket.CloseError]},
		{"hang up", func(c *websocket.Conn) { c.NetConn().Close() }, hungUp},
		{"in pieces", func(c *websocket.Conn) {
			c.WriteMessage(websocket.BinaryMessage, nil)
			c.WriteMessage(websocket.PingMessage, []byte("are you there"))
			for _, b := range []byte("\x20\x03\x00\x86\x00") {
				c.WriteMessage(websocket.BinaryMessage, []byte{b})
			}
		}, func(err error) bool {
			code, _ := mqtt.ReasonCode(err)
			return code == mqtt.ReasonBadLogin
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			upgrader := websocket.Upgrader{Subprotocols: []string{"mqtt"}}
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				c, err := upgrader.Upgrade(w, r, nil)
				if err != nil {
					t.Error(err)
					return
				}
				defer c.Close()
				if c.Subprotocol() != "mqtt" {
					t.Errorf("subprotocol %q", c.Subprotocol())
				}
				c.ReadMessage()
				test.script(c)
				c.SetReadDeadline(time.Now().Add(time.Minute))
				io.Copy(io.Discard, c.NetConn())
			}))
			defer server.Close()
			_, err := mqtt.Dial(within(t), mqtt.Options{Address: server.Listener.Addr().String(), ClientID: "c", WebSocket: "/"})
			dialError, ok := errors.AsType[*mqtt.DialError](err)
			if !ok || dialError.Stage != mqtt.StageConnect || !test.is(err) {
				t.Errorf("%v", err)
			}
		})
	}
}
