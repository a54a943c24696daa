package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/eclipse/paho.golang/packets"
	"github.com/gorilla/websocket"

	"github.com/sscli/sscli/scripts/harness"
)

// tlsFlags are the flags of a server whose ports speak TLS, except the control port.
var tlsFlags = []string{"--listen-cert", "server.crt", "--listen-key", "server.key"}

// writeCertificate writes the files of tlsFlags, with an RSA key: to sign with it takes long.
func writeCertificate(dir string) error {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return err
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{"localhost"}, NotAfter: time.Now().Add(24 * time.Hour)}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return err
	}
	return errors.Join(
		os.WriteFile(filepath.Join(dir, "server.crt"), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert}), 0o600),
		os.WriteFile(filepath.Join(dir, "server.key"), pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}), 0o600))
}

// transports returns the attacks over TLS, WebSocket, the Redis port and the control port.
func transports() []attack {
	return []attack{
		{name: "ten TLS subscribers that do not read, 20,000 messages of 15 KB", memory: true, flags: tlsFlags, run: func(_ context.Context, t *target) (string, error) {
			return publishToDeaf(t, 15_000, 20_000, func(id string) error {
				c, err := connectTo(t, connectOptions{id: id})
				if err == nil {
					err = c.subscribe("news")
				}
				return err
			})
		}},
		{name: "ten WebSocket subscribers that do not read, 20,000 messages of 15 KB", memory: true, run: func(_ context.Context, t *target) (string, error) {
			return publishToDeaf(t, 15_000, 20_000, func(id string) error {
				_, err := subscribeOnWeb(t, id)
				return err
			})
		}},
		{name: "500 subscribers with QoS 1 and a Receive Maximum of 1 that do not read, 20,000 messages of 15 KB", memory: true, run: func(_ context.Context, t *target) (string, error) {
			for i := range t.scale(500) {
				c, err := connectTo(t, connectOptions{id: fmt.Sprint("slow", i), receiveMaximum: 1})
				if err == nil {
					err = c.subscribe("news")
				}
				if err != nil {
					return answered("", err)
				}
			}
			return publishMany(t, "news", t.scale(20_000), 15_000)
		}},
		{name: "200 members of a shared subscription that do not read, 20,000 messages of 15 KB", memory: true, run: func(_ context.Context, t *target) (string, error) {
			for i := range t.scale(200) {
				c, err := connectTo(t, connectOptions{id: fmt.Sprint("member", i)})
				if err == nil {
					err = c.subscribe("$share/g/news")
				}
				if err != nil {
					return answered("", err)
				}
			}
			return publishMany(t, "news", t.scale(20_000), 15_000)
		}},
		{name: "500 clients that subscribe to 1,000 retained messages of 30 KB and do not read", memory: true, run: func(ctx context.Context, t *target) (string, error) {
			c := harness.Must(connectTo(t, connectOptions{id: "publisher"}))
			for i := range t.scale(1000) {
				p := packets.Publish{Topic: fmt.Sprint("old/", i), Retain: true, Payload: make([]byte, 30_000), Properties: &packets.Properties{}}
				wanted(c.Write(encoded(&p)))
			}
			want(c.ping())
			n, _ := inParallel(ctx, t.scale(500), func(i int) error {
				c, err := connectTo(t, connectOptions{id: fmt.Sprint("deaf", i)})
				if err == nil {
					_, err = c.Write(subscribePacket(&packets.Properties{}, "old/#"))
				}
				return err
			})
			return fmt.Sprintf("%d clients", n), pause(ctx, 2*time.Second)
		}},
		{name: "2,000 delayed wills of 30 KB in one moment, to 200 that do not read", memory: true, run: func(ctx context.Context, t *target) (string, error) {
			for i := range t.scale(200) {
				c, err := connectTo(t, connectOptions{id: fmt.Sprint("heir", i)})
				if err == nil {
					err = c.subscribe("will")
				}
				if err != nil {
					return answered("", err)
				}
			}
			moment := time.Now().Add(time.Duration(t.scale(10)) * time.Second)
			n, _ := inParallel(ctx, t.scale(2000), func(i int) error {
				c, err := connectTo(t, connectOptions{id: fmt.Sprint("will", i), will: make([]byte, 30_000), expiry: 3600,
					willDelay: uint32(max(1, time.Until(moment).Seconds()))})
				if err == nil {
					err = c.Close()
				}
				return err
			})
			return fmt.Sprintf("%d wills", n), pause(ctx, time.Until(moment)+3*time.Second)
		}},
		{name: "ten Redis subscribers that do not read, 20,000 messages of 15 KB", memory: true, run: func(_ context.Context, t *target) (string, error) {
			for range 10 {
				c := harness.Must(connectToRedis(t))
				wanted(c.do(patience, []byte("SUBSCRIBE"), []byte("news")))
			}
			c := harness.Must(connectToRedis(t))
			message, n := make([]byte, 15_000), t.scale(20_000)
			for i := range n {
				if _, err := c.do(patience, []byte("PUBLISH"), []byte("news"), message); err != nil {
					return fmt.Sprintf("%d messages, then %s", i, plain(err)), nil
				}
			}
			return fmt.Sprintf("%d messages", n), nil
		}},
		{name: "100 Redis clients that GET 15 KB 20,000 times and do not read", memory: true, run: func(ctx context.Context, t *target) (string, error) {
			w := harness.Must(connectToRedis(t))
			wanted(w.do(patience, []byte("SET"), []byte("large"), make([]byte, 15_000)))
			t.stored.Add(15_000)
			n, _ := inParallel(ctx, 100, func(int) error {
				c, err := connectToRedis(t)
				if err != nil {
					return err
				}
				_ = c.SetWriteDeadline(time.Now().Add(time.Second))
				_, _ = io.WriteString(c, strings.Repeat("GET large\r\n", t.scale(20_000))) // as much as the server reads
				return nil
			})
			return fmt.Sprintf("%d clients", n), nil
		}},
		{name: "1,000 TLS subscribers that read, 100 messages of 64 KB", flags: tlsFlags, run: func(ctx context.Context, t *target) (string, error) {
			return publishToReaders(ctx, t, 100, 64<<10, func(i int) (io.Reader, error) {
				c, err := connectTo(t, connectOptions{id: fmt.Sprint("reader", i)})
				if err == nil {
					err = c.subscribe("news")
				}
				return c, err
			})
		}},
		{name: "2,000 TLS clients that send 300 PINGREQs at once, each in a record", flags: tlsFlags, run: func(ctx context.Context, t *target) (string, error) {
			return recordsAtOnce(ctx, t, t.mqtt, func(i int) []byte { return connectPacket(connectOptions{id: fmt.Sprint("crowd", i)}) }, "\xc0\x00", 300)
		}},
		{name: "2,000 TLS clients of Redis that send 300 PINGs at once, each in a record", flags: tlsFlags, run: func(ctx context.Context, t *target) (string, error) {
			return recordsAtOnce(ctx, t, t.redis, func(int) []byte { return []byte("PING\r\n") }, "PING\r\n", 300)
		}},
		{name: "1,000 WebSocket subscribers that read, 100 messages of 64 KB", run: func(ctx context.Context, t *target) (string, error) {
			return publishToReaders(ctx, t, 100, 64<<10, func(i int) (io.Reader, error) {
				c, err := subscribeOnWeb(t, fmt.Sprint("reader", i))
				if err != nil {
					return nil, err
				}
				return c.NetConn(), nil
			})
		}},
		{name: "1,000 Redis subscribers that read pushes, 100 messages of 64 KB", run: func(ctx context.Context, t *target) (string, error) {
			return publishToReaders(ctx, t, 100, 64<<10, func(int) (io.Reader, error) {
				c, err := connectToRedis(t)
				if err == nil {
					_, err = io.WriteString(c, "HELLO 3\r\nSUBSCRIBE news\r\n")
				}
				return c, err
			})
		}},
		{name: "2,000 TLS handshakes at once", flags: tlsFlags, run: func(ctx context.Context, t *target) (string, error) {
			hello := clientHello()
			conns := make([]net.Conn, t.scale(crowd))
			for i := range conns {
				conns[i] = harness.Must(t.dial([]string{plainAddress(t.mqtt), plainAddress(t.redis), plainAddress(t.web)}[i%3]))
			}
			answers := atomic.Int64{}
			for _, c := range conns {
				wanted(c.Write(hello))
				go func() {
					if n, _ := c.Read(make([]byte, 1)); n > 0 {
						answers.Add(1)
					}
				}()
			}
			err := pause(ctx, 6*time.Second)
			return fmt.Sprintf("%d answers", answers.Load()), err
		}},
		{name: "2,000 TLS handshakes of which 30 KB are sent", memory: true, flags: tlsFlags, run: func(ctx context.Context, t *target) (string, error) {
			record := append([]byte{22, 3, 1, 0x40, 0, 1, 0, 0xff, 0}, make([]byte, 16<<10-4)...)
			n := 0
			for i := range t.scale(crowd) {
				c := harness.Must(t.dial([]string{plainAddress(t.mqtt), plainAddress(t.redis), plainAddress(t.web)}[i%3]))
				if _, err := c.Write(append(record, record[:30_000-len(record)]...)); err == nil {
					n++
				}
			}
			return fmt.Sprintf("%d connections", n), pause(ctx, 2*time.Second)
		}},
		{name: "64 snapshots by the control port of 2,000 keys of 30 KB, not read", memory: true, run: func(ctx context.Context, t *target) (string, error) {
			c := harness.Must(connectToRedis(t))
			for i := range t.scale(2000) {
				wanted(c.do(patience, []byte("SET"), append(bytes.Repeat([]byte("k"), 30_000), fmt.Sprint(i)...), []byte("v")))
				t.stored.Add(30_000)
			}
			for range 64 {
				c := harness.Must(t.dial(t.control))
				wanted(io.WriteString(c, "GET /snapshot HTTP/1.1\r\nHost: localhost\r\n\r\n"))
			}
			return "64 requests", pause(ctx, 3*time.Second)
		}},
		{name: "64 bodies of 60 MB for the control port", memory: true, run: func(ctx context.Context, t *target) (string, error) {
			line := fmt.Sprintf("{\"key\":\"k\",\"value\":\"%s\"}\n", strings.Repeat("v", 1000))
			t.stored.Add(1000)
			body := strings.Repeat(line, t.scale(60_000_000)/len(line))
			n, _ := inParallel(ctx, 64, func(int) error {
				r, err := http.Post("http://"+t.control+"/load", "application/x-ndjson", strings.NewReader(body))
				if err == nil {
					defer r.Body.Close()
					if r.StatusCode != http.StatusOK {
						err = errors.New(r.Status)
					}
				}
				return err
			})
			return fmt.Sprintf("%d loaded", n), nil
		}},
	}
}

