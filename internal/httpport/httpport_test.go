package httpport_test

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/sscli/sscli/internal/httpport"
)

// TestWho: who may send requests to a port on loopback without a login, and to one with a login.
func TestWho(t *testing.T) {
	t.Parallel()
	fine := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "fine") })
	login := httpport.BasicAuth(fine, func(name string, password []byte) bool { return name == "ann" && string(password) == "secret" })
	for name, tt := range map[string]struct {
		handler http.Handler
		change  func(*http.Request)
		status  int
	}{
		"an address":     {httpport.SameHost(fine), func(*http.Request) {}, 200},
		"localhost":      {httpport.SameHost(fine), func(r *http.Request) { r.Host = "localhost" }, 200},
		"IPv6":           {httpport.SameHost(fine), func(r *http.Request) { r.Host = "[::1]:80" }, 200},
		"a rebound name": {httpport.SameHost(fine), func(r *http.Request) { r.Host = "evil.example:80" }, 403},
		"localhost.evil": {httpport.SameHost(fine), func(r *http.Request) { r.Host = "localhost.evil" }, 403},
		"a web page":     {httpport.SameHost(fine), func(r *http.Request) { r.Header.Set("Origin", "http://localhost") }, 403},
		"an image":       {httpport.SameHost(fine), func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") }, 403},
		"typed":          {httpport.SameHost(fine), func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "none") }, 200},
		"another page":   {httpport.NoPages(fine), func(r *http.Request) { r.Header.Set("Origin", "null") }, 403},
		"no login":       {login, func(*http.Request) {}, 401},
		"a wrong login":  {login, func(r *http.Request) { r.SetBasicAuth("ann", "x") }, 401},
		"a login":        {login, func(r *http.Request) { r.SetBasicAuth("ann", "secret") }, 200},
	} {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		url := "http://" + ln.Addr().String()
		server, ln := httpport.Server(ln, tt.handler)
		go func() { _ = server.Serve(ln) }()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
		if err != nil {
			t.Fatal(err)
		}
		tt.change(r)
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		if resp.StatusCode != tt.status {
			t.Errorf("%s: %d, want %d", name, resp.StatusCode, tt.status)
		}
		_ = resp.Body.Close()
		_ = server.Close()
	}
}

// serve serves a handler, and returns the address.
func serve(t *testing.T, handler http.Handler) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := ln.Addr().String()
	server, ln := httpport.Server(ln, handler)
	ended := make(chan struct{})
	go func() {
		_ = server.Serve(ln)
		close(ended)
	}()
	t.Cleanup(func() {
		_ = server.Close()
		<-ended
	})
	return address
}

// TestManyConnections: connections that send nothing, or that are idle after a request, do not keep others out.
func TestManyConnections(t *testing.T) {
	t.Parallel()
	for name, sent := range map[string]string{"nothing": "", "half a request": "GET / HTTP/1.1\r\nHost: x", "idle": "GET / HTTP/1.1\r\nHost: x\r\n\r\n"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			address := serve(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
			for n := 0; n < 200; n++ {
				began := time.Now()
				conn, err := net.Dial("tcp", address)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { conn.Close() })
				if _, err := io.WriteString(conn, sent); err != nil {
					t.Fatal(err)
				}
				if name == "idle" {
					if _, err := http.ReadResponse(bufio.NewReader(conn), nil); err != nil {
						if time.Since(began) < 5*time.Second { // what the server waits for a request
							t.Fatal(err)
						}
						n-- // this machine was too slow to send the request in time
					}
				}
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address, nil)
			if err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			resp, err := new(http.Transport).RoundTrip(r)
			if err != nil {
				t.Fatal(err)
			}
			_ = resp.Body.Close()
			t.Logf("answered after %v", time.Since(began))
		})
	}
}

// TestNoCredentials: a request without credentials is not a failed login, so it neither slows down logins from its
// address nor costs a check of a password.
func TestNoCredentials(t *testing.T) {
	t.Parallel()
	fine := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	checked := 0
	address := serve(t, httpport.BasicAuth(fine, func(string, []byte) bool {
		checked++
		return true
	}))
	ask := func(change func(*http.Request)) int {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address, nil)
		if err != nil {
			t.Fatal(err)
		}
		change(r)
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		return resp.StatusCode
	}
	for range 20 {
		if status := ask(func(*http.Request) {}); status != 401 {
			t.Errorf("%d", status)
		}
	}
	if checked > 0 {
		t.Errorf("%d passwords were checked", checked)
	}
	if status := ask(func(r *http.Request) { r.SetBasicAuth("ann", "secret") }); status != 200 {
		t.Errorf("%d", status)
	}
}
