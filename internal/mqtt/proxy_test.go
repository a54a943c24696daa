package mqtt_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/sscli/sscli/emulator"
	"github.com/sscli/sscli/internal/mqtt"
	"github.com/sscli/sscli/internal/neterr"
	"github.com/sscli/sscli/internal/testkit/testpeer"
)

// tunnels starts a proxy. open answers a client's request for a tunnel and returns the destination, or "".
func tunnels(t *testing.T, config *tls.Config, open func(net.Conn, *bufio.Reader) (to string)) string {
	t.Helper()
	return testpeer.Serve(t, func(_ int, nc net.Conn) {
		if config != nil {
			nc = tls.Server(nc, config)
		}
		r := bufio.NewReader(nc)
		if to := open(nc, r); to != "" {
			testpeer.Relay(nc, to, func(to, _ net.Conn) { io.Copy(to, r) }, nil)
		}
	})
}

// connectProxy starts an HTTP proxy with one login that connects one name to an address.
func connectProxy(t *testing.T, config *tls.Config, login, name, to string) string {
	return tunnels(t, config, func(nc net.Conn, r *bufio.Reader) string {
		request, err := http.ReadRequest(r)
		if err != nil {
			return ""
		}
		proxied := &http.Request{Header: http.Header{"Authorization": request.Header["Proxy-Authorization"]}}
		user, password, _ := proxied.BasicAuth()
		switch {
		case request.Method != http.MethodConnect:
			io.WriteString(nc, "HTTP/1.1 405 Method Not Allowed\r\n\r\n")
		case login != "" && user+":"+password != login:
			io.WriteString(nc, "HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n")
		case request.Host != name || request.RequestURI != name:
			io.WriteString(nc, "HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n")
		default:
			io.WriteString(nc, "HTTP/1.1 200 Connection established\r\n\r\n")
			return to
		}
		return ""
	})
}

// socksProxy starts the same proxy for SOCKS 5 (RFC 1928, 1929).
func socksProxy(t *testing.T, login, name, to string) string {
	return tunnels(t, nil, func(nc net.Conn, r *bufio.Reader) string {
		read := func(n int) []byte {
			b := make([]byte, n)
			io.ReadFull(r, b)
			return b
		}
		methods := read(int(read(2)[1]))
		switch {
		case login == "":
			nc.Write([]byte{5, 0})
		case !bytes.Contains(methods, []byte{2}):
			nc.Write([]byte{5, 0xFF})
			return ""
		default:
			nc.Write([]byte{5, 2})
			user := read(int(read(2)[1]))
			password := read(int(read(1)[0]))
			if string(user)+":"+string(password) != login {
				nc.Write([]byte{1, 1})
				return ""
			}
			nc.Write([]byte{1, 0})
		}
		var host string
		switch head := read(4); head[3] {
		case 1:
			host = net.IP(read(4)).String()
		case 3:
			host = string(read(int(read(1)[0])))
		}
		port := binary.BigEndian.Uint16(read(2))
		if _, want, _ := net.SplitHostPort(name); !strings.HasPrefix(name, host+":") || want == "" || port == 0 {
			nc.Write([]byte{5, 2, 0, 1, 0, 0, 0, 0, 0, 0}) // connection not allowed by ruleset
			return ""
		}
		nc.Write([]byte{5, 0, 0, 1, 0, 0, 0, 0, 0, 0})
		return to
	})
}