// plainAddress returns an address without tlsPrefix, for those who do not complete a handshake.
func plainAddress(address string) string { return strings.TrimPrefix(address, tlsPrefix) }

// clientHello returns the first bytes of a TLS client. Whoever sends them again makes the server sign, and works little.
func clientHello() []byte {
	ours, theirs := net.Pipe()
	defer ours.Close()
	go func() {
		_ = tls.Client(theirs, &tls.Config{InsecureSkipVerify: true}).Handshake() // fails when the pipe is closed
	}()
	hello := make([]byte, 16<<10)
	return hello[:harness.Must(ours.Read(hello))]
}

// publishToDeaf publishes messages to ten subscribers that do not read.
func publishToDeaf(t *target, size, count int, subscribe func(id string) error) (string, error) {
	for i := range 10 {
		harness.Check(subscribe(fmt.Sprint("deaf", i)))
	}
	c := harness.Must(connectTo(t, connectOptions{id: "publisher"}))
	one, n := publishPacket("news", 0, make([]byte, size)), t.scale(count)
	for i := range n {
		if _, err := c.Write(one); err != nil {
			return fmt.Sprintf("%d messages, then %s", i, plain(err)), nil
		}
	}
	return fmt.Sprintf("%d messages", n), c.ping()
}

// subscribeOnWeb opens a WebSocket that subscribes to news, and waits for SUBACK.
func subscribeOnWeb(t *target, id string) (*websocket.Conn, error) {
	c, err := connectToWeb(t, id)
	if err == nil {
		err = c.WriteMessage(websocket.BinaryMessage, subscribePacket(&packets.Properties{}, "news"))
	}
	if err == nil {
		_, _, err = c.ReadMessage()
	}
	return c, err
}

