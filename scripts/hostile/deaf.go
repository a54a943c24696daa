package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/gorilla/websocket"

	"github.com/eclipse/paho.golang/packets"

	"github.com/sscli/sscli/scripts/harness"
)

// deaf returns the attacks of clients that do not read what the server sends, and of those on WebSocket.
func deaf() []attack {
	subscribers := func(t *target, n int) {
		for i := range n {
			c := harness.Must(connectTo(t, connectOptions{id: fmt.Sprint("deaf", i)}))
			harness.Check(c.subscribe("news"))
		}
	}
	publish := func(ctx context.Context, t *target, size, count int) (string, error) {
		subscribers(t, 10)
		c := harness.Must(connectTo(t, connectOptions{id: "publisher"}))
		one := publishPacket("news", 0, make([]byte, size))
		n := t.scale(count)
		for i := range n {
			if _, err := c.Write(one); err != nil {
				return fmt.Sprintf("%d messages, then %s", i, plain(err)), nil
			}
		}
		return fmt.Sprintf("%d messages", n), c.ping()
	}
	webSockets := func(ctx context.Context, t *target, frame []byte, count int) (string, error) {
		all := bytes.Repeat(frame, count)
		conns := make([]*websocket.Conn, t.scale(crowd))
		if n, err := inParallel(ctx, len(conns), func(i int) (err error) {
			conns[i], err = connectToWeb(t, fmt.Sprint("web", i))
			return err
		}); err != nil {
			return fmt.Sprintf("%d clients, then %s", n, plain(err)), nil
		}
		for _, c := range conns {
			go func() { _, _ = io.Copy(io.Discard, c.UnderlyingConn()) }()
		}
		for _, c := range conns {
			if _, err := c.UnderlyingConn().Write(all); err != nil {
				return answered("", err)
			}
		}
		return fmt.Sprintf("%d clients", len(conns)), pause(ctx, t.afterwards())
	}
	return []attack{
		{name: "ten subscribers that do not read, 20,000 messages of 15 KB", memory: true, run: func(ctx context.Context, t *target) (string, error) {
			return publish(ctx, t, 15_000, 20_000)
		}},
		{name: "ten subscribers that do not read, 2,000 messages of 150 KB", memory: true, run: func(ctx context.Context, t *target) (string, error) {
			return publish(ctx, t, 150_000, 2000)
		}},
		{name: "ten clients that GET 15 KB 20,000 times and do not read", memory: true, run: func(ctx context.Context, t *target) (string, error) {
			w := harness.Must(connectToStore(t, connectOptions{id: "writer"}))
			harness.Check(w.request([]byte("SET"), []byte("large"), make([]byte, 15_000)))
			harness.Must(w.reply(patience))
			t.stored.Add(15_000)
			n, err := inParallel(ctx, 10, func(i int) error {
				c, err := connectToStore(t, connectOptions{id: fmt.Sprint("deaf", i)})
				if err != nil {
					return err
				}
				all := bytes.Repeat(c.requestPacket([]byte("GET"), []byte("large")), t.scale(20_000))
				_ = c.SetWriteDeadline(time.Now().Add(patience))
				_, err = c.Write(all)
				return err
			})
			if err != nil {
				return fmt.Sprintf("%d clients, then %s", n, plain(err)), nil
			}
			return fmt.Sprintf("%d clients", n), nil
		}},
		{name: "2,000 WebSockets that send 300 ping frames at once", run: func(ctx context.Context, t *target) (string, error) {
			return webSockets(ctx, t, []byte{0x89, 0x80, 1, 2, 3, 4}, 300)
		}},
		{name: "2,000 WebSockets that send 150 PINGREQs in frames of one byte at once", run: func(ctx context.Context, t *target) (string, error) {
			return webSockets(ctx, t, []byte{0x82, 0x81, 0, 0, 0, 0, packets.PINGREQ << 4, 0x82, 0x81, 0, 0, 0, 0, 0}, 150)
		}},
	}
}

// connectToWeb opens a WebSocket, and waits for CONNACK.
func connectToWeb(t *target, id string) (*websocket.Conn, error) {
	dialer := websocket.Dialer{Subprotocols: []string{"mqtt"}, NetDial: func(string, string) (net.Conn, error) { return t.dial(t.web) }}
	c, _, err := dialer.Dial("ws://localhost/mqtt", nil)
	if err != nil {
		return nil, err
	}
	if err := c.WriteMessage(websocket.BinaryMessage, connectPacket(connectOptions{id: id})); err != nil {
		return nil, err
	}
	_, m, err := c.ReadMessage()
	if err == nil {
		_, err = connected(bytes.NewReader(m))
	}
	return c, err
}
