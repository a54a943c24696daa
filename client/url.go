package client

import (
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"net/url"
	"os"
	"strconv"
	"strings"
	"unicode"

	"github.com/sscli/sscli/internal/files"
	"github.com/sscli/sscli/internal/pemfile"
	"github.com/sscli/sscli/internal/wire"
)

// ParseURL returns options for a broker's URL:
//
//	mqtt://[user@]host[:port]          port 1883
//	mqtts://[user@]host[:port]         TLS, port 8883
//	ws://[user@]host[:port][/path]     WebSocket, port 80, path /mqtt
//	wss://[user@]host[:port][/path]    WebSocket with TLS, port 443, path /mqtt
//
// A URL with a password is refused, because command lines and logs show it. The error is an
// *[InvalidError] that does not repeat the URL.
func ParseURL(text string) (Options, error) {
	o, err := parseURL(text)
	if err != nil {
		return Options{}, &InvalidError{err}
	}
	return o, nil
}

func parseURL(text string) (o Options, err error) {
	u, err := url.Parse(text)
	if err != nil {
		// The error from net/url repeats the URL, which may hold a password.
		return o, errors.New("not a URL: expected mqtt://host:port or mqtts://host:port")
	}
	if _, ok := u.User.Password(); ok {
		return o, errors.New("a password in a URL is visible to others")
	}
	port := ""
	switch strings.ToLower(u.Scheme) {
	case "mqtt":
		port = "1883"
	case "mqtts":
		port, o.TLS = "8883", newTLS()
	case "ws":
		port, o.WebSocket = "80", "/mqtt"
	case "wss":
		port, o.WebSocket, o.TLS = "443", "/mqtt", newTLS()
	case "tcp":
		return o, fmt.Errorf("scheme %q: expected mqtt://", u.Scheme)
	case "ssl", "tls", "mqtt+ssl":
		return o, fmt.Errorf("scheme %q: expected mqtts://", u.Scheme)
	default:
		return o, fmt.Errorf("scheme %q: expected mqtt://, mqtts://, ws:// or wss://", u.Scheme)
	}
	if u.Hostname() == "" {
		return o, errors.New("no host: expected mqtt://host:port or mqtts://host:port")
	}
	if err := checkHost(u.Hostname()); err != nil {
		return o, err
	}
	if err := wire.CheckUsername(u.User.Username()); err != nil {
		return o, err
	}
	if o.WebSocket != "" && u.Fragment != "" {
		return o, errors.New("a fragment (#…) is never sent: expected ws://host:port/path")
	}
	if o.WebSocket != "" {
		if u.Path != "" || u.RawQuery != "" {
			o.WebSocket = u.RequestURI()
		}
	} else if (u.Path != "" && u.Path != "/") || u.RawQuery != "" || u.Fragment != "" {
		return o, errors.New("unexpected text after the host: expected mqtt://host:port or mqtts://host:port")
	}
	if p := u.Port(); p != "" {
		port = p
	}
	o.Address, o.Username = net.JoinHostPort(u.Hostname(), port), u.User.Username()
	return o, checkPort(port)
}

// checkHost returns an error unless host may be a host name or an address.
func checkHost(host string) error {
	if _, err := netip.ParseAddr(host); err != nil && (host == "" || strings.ContainsFunc(host, isNoHost)) {
		return fmt.Errorf("%.80q: expected a host name or an address", host)
	}
	return nil
}

// isNoHost reports whether a host name or an IPv4 address cannot contain a character.
func isNoHost(r rune) bool { return !unicode.IsPrint(r) || strings.ContainsRune(" \"/:?#@[]\\", r) }

func newTLS() *tls.Config { return &tls.Config{MinVersion: tls.VersionTLS12} }

func checkPort(port string) error {
	if p, err := strconv.ParseUint(port, 10, 16); err != nil || p == 0 {
		return fmt.Errorf("%.32q: must be a port of 1 to 65535", port)
	}
	return nil
}

