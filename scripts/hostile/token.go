package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/eclipse/paho.golang/packets"
	"github.com/gorilla/websocket"

	"github.com/sscli/sscli/emulator"
)

// tokenFlags are the flags of a server whose clients log in with tokens.
var tokenFlags = []string{"--sat-audience", tokenAudience, "--sat-key", keyFile}

const (
	tokenAudience = "hostile"
	keyFile       = "sat.key"
)

// newIssuer returns an issuer of tokens, and writes its key to keyFile for serve.
func newIssuer(dir string) (*emulator.Issuer, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
	return &emulator.Issuer{Key: key, Audience: tokenAudience}, os.WriteFile(filepath.Join(dir, keyFile), text, 0o600)
}

// tokens returns the attacks with tokens.
func tokens() []attack {
	const life, used = 10 * time.Second, 12 * time.Second // the first is enough to open all connections, also on a busy machine
	return []attack{
		{name: "tokens of 10 s that are used for 12 s, on each port", flags: tokenFlags, run: func(ctx context.Context, t *target) (string, error) {
			token, err := t.issuer.Issue("attacker", time.Now(), life)
			if err != nil {
				return "", err
			}
			opened, err := openWith(ctx, t, token)
			if err != nil {
				return "", err
			}
			if err := pause(ctx, used); err != nil {
				return "", err
			}
			for _, o := range opened {
				if got := o.ask(); got != "" {
					return "", breach(fmt.Sprintf("%s after the token's end: %.40q", o.name, got))
				}
			}
			if _, err := connectTo(t, connectOptions{id: "again", token: token}); err == nil {
				return "", breach("a login after the token's end")
			}
			return fmt.Sprintf("%d connections closed", len(opened)), nil
		}},
		{name: "2,000 logins with a valid token, a will of 60 KB and another client's id", flags: tokenFlags, memory: true, run: func(ctx context.Context, t *target) (string, error) {
			token, err := t.issuer.Issue("attacker", time.Now(), time.Hour)
			if err != nil {
				return "", err
			}
			refused := 0
			for range t.scale(2000) {
				c, err := connectTo(t, connectOptions{id: "bystander", token: token, will: make([]byte, 60_000)})
				if err == nil {
					return "", breach("a take-over")
				}
				if _, ok := errors.AsType[refusal](err); !ok {
					return answered("", err)
				}
				refused++
				c.Close()
			}
			return fmt.Sprintf("%d refused", refused), ctx.Err()
		}},
	}
}

// An open is a connection that a token opened.
type open struct {
	name string
	net.Conn
	question []byte // empty = the connection only listens
}

// ask sends the question, and returns what came since the connection was opened. An empty result means that the
// server has closed the connection without a word.
func (o open) ask() string {
	_ = o.SetDeadline(time.Now().Add(time.Second))
	_, _ = o.Write(o.question) // fails if the connection is closed
	got, err := readAll(o)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return string(got) + " (open)"
	}
	return string(got)
}

// openWith opens a connection of each kind with a token.
func openWith(ctx context.Context, t *target, token string) (all []open, err error) {
	pingreq := []byte{packets.PINGREQ << 4, 0}
	for _, name := range []string{"an MQTT client", "an MQTT subscriber"} {
		c, err := connectTo(t, connectOptions{id: name, token: token})
		if err != nil {
			return nil, err
		}
		question := pingreq
		if name == "an MQTT subscriber" {
			if err := c.subscribe("news"); err != nil {
				return nil, err
			}
			question = nil
		}
		all = append(all, open{name, c, question})
	}
	web, _, err := (&websocket.Dialer{Subprotocols: []string{"mqtt"}}).DialContext(ctx, "ws://"+t.web+"/mqtt", nil)
	if err != nil {
		return nil, err
	}
	if err := web.WriteMessage(websocket.BinaryMessage, connectPacket(connectOptions{id: "web", token: token})); err != nil {
		return nil, err
	}
	if _, ack, err := web.ReadMessage(); err != nil || ack[3] != 0 {
		return nil, fmt.Errorf("CONNACK % x, %w", ack, err)
	}
	masked := []byte{0x82, 0x82, 0, 0, 0, 0, pingreq[0], pingreq[1]} // a binary frame of two bytes with the mask 0
	all = append(all, open{"a WebSocket client", web.NetConn(), masked})
	for _, r := range []struct {
		name     string
		before   [][]string
		rest     int // bytes of the last reply after its first line
		question string
	}{
		{"a Redis client", nil, 0, "PING\r\n"},
		{"a Redis subscriber", [][]string{{"SUBSCRIBE", "news"}}, len("$9\r\nsubscribe\r\n$4\r\nnews\r\n:1\r\n"), ""},
		{"a Redis transaction", [][]string{{"MULTI"}, {"SET", "late", "v"}}, 0, "EXEC\r\n"},
		{"a Redis client that watches", [][]string{{"WATCH", "k"}}, 0, "GET k\r\n"},
	} {
		c, err := connectToRedis(t)
		if err != nil {
			return nil, err
		}
		for _, words := range append([][]string{{"AUTH", token}}, r.before...) {
			var bytes [][]byte
			for _, w := range words {
				bytes = append(bytes, []byte(w))
			}
			if reply, err := c.do(patience, bytes...); err != nil || reply[0] == '-' {
				return nil, fmt.Errorf("%s: %q, %w", words[0], reply, err)
			}
		}
		if _, err := c.in.Discard(r.rest); err != nil {
			return nil, err
		}
		all = append(all, open{r.name, c, []byte(r.question)})
	}
	return all, nil
}
