package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/eclipse/paho.golang/packets"

	"github.com/sscli/sscli/internal/wire"
)

// A breach describes what an attacker got although a server must not give it.
type breach string

func (b breach) Error() string { return string(b) }

// leaks returns the attacks on data of other clients.
func leaks() []attack {
	return []attack{
		{name: "replies to a client whose id is the attacker's in hexadecimal", flags: []string{"--users", "users", "--allow", "user:ReadWrite:*"}, run: func(_ context.Context, t *target) (string, error) {
			c, err := connectTo(t, connectOptions{id: "AB", password: password})
			if err != nil {
				return "", err
			}
			for _, filter := range []string{wire.ResponseTopic("4142"), "clients/4142/#", "$share/g/clients/4142/#"} {
				if _, err := c.Write(subscribePacket(&packets.Properties{}, filter)); err != nil {
					return "", err
				}
				p, err := packets.ReadPacket(c.in)
				if err != nil {
					return answered("", err)
				}
				if ack, ok := p.Content.(*packets.Suback); !ok || ack.Reasons[0] < 0x80 {
					return "", breach("SUBACK 1 for " + filter)
				}
			}
			return "SUBACK 0x87", nil
		}},
		{name: "a line in the ticket of a TLS client, and in HTTP", run: func(_ context.Context, t *target) (string, error) {
			web := httptest.NewUnstartedServer(nil)
			web.Config.ErrorLog = log.New(io.Discard, "", 0)
			web.TLS = &tls.Config{WrapSession: func(tls.ConnectionState, *tls.SessionState) ([]byte, error) {
				return []byte("\r\nSET hidden v\r\n"), nil
			}}
			web.StartTLS()
			defer web.Close()
			config := &tls.Config{ServerName: "h", InsecureSkipVerify: true, MaxVersion: tls.VersionTLS12, ClientSessionCache: tls.NewLRUClientSessionCache(1)}
			if _, err := tls.Dial("tcp", web.Listener.Addr().String(), config); err != nil {
				return "", err
			}
			conn, err := t.dial(t.redis)
			if err != nil {
				return "", err
			}
			_ = conn.SetDeadline(time.Now().Add(patience))
			_ = tls.Client(conn, config).Handshake() // fails: the port does not speak TLS
			if conn, err = t.dial(t.redis); err != nil {
				return "", err
			}
			_, _ = io.WriteString(conn, "PRI * HTTP/2.0\r\n\r\nSET hidden v\r\n")
			_ = conn.SetDeadline(time.Now().Add(patience))
			_, _ = readAll(conn)
			c, err := connectToRedis(t)
			if err != nil {
				return "", err
			}
			if found, err := c.do(patience, []byte("EXISTS"), []byte("hidden")); err != nil || found != ":0" {
				return "", breach("the line was run")
			}
			return "closed", nil
		}},
		{name: "a value that MQTT cannot deliver", run: func(_ context.Context, t *target) (string, error) {
			c, err := connectToRedis(t)
			if err != nil {
				return "", err
			}
			reply, err := c.do(patience, []byte("SETRANGE"), []byte("r"), []byte("536870911"), []byte("x"))
			if err == nil && !strings.HasPrefix(reply, "-") {
				return "", breach(fmt.Sprintf("SETRANGE: %s", reply))
			}
			return answered(reply, err)
		}},
	}
}
