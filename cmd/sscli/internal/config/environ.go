package config

import (
	"net/url"
	"path/filepath"
	"strconv"
)

// Environ returns the connection as variables for a child process: those to set,
// and those of ours that would say something else. The client id is not among them,
// since two connections cannot share one; nor is --tls-insecure, which nobody
// inherits. Files are named by their absolute path.
func (s Settings) Environ() (set map[string]string, drop []string) {
	set = make(map[string]string)
	say := func(name, value string) {
		if value == "" {
			drop = append(drop, name)
			return
		}
		set[name] = value
	}
	file := func(name, path string) {
		if abs, err := filepath.Abs(path); err == nil && path != "" {
			path = abs
		}
		say(name, path)
	}
	set["SSCLI_CONTEXT"] = None // the chosen one, if any, is in the variables
	drop = append(drop, "SSCLI_HOST", "SSCLI_PORT", "SSCLI_TLS", "SSCLI_EMBEDDED", "SSCLI_CLIENT_ID")
	say("SSCLI_URL", s.fullURL())
	file("SSCLI_CA_FILE", s.CAFile)
	file("SSCLI_CERT_FILE", s.CertFile)
	file("SSCLI_KEY_FILE", s.KeyFile)
	file("SSCLI_KEY_PASSWORD_FILE", s.KeyPasswordFile)
	say("SSCLI_TLS_SERVER_NAME", s.ServerName)
	say("SSCLI_USERNAME", s.Username)
	file("SSCLI_PASSWORD_FILE", s.PasswordFile)
	file("SSCLI_SAT_FILE", s.SATFile)
	say("SSCLI_RESPONSE_TOPIC", s.ResponseTopic)
	if s.Sources["high-priority"] != "" {
		say("SSCLI_HIGH_PRIORITY", strconv.FormatBool(s.HighPriority))
	}
	if s.Sources["proxy"] == "--proxy" && s.Proxy != nil {
		say("SSCLI_PROXY", s.Proxy.String())
	}
	return set, drop
}

// fullURL is URL with the query of a WebSocket's path, which may hold a secret.
func (s Settings) fullURL() string {
	if s.Address == "" {
		return ""
	}
	plain := s
	plain.WebSocket = ""
	if s.WebSocket == "" {
		return plain.URL()
	}
	scheme := "ws"
	if s.TLS {
		scheme = "wss"
	}
	u := url.URL{Scheme: scheme, Host: s.Address}
	return u.String() + s.WebSocket
}
