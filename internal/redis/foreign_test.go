package redis_test

import (
	"crypto/tls"
	"io"
	"log"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/sscli/sscli/emulator"
	"github.com/sscli/sscli/internal/testkit/redistest"
)

// TestForeignProtocols: a command line hidden in another protocol is not run.
func TestForeignProtocols(t *testing.T) {
	s, other := start(t, emulator.Options{})
	const hidden = "\nSET hidden v\r\n"
	for name, begin := range map[string]string{
		"TLS":                 "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03 ticket",
		"a control character": "ping\x01",
		"DEL":                 "ping \x7f",
		"no ASCII":            "\xc3\xa9",
		"HTTP/2":              "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
		"HTTP":                "GET / HTTP/1.1\r\nHost: h\r\n",
		"HTTP PUT":            "PUT /k HTTP/1.0\r\n",
		"MQTT":                "\x10\x10\x00\x04MQTT",
	} {
		c := redistest.Dial(t, "tcp", redistest.Address(s.RedisURL()))
		_, _ = io.WriteString(c.Conn, begin+hidden) // the connection may be closed by now
		if got := string(c.Closed(t)); strings.Count(got, "\r\n") > 1 {
			t.Errorf("%s: got %q", name, got)
		}
		other.Expect(t, ":0\r\n", "EXISTS", "hidden")
	}
}

// oneSession is a cache of TLS sessions that returns the same session for every server.
type oneSession struct{ *tls.ClientSessionState }

func (s *oneSession) Get(string) (*tls.ClientSessionState, bool) {
	return s.ClientSessionState, s.ClientSessionState != nil
}
func (s *oneSession) Put(_ string, state *tls.ClientSessionState) { s.ClientSessionState = state }

// TestForgedTicket: a malicious server gives a TLS client a session ticket that contains a command. When the
// client connects to the Redis port, the command is not run.
func TestForgedTicket(t *testing.T) {
	s, other := start(t, emulator.Options{})
	malicious := httptest.NewUnstartedServer(nil)
	malicious.Config.ErrorLog = log.New(io.Discard, "", 0)
	malicious.TLS = &tls.Config{WrapSession: func(tls.ConnectionState, *tls.SessionState) ([]byte, error) {
		return []byte("\r\nSET hidden v\r\n"), nil
	}}
	malicious.StartTLS()
	defer malicious.Close()
	config := &tls.Config{ServerName: "h", InsecureSkipVerify: true, MaxVersion: tls.VersionTLS12, ClientSessionCache: &oneSession{}}
	conn, err := tls.Dial("tcp", malicious.Listener.Addr().String(), config)
	if err != nil {
		t.Fatal(err)
	}
	conn.Close()
	if conn, err = tls.Dial("tcp", redistest.Address(s.RedisURL()), config); err == nil {
		conn.Close()
		t.Error("the port speaks TLS")
	}
	other.Expect(t, ":0\r\n", "EXISTS", "hidden")
}
