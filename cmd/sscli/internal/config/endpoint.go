package config

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"unicode"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/cmd/sscli/internal/suggest"
)

// expand sets the host, port, tls, username and WebSocket path of a layer from its url. It also
// expands no-tls and via.
func (l layer) expand() error {
	if l.has("no-tls") {
		off := l["no-tls"]
		if l.has("tls") {
			return &Error{off.source, "together with " + l["tls"].source.String() + ": use only one of them"}
		}
		l["tls"] = given{strconv.FormatBool(off.value != "true"), off.source}
	}
	if !l.has("url") || l.has("via") {
		return l.expandVia()
	}
	text, source := l["url"].value, l["url"].source
	for _, other := range []string{"host", "port", "tls"} {
		if l.has(other) {
			return &Error{source, "together with " + l[other].source.String() + ": use only the URL, which includes it"}
		}
	}
	u, err := parseURL(text)
	if err != nil {
		wrong := &Error{source, err.Error()}
		meant := "mqtt://" + text
		if _, err := parseURL(meant); err == nil && !strings.Contains(text, "://") {
			return &MeantError{wrong, "-u", meant}
		}
		return wrong
	}
	host, port, err := net.SplitHostPort(u.Address)
	if err != nil {
		return &Error{source, err.Error()}
	}
	l["host"], l["port"] = given{host, source}, given{port, source}
	l["tls"], l[webSocketPath] = given{strconv.FormatBool(u.TLS != nil), source}, given{u.WebSocket, source}
	if u.Username != "" && !l.has("username") {
		l["username"] = given{u.Username, source}
	}
	return nil
}

// A MeantError is an Error about a value that is close to a valid one: a URL without a scheme such as mqtt://,
// or a duration without a unit.
type MeantError struct {
	Err         *Error
	Flag, Meant string // the flag with its dashes, and the value that the user probably meant
}

func (e *MeantError) Error() string { return e.Err.Error() }

func (e *MeantError) Unwrap() error { return e.Err }

// Advice returns the flag with the value that the user probably meant. ok is false if the value did not
// come from a flag.
func (e *MeantError) Advice() (hint suggest.Hint, ok bool) {
	return suggest.Run(e.Flag, e.Meant), e.Err.Source.Flag != ""
}

// webSocketPath is the key in a layer for the WebSocket's path, which a URL sets. It has no flag.
const webSocketPath = "websocket path"

// parseURL is [client.ParseURL], with the flag for a password.
func parseURL(text string) (client.Options, error) {
	if u, err := url.Parse(text); err == nil {
		if _, has := u.User.Password(); has {
			return client.Options{}, errors.New("a password in a URL is visible to others: use --password-file")
		}
	}
	return client.ParseURL(text)
}

// endpoint resolves where to connect: to the host in the first layer that names one, or to the embedded
// emulator if an earlier layer asks for it. Port and TLS come from the layer that names the host, or
// from an earlier one.
func (r *resolver) endpoint() {
	n := 0
	denied := false // an earlier layer has --embedded=false, so later layers cannot ask for it
	for i, l := range r.layers {
		host, embedded := l.has("host"), false
		if l.has("embedded") && !denied {
			r.out.Sources["embedded"] = l["embedded"].source
			embedded = r.flag("embedded", l["embedded"].value)
			denied = !embedded
		}
		if host && embedded {
			r.bad("embedded", "together with "+l["host"].source.String()+": use only one of them")
		}
		if embedded {
			r.out.Embedded = true
			return
		}
		if host {
			n = i + 1
			break
		}
	}
	if n == 0 {
		return
	}
	host := r.find("host", n)
	r.out.TLS = true
	if v := r.find("tls", n); v != "" {
		r.out.TLS = r.flag("tls", v)
	}
	port := r.find("port", n)
	switch {
	case port == "" && r.out.TLS:
		port = "8883"
	case port == "":
		port = "1883"
	}
	if p, err := strconv.ParseUint(port, 10, 16); err != nil || p == 0 {
		r.bad("port", fmt.Sprintf("%.32q: must be a port of 1 to 65535", port))
	}
	if strings.HasPrefix(host, "[") && strings.HasSuffix(host, "]") {
		host = host[1 : len(host)-1]
	}
	if why := checkHost(host); why != "" {
		r.bad("host", why)
		return
	}
	r.out.Address = net.JoinHostPort(host, port)
	r.out.WebSocket = r.layers[n-1][webSocketPath].value
	r.via(r.layers[n-1])
}

// checkHost returns what is wrong with a host name or an address, or "". It does not repeat a host that may include a
// password.
func checkHost(host string) string {
	if _, err := netip.ParseAddr(host); err == nil {
		return ""
	}
	if host == "" {
		return "no host: expected a host name or an address"
	}
	if strings.Contains(host, "@") {
		return "expected a host without a user and a password, which are --username and --password-file"
	}
	if strings.Count(host, ":") == 1 {
		return fmt.Sprintf("%.80q: expected a host without a port, which is --port or SSCLI_PORT", host)
	}
	if strings.ContainsFunc(host, func(r rune) bool { return !unicode.IsPrint(r) || strings.ContainsRune(" \"/:?#@[]\\", r) }) {
		return fmt.Sprintf("%.80q: expected a host name or an address", host)
	}
	return ""
}

// URL returns the broker's URL, without the user and without the query of a WebSocket's path,
// which may hold a secret.
func (s Settings) URL() string {
	shown, _, _ := strings.Cut(s.fullURL(), "?")
	return shown
}

// fullURL is like URL, but keeps the query of a WebSocket's path, which may hold a secret.
func (s Settings) fullURL() string {
	if s.Address == "" {
		return ""
	}
	scheme := "mqtt"
	if s.WebSocket != "" {
		scheme = "ws"
	}
	if s.TLS {
		scheme += "s"
	}
	u := url.URL{Scheme: scheme, Host: s.Address}
	return u.String() + s.WebSocket
}

// IsLoopback reports whether the host in address, HOST:PORT, is localhost or an address of the
// loopback interface. It returns an error if address is not HOST:PORT.
func IsLoopback(address string) (bool, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false, err
	}
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback(), nil
}
