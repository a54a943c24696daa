package mqtt

import (
	"bufio"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"

	"golang.org/x/net/proxy"
)

// A ProxyError means that the proxy could not be reached, or that it refused or failed to connect
// to the broker.
type ProxyError struct {
	Proxy  string // scheme://host:port, without user and password
	Status int    // the HTTP status of the proxy's refusal; 0 = see Err
	Err    error  // nil if Status is set
}

func (e *ProxyError) Error() string {
	if e.Status != 0 {
		return fmt.Sprintf("proxy %s answered %s", e.Proxy, statusText(e.Status))
	}
	return fmt.Sprintf("proxy %s: %v", e.Proxy, e.Err)
}

func (e *ProxyError) Unwrap() error { return e.Err }

func statusText(code int) string {
	if text := http.StatusText(code); text != "" {
		return fmt.Sprintf("%d %s", code, text)
	}
	return fmt.Sprintf("status %d", code)
}

// dialProxy connects to o.Address through o.Proxy. The proxy looks up the broker's name.
func dialProxy(ctx context.Context, o Options) (net.Conn, error) {
	// Check here that the address has a port, because otherwise only the proxy would notice.
	if _, _, err := net.SplitHostPort(o.Address); err != nil {
		return nil, &DialError{StageTCP, o.Address, err}
	}
	nc, name, err := throughProxy(ctx, o)
	if err != nil {
		refused, ok := errors.AsType[*ProxyError](err)
		if !ok {
			refused = &ProxyError{Proxy: name, Err: cause(ctx, err)}
		}
		return nil, &DialError{StageProxy, o.Address, refused}
	}
	return nc, nil
}

func throughProxy(ctx context.Context, o Options) (nc net.Conn, name string, err error) {
	var port string
	switch o.Proxy.Scheme {
	case "socks5", "socks5h":
		port = "1080"
	case "http":
		port = "80"
	case "https":
		port = "443"
	default:
		return nil, o.Proxy.Host, fmt.Errorf("scheme %q: expected socks5, socks5h, http or https", o.Proxy.Scheme)
	}
	if o.Proxy.Hostname() == "" {
		return nil, o.Proxy.Scheme + "://", errors.New("no host")
	}
	address := net.JoinHostPort(o.Proxy.Hostname(), cmp.Or(o.Proxy.Port(), port))
	name = o.Proxy.Scheme + "://" + address
	switch o.Proxy.Scheme {
	case "http", "https":
		nc, err = dialConnect(ctx, o, address, name)
	default:
		nc, err = dialSOCKS(ctx, o, address)
	}
	return nc, name, err
}

func dialSOCKS(ctx context.Context, o Options, address string) (net.Conn, error) {
	var login *proxy.Auth
	if u := o.Proxy.User; u != nil {
		password, _ := u.Password()
		login = &proxy.Auth{User: u.Username(), Password: password}
	}
	d, err := proxy.SOCKS5("tcp", address, login, quickDialer{inFlight: o.inFlight})
	if err != nil {
		return nil, err
	}
	contextual, ok := d.(proxy.ContextDialer)
	if !ok {
		return nil, errors.ErrUnsupported
	}
	return contextual.DialContext(ctx, "tcp", o.Address)
}

// A quickDialer dials TCP connections that acknowledge segments immediately; see quickConn.
type quickDialer struct {
	net.Dialer
	inFlight *atomic.Int64
}

func (d quickDialer) Dial(network, address string) (net.Conn, error) {
	return d.DialContext(context.Background(), network, address)
}

func (d quickDialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	nc, err := d.dialTCP(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return newQuickConn(nc, d.inFlight), nil
}

// dialConnect asks an HTTP proxy for a tunnel (RFC 9110, 9.3.6).
func dialConnect(ctx context.Context, o Options, address, name string) (net.Conn, error) {
	nc, err := quickDialer{inFlight: o.inFlight}.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	if o.Proxy.Scheme == "https" {
		config := o.ProxyTLS.Clone()
		if config == nil {
			config = &tls.Config{}
		}
		config.ServerName = cmp.Or(config.ServerName, o.Proxy.Hostname())
		tc := tls.Client(nc, config)
		if err := tc.HandshakeContext(ctx); err != nil {
			nc.Close() // its error would add nothing to err
			return nil, err
		}
		nc = tc
	}
	var status int
	err = during(ctx, nc, func() error {
		status, err = requestTunnel(nc, o)
		return err
	})
	if err == nil && status/100 != 2 {
		err = &ProxyError{Proxy: name, Status: status}
	}
	if err != nil {
		nc.Close() // its error would add nothing to err
		return nil, err
	}
	return nc, nil
}

// maxHeader is the maximum size in bytes of the proxy's answer to a CONNECT request.
const maxHeader = 64 << 10

func requestTunnel(nc net.Conn, o Options) (status int, err error) {
	request := &http.Request{Method: http.MethodConnect, URL: &url.URL{Opaque: o.Address}, Host: o.Address, Header: make(http.Header)}
	request.Header.Set("User-Agent", "") // omit the header
	if u := o.Proxy.User; u != nil {
		password, _ := u.Password()
		login := base64.StdEncoding.EncodeToString([]byte(u.Username() + ":" + password))
		request.Header.Set("Proxy-Authorization", "Basic "+login)
	}
	if err := request.Write(nc); err != nil {
		return 0, err
	}
	r := bufio.NewReader(io.LimitReader(nc, maxHeader))
	response, err := http.ReadResponse(r, request)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return 0, errors.New("it closed the connection")
	}
	if err != nil {
		return 0, err
	}
	// In both TLS and MQTT the client sends first, so no bytes may follow the proxy's reply yet.
	if response.StatusCode/100 == 2 && r.Buffered() > 0 {
		return 0, errors.New("it sent unexpected bytes after its answer")
	}
	return response.StatusCode, nil
}

// during runs step, whose I/O on nc ignores ctx. If ctx ends first, during makes that I/O fail
// and returns the cause of ctx; nc is then no longer usable.
func during(ctx context.Context, nc net.Conn, step func() error) error {
	past := time.Unix(1, 0)
	stop := context.AfterFunc(ctx, func() {
		if nc.SetDeadline(past) != nil {
			nc.Close() // it is already closed, or knows no deadlines
		}
	})
	err := step()
	if !stop() {
		return context.Cause(ctx)
	}
	return err
}

// WithoutPassword returns the URL of a proxy, which may be nil, without its password.
func WithoutPassword(proxy *url.URL) *url.URL {
	if proxy == nil || proxy.User == nil {
		return proxy
	}
	shown := *proxy
	shown.User = url.User(proxy.User.Username())
	return &shown
}