func TestProxy(t *testing.T) {
	authority := newCA(t)
	plain := emulator.Start(t, emulator.Options{WebSocket: "127.0.0.1:0"})
	secure := emulator.Start(t, emulator.Options{TLS: authority.server()})
	const name, secret = "broker.test:8883", "user:pa%20ss"
	const login = "user:pa ss"
	for test, o := range map[string]struct {
		proxy string
		o     mqtt.Options
	}{
		"socks5":                 {"socks5://" + socksProxy(t, "", name, plain.Addr().String()), mqtt.Options{}},
		"socks5h with a login":   {"socks5h://" + secret + "@" + socksProxy(t, login, name, plain.Addr().String()), mqtt.Options{}},
		"socks5 and TLS":         {"socks5://" + socksProxy(t, "", name, secure.Addr().String()), mqtt.Options{TLS: trust(t, authority)}},
		"CONNECT":                {"http://" + connectProxy(t, nil, "", name, plain.Addr().String()), mqtt.Options{}},
		"CONNECT with a login":   {"http://" + secret + "@" + connectProxy(t, nil, login, name, plain.Addr().String()), mqtt.Options{}},
		"CONNECT and TLS":        {"http://" + connectProxy(t, nil, "", name, secure.Addr().String()), mqtt.Options{TLS: trust(t, authority)}},
		"CONNECT over TLS":       {"https://" + connectProxy(t, authority.server(), "", name, secure.Addr().String()), mqtt.Options{TLS: trust(t, authority), ProxyTLS: trust(t, authority)}},
		"CONNECT and WebSockets": {"http://" + connectProxy(t, nil, "", name, plain.WebSocketAddr().String()), mqtt.Options{WebSocket: "/mqtt"}},
	} {
		t.Run(test, func(t *testing.T) {
			proxy, err := url.Parse(o.proxy)
			if err != nil {
				t.Fatal(err)
			}
			o.o.Proxy = proxy
			conn := dial(t, name, o.o)
			if err := conn.Subscribe(within(t), "t"); err != nil {
				t.Error(err)
			}
			if err := conn.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestNoProxy(t *testing.T) {
	authority := newCA(t)
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed.Close()
	const name = "broker.test:1883"
	answers := func(answer string) string {
		return "http://secretuser:hunter2@" + tunnels(t, nil, func(nc net.Conn, r *bufio.Reader) string {
			http.ReadRequest(r)
			io.WriteString(nc, answer)
			return ""
		})
	}
	status := func(want int) func(error) bool {
		return func(err error) bool {
			e, _ := errors.AsType[*mqtt.ProxyError](err)
			return e.Status == want
		}
	}
	says := func(text string) func(error) bool {
		return func(err error) bool { return strings.Contains(err.Error(), text) }
	}
	for _, test := range []struct {
		name, proxy string
		is          func(error) bool
	}{
		{"407", "http://secretuser:hunter2@" + connectProxy(t, nil, "a:b", name, ""), status(407)},
		{"403", "http://" + connectProxy(t, nil, "", "elsewhere:1", ""), status(403)},
		{"odd status", answers("HTTP/1.1 799 x\r\n\r\n"), status(799)},
		{"no HTTP", answers("SSH-2.0-x\r\n\r\n"), says("malformed HTTP")},
		{"hangs up", answers(""), says("closed the connection")},
		{"speaks first", answers("HTTP/1.1 200 OK\r\n\r\n \x03"), says("unexpected bytes")},
		{"endless header", answers("HTTP/1.1 200 OK\r\nA: " + strings.Repeat("x", 1<<20)), has[*mqtt.ProxyError]},
		{"closed", "http://secretuser:hunter2@" + closed.Addr().String(), is(neterr.Refused)},
		{"SOCKS closed", "socks5://secretuser:hunter2@" + closed.Addr().String(), is(neterr.Refused)},
		{"SOCKS login", "socks5://secretuser:hunter2@" + socksProxy(t, "a:b", name, ""), says("authentication")},
		{"SOCKS without login", "socks5://" + socksProxy(t, "a:b", name, ""), says("authentication")},
		{"SOCKS forbidden", "socks5h://" + socksProxy(t, "", "elsewhere:1", ""), says("not allowed")},
		{"no such proxy", "http://proxy.invalid:1", has[*net.DNSError]},
		{"unknown authority", "https://" + connectProxy(t, authority.server(), "", name, ""), has[*tls.CertificateVerificationError]},
		{"TLS to a plain proxy", "https://" + connectProxy(t, nil, "", name, ""), has[*mqtt.ProxyError]},
		{"scheme", "ftp://secretuser:hunter2@127.0.0.1:1", says("socks5h")},
		{"no host", "http://", says("no host")},
	} {
		t.Run(test.name, func(t *testing.T) {
			proxy, err := url.Parse(test.proxy)
			if err != nil {
				t.Fatal(err)
			}
			_, err = mqtt.Dial(within(t), mqtt.Options{Address: name, ClientID: "c", Proxy: proxy})
			dialError, ok := errors.AsType[*mqtt.DialError](err)
			if !ok || dialError.Stage != mqtt.StageProxy || !has[*mqtt.ProxyError](err) || !test.is(err) {
				t.Fatalf("%v (%T)", err, errors.Unwrap(err))
			}
			if strings.Contains(err.Error(), "secretuser") || strings.Contains(err.Error(), "hunter2") || !strings.Contains(err.Error(), proxy.Host) {
				t.Errorf("%v", err)
			}
		})
	}
	for scheme := range map[string]bool{"http": true, "socks5": true} {
		ctx, cancel := context.WithCancel(t.Context())
		silent := hostile(t, func(p *peer) {
			_, _ = p.Read(make([]byte, 1)) // the request for a tunnel has begun
			cancel()
			p.silence()
		})
		_, err := mqtt.Dial(ctx, mqtt.Options{Address: name, Proxy: &url.URL{Scheme: scheme, Host: silent}})
		if dialError, ok := errors.AsType[*mqtt.DialError](err); !ok || dialError.Stage != mqtt.StageProxy || !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", scheme, err)
		}
	}
	if _, err := mqtt.Dial(t.Context(), mqtt.Options{Address: "broker", Proxy: &url.URL{Scheme: "http", Host: "p:1"}}); !has[*net.AddrError](err) {
		t.Errorf("no port: %v", err)
	}
}
