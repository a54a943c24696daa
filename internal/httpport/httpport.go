// Package httpport has what the HTTP ports of sscli share: limits on what a client can cost, logins, and the
// refusal of web pages.
//
//	server, ln := httpport.Server(ln, httpport.SameHost(handler))
//	err := server.Serve(ln)
package httpport

import (
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"github.com/sscli/sscli/internal/admission"
)

// The limits of Server: its requests are short, so few connections are enough, and no client can hold one for
// long.
const (
	maxConnections = 64
	maxHeader      = 8 << 10
	readTime       = 5 * time.Second
	writeTime      = 10 * time.Second
	idleTime       = 2 * time.Minute
)

// Server returns a server for short requests, and the listener to serve on, both with limits: 64 connections
// at the same time, headers of 8 KiB, 5 s to send a request, 10 s to read the answer, and 2 minutes between two
// requests of a connection. The handler limits the size of bodies. One connection more closes the oldest from the
// address that has the most, so that nobody can keep others out with connections that do nothing. Errors of clients
// are not logged.
func Server(ln net.Listener, handler http.Handler) (*http.Server, net.Listener) {
	return &http.Server{Handler: handler, ReadHeaderTimeout: readTime, ReadTimeout: readTime, WriteTimeout: writeTime,
		IdleTimeout: idleTime, MaxHeaderBytes: maxHeader, ErrorLog: log.New(io.Discard, "", 0)}, &listener{Listener: ln, gate: admission.Gate{MaxPending: maxConnections}}
}

// A listener limits the number of its connections. All of them count as pending: they are short.
type listener struct {
	net.Listener
	gate admission.Gate
}

func (l *listener) Accept() (net.Conn, error) {
	nc, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &conn{nc, l.gate.Enter(nc.RemoteAddr().String(), func() { _ = nc.Close() })}, nil
}

type conn struct {
	net.Conn
	ticket *admission.Ticket
}

func (c *conn) Close() error {
	c.ticket.Leave()
	return c.Conn.Close()
}

// BasicAuth requires a login by HTTP basic authentication, which check judges. The refusals of wrong logins
// are delayed as by an [admission.Throttle]. A request without a login is refused at once.
func BasicAuth(next http.Handler, check func(name string, password []byte) bool) http.Handler {
	throttle := admission.NewThrottle()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name, password, sent := r.BasicAuth()
		if !sent {
			w.Header().Set("WWW-Authenticate", `Basic realm="sscli"`)
			http.Error(w, "a user name and a password are required", http.StatusUnauthorized)
			return
		}
		switch err := throttle.Check(r.RemoteAddr, name, func() bool { return check(name, []byte(password)) }); {
		case errors.Is(err, admission.ErrBusy):
			http.Error(w, err.Error(), http.StatusTooManyRequests)
		case err != nil:
			w.Header().Set("WWW-Authenticate", `Basic realm="sscli"`)
			http.Error(w, "user name or password is wrong", http.StatusUnauthorized)
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// SameHost is for a server on loopback without a login. It refuses the requests that a web page can make a browser
// send: those for another name than localhost, which the page's owner may have given this address, and those of
// NoPages.
func SameHost(next http.Handler) http.Handler {
	next = NoPages(next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host, _, err := net.SplitHostPort(r.Host)
		if err != nil {
			host = strings.Trim(r.Host, "[]")
		}
		_, err = netip.ParseAddr(host)
		if err != nil && host != "localhost" {
			http.Error(w, "expected the host localhost, or an address", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// NoPages refuses the requests of web pages: those with Origin, and those that a browser says are not its user's
// own, such as images.
func NoPages(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if site := r.Header.Get("Sec-Fetch-Site"); r.Header.Get("Origin") != "" || site != "" && site != "none" {
			http.Error(w, "not for web pages", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}
