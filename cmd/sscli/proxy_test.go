package main

import (
	"encoding/base64"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"

	"github.com/rogpeppe/go-internal/testscript"
)

// scriptProxy runs an HTTP proxy that knows one broker, the emulator, and resolves any name to it.
func scriptProxy(ts *testscript.TestScript, neg bool, args []string) {
	s := scriptOf(ts)
	if neg || len(args) > 1 || s.server == nil {
		ts.Fatalf("usage: proxy [NAME:PASSWORD], after emulator")
	}
	to := s.server.Addr().String()
	if addr := s.server.WebSocketAddr(); addr != nil {
		to = addr.String()
	}
	login := "Basic " + base64.StdEncoding.EncodeToString([]byte(strings.Join(args, "")))
	var copies sync.WaitGroup
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodConnect {
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		if len(args) > 0 && r.Header.Get("Proxy-Authorization") != login {
			w.WriteHeader(http.StatusProxyAuthRequired)
			return
		}
		out, err := net.Dial("tcp", to)
		if err != nil {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		in, buffered, err := http.NewResponseController(w).Hijack()
		if err != nil {
			out.Close()
			return
		}
		copies.Go(func() { tunnel(in, buffered.Reader, out) })
	}))
	ts.Defer(func() {
		server.Close()
		copies.Wait()
	})
	ts.Setenv("PROXYPORT", server.URL[strings.LastIndexByte(server.URL, ':')+1:])
}

// tunnel confirms the tunnel and copies bytes both ways until one end closes. The server may have buffered some bytes
// of a already, so those bytes are read from r.
func tunnel(a net.Conn, r io.Reader, b net.Conn) {
	var copies sync.WaitGroup
	one := func(to io.Writer, from io.Reader) {
		_, err := io.Copy(to, from)
		// The client sees the end of the connection, whatever the reason.
		_ = errors.Join(err, a.Close(), b.Close())
	}
	copies.Go(func() {
		if _, err := io.WriteString(a, "HTTP/1.1 200 OK\r\n\r\n"); err == nil {
			one(a, b)
		}
	})
	one(b, r)
	copies.Wait()
}