// FromEnv returns options from the variables that Azure IoT Operations sets for the containers of a
// workload:
//
//	AIO_BROKER_HOSTNAME                         required
//	AIO_MQTT_USE_TLS, AIO_BROKER_TCP_PORT       TLS unless false; port 8883, or 1883 without TLS
//	AIO_TLS_CA_FILE                             the CAs to trust, in place of the system's
//	AIO_TLS_CERT_FILE, AIO_TLS_KEY_FILE, AIO_TLS_KEY_PASSWORD_FILE
//	AIO_SAT_FILE                                a service-account token, or
//	AIO_MQTT_USERNAME, AIO_MQTT_PASSWORD_FILE   a user name and password
//	AIO_MQTT_CLIENT_ID                          the beginning of ClientID; its end is random
//
// An empty variable counts as not set. The files of the password, of the token, and of the client certificate
// and its key are read whenever the session connects. Damaged certificates in AIO_TLS_CA_FILE are skipped, which
// [slog.Warn] says. The error is an *[InvalidError] that names the variable.
func FromEnv() (Options, error) {
	o := Options{Username: os.Getenv("AIO_MQTT_USERNAME"), TokenFile: os.Getenv("AIO_SAT_FILE")}
	host := os.Getenv("AIO_BROKER_HOSTNAME")
	if host == "" {
		return Options{}, invalid("AIO_BROKER_HOSTNAME is not set")
	}
	host = strings.Trim(host, "[]")
	if err := checkHost(host); err != nil {
		return Options{}, invalid("AIO_BROKER_HOSTNAME: %w", err)
	}
	if err := wire.CheckUsername(o.Username); err != nil {
		return Options{}, invalid("AIO_MQTT_USERNAME: %w", err)
	}
	port, useTLS := "8883", true
	if text := os.Getenv("AIO_MQTT_USE_TLS"); text != "" {
		var err error
		if useTLS, err = strconv.ParseBool(text); err != nil {
			return Options{}, invalid("AIO_MQTT_USE_TLS: %.32q: must be true or false", text)
		}
	}
	if !useTLS {
		port = "1883"
	}
	if text := os.Getenv("AIO_BROKER_TCP_PORT"); text != "" {
		port = text
	}
	if err := checkPort(port); err != nil {
		return Options{}, invalid("AIO_BROKER_TCP_PORT: %w", err)
	}
	o.Address = net.JoinHostPort(host, port)
	if useTLS {
		o.TLS = newTLS()
		if err := tlsFromEnv(o.TLS); err != nil {
			return Options{}, &InvalidError{err}
		}
	}
	if file := os.Getenv("AIO_MQTT_PASSWORD_FILE"); file != "" {
		o.Password = files.Again(func() ([]byte, error) { return files.ReadSecret(file) }, file)
	}
	switch {
	case o.TokenFile != "" && (o.Username != "" || o.Password != nil):
		return Options{}, invalid("AIO_SAT_FILE together with AIO_MQTT_USERNAME or AIO_MQTT_PASSWORD_FILE: expected a token, or a user name and password")
	case o.Password != nil && o.Username == "":
		return Options{}, invalid("AIO_MQTT_PASSWORD_FILE without AIO_MQTT_USERNAME")
	}
	if id := os.Getenv("AIO_MQTT_CLIENT_ID"); id != "" {
		o.ClientID = id + "-" + strings.ToLower(rand.Text()[:16])
	}
	return o, nil
}

// tlsFromEnv reads the files of the AIO_TLS_ variables.
func tlsFromEnv(c *tls.Config) error {
	if file := os.Getenv("AIO_TLS_CA_FILE"); file != "" {
		var err error
		if c.RootCAs, err = pemfile.ReadPool(file, func(message string) { slog.Warn(message) }); err != nil {
			return fmt.Errorf("AIO_TLS_CA_FILE: %w", err)
		}
	}
	certFile, keyFile := os.Getenv("AIO_TLS_CERT_FILE"), os.Getenv("AIO_TLS_KEY_FILE")
	switch {
	case certFile == "" && keyFile == "":
		return nil
	case keyFile == "":
		return errors.New("AIO_TLS_CERT_FILE without AIO_TLS_KEY_FILE")
	case certFile == "":
		return errors.New("AIO_TLS_KEY_FILE without AIO_TLS_CERT_FILE")
	}
	passwordFile := os.Getenv("AIO_TLS_KEY_PASSWORD_FILE")
	read := func() (tls.Certificate, error) { return certificateFromEnv(certFile, keyFile, passwordFile) }
	return pemfile.UseRotating(c, files.Again(read, certFile, keyFile, passwordFile))
}

// certificateFromEnv reads the client certificate and its key from the files of the AIO_TLS_ variables.
func certificateFromEnv(certFile, keyFile, passwordFile string) (cert tls.Certificate, err error) {
	text, err := files.ReadText(certFile)
	if err != nil {
		return cert, fmt.Errorf("AIO_TLS_CERT_FILE: %w", err)
	}
	cert, err = pemfile.ReadCertificates(text)
	if err != nil {
		return cert, fmt.Errorf("AIO_TLS_CERT_FILE: %s: %w", certFile, err)
	}
	if text, err = files.ReadText(keyFile); err != nil {
		return cert, fmt.Errorf("AIO_TLS_KEY_FILE: %w", err)
	}
	password, err := files.ReadSecret(passwordFile)
	if err != nil {
		return cert, fmt.Errorf("AIO_TLS_KEY_PASSWORD_FILE: %w", err)
	}
	key, err := pemfile.ReadKey(text, password)
	switch {
	case err != nil:
		return cert, fmt.Errorf("AIO_TLS_KEY_FILE: %s: %w", keyFile, err)
	case !pemfile.Fits(key, cert.Leaf):
		return cert, fmt.Errorf("AIO_TLS_KEY_FILE: %s is not the key of the first certificate in %s", keyFile, certFile)
	}
	cert.PrivateKey = key
	return cert, nil
}