// publishToReaders publishes messages to 1,000 clients that read. subscribe returns a client that has subscribed.
func publishToReaders(ctx context.Context, t *target, count, size int, subscribe func(i int) (io.Reader, error)) (string, error) {
	if n, err := inParallel(ctx, t.scale(1000), func(i int) error {
		c, err := subscribe(i)
		if err == nil {
			go func() { _, _ = io.Copy(io.Discard, c) }()
		}
		return err
	}); err != nil {
		return fmt.Sprintf("%d clients, then %s", n, plain(err)), nil
	}
	return publishMany(t, "news", t.scale(count), size)
}

// A batched is a connection that keeps what is written once hold is set.
type batched struct {
	net.Conn
	hold bool
	kept []byte
}

func (b *batched) Write(p []byte) (int, error) {
	if b.hold {
		b.kept = append(b.kept, p...)
		return len(p), nil
	}
	return b.Conn.Write(p)
}

// recordsAtOnce lets a crowd of TLS clients send a text count times at once, each time in a record of its own. A client
// first sends the text that begin returns, and gets an answer.
func recordsAtOnce(ctx context.Context, t *target, address string, begin func(i int) []byte, text string, count int) (string, error) {
	clients := make([]*batched, t.scale(crowd))
	if n, err := inParallel(ctx, len(clients), func(i int) error {
		raw, err := t.dial(plainAddress(address))
		if err != nil {
			return err
		}
		clients[i] = &batched{Conn: raw}
		c := tls.Client(clients[i], &tls.Config{InsecureSkipVerify: true})
		if _, err = c.Write(begin(i)); err == nil {
			_, err = c.Read(make([]byte, 100))
		}
		clients[i].hold = true
		for range count {
			wanted(io.WriteString(c, text))
		}
		return err
	}); err != nil {
		return fmt.Sprintf("%d clients, then %s", n, plain(err)), nil
	}
	for _, c := range clients {
		go func() { _, _ = io.Copy(io.Discard, c) }()
		if _, err := c.Conn.Write(c.kept); err != nil {
			return answered("", err)
		}
	}
	return fmt.Sprintf("%d clients", len(clients)), pause(ctx, t.afterwards())
}
