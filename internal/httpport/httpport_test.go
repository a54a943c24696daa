package httpport_test

import (
	"io"
	"net"
	"net/http"
	"net/netip"
	"testing"

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

// TestURL: an address that stands for all of a machine's is no address to connect to.
func TestURL(t *testing.T) {
	t.Parallel()
	for at, want := range map[string]string{
		"127.0.0.1:80": "http://127.0.0.1:80",
		"[::1]:80":     "http://[::1]:80",
		"[::]:80":      "http://127.0.0.1:80",
		"0.0.0.0:80":   "http://127.0.0.1:80",
	} {
		if got := httpport.URL("http", net.TCPAddrFromAddrPort(netip.MustParseAddrPort(at))); got != want {
			t.Errorf("%s: got %s, want %s", at, got, want)
		}
	}
}
